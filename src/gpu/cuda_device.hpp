// A real GPU through the CUDA driver API, launched exactly as Triton 3.6 launches. Invariant: no
// setting of the board or of the module differs from what Triton's own loader makes, or a measured
// difference would partly be ours.
#pragma once

#include "gpu/device.hpp"

#include <optional>

namespace hebe::gpu {

/// Every CUDA device's identity, without creating a context. Order is CUDA's; identify by UUID
/// only.
[[nodiscard]] Result<std::vector<DeviceInfo>> list_cuda_devices();

/// The UUID of the device whose context is current on this thread; no_device where none is.
[[nodiscard]] Result<std::string> current_cuda_device();

/// Opens the device with this UUID (creates its primary context). `clock` must outlive it.
/// `callers_stream`: a stream of the primary context, as CUDA's runtime and so torch use it, that
/// everything is enqueued onto; it stays the caller's. None: a stream of our own. bad_argument: it
/// is another context's.
[[nodiscard]] Result<std::unique_ptr<Device>>
open_cuda_device(const std::string& uuid, Clock& clock,
                 std::optional<void*> callers_stream = std::nullopt);

} // namespace hebe::gpu
