// A real GPU through the CUDA driver API, launched exactly as Triton 3.6 launches. Invariant: no
// setting of the board or of the module differs from what Triton's own loader makes, or a measured
// difference would partly be ours.
#pragma once

#include "gpu/device.hpp"

namespace hebe::gpu {

/// Every CUDA device's identity, without creating a context. Order is CUDA's; identify by UUID
/// only.
[[nodiscard]] Result<std::vector<DeviceInfo>> list_cuda_devices();

/// Opens the device with this UUID (creates its primary context). `clock` must outlive it.
[[nodiscard]] Result<std::unique_ptr<Device>> open_cuda_device(const std::string& uuid,
                                                               Clock& clock);

} // namespace hebe::gpu
