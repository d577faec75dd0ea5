// What requests have in common. In: a JSON object; out: the typed request of the room behind it.
// Invariant: a member that is not known, or is of another type, is refused by its name
// (bad_argument): a misspelt option must not be a default.
#pragma once

#include "campaign/callable_measurement.hpp"
#include "core/json.hpp"
#include "tune/placement.hpp"

#include <hebe/hebe.h>

#include <initializer_list>
#include <string_view>

namespace hebe::capi {

[[nodiscard]] Status only_members(const Json& request,
                                  std::initializer_list<std::string_view> known);

/// "device" (default auto), "faults", "stream" (of an integer: the handle; null: none).
[[nodiscard]] Result<campaign::MachineRequest> machine_of(const Json& request);

/// "data_root": required.
[[nodiscard]] Result<evidence::DataRoot> data_root_of(const Json& request);

/// "tier", "pairs", "window_s", "warm_up_s", "seed", "idle_s", margins, "calls_per_enqueue"; the
/// tier's minimum where one is left out.
[[nodiscard]] Result<campaign::CallableRequest> callables_of(const Json& request);

/// "file": required.
[[nodiscard]] Result<std::string> file_of(const Json& request);
/// "board", "board_uuid", "cpu", "driver", "os", "hebe", "triton", "meters" (name to status),
/// "days", "date" (none: now): the machine of now. What is left out or null is not known.
[[nodiscard]] Result<tune::PlacementNow> placement_now_of(const Json& request);

[[nodiscard]] campaign::JobCallbacks callbacks_of(hebe_interrupted interrupted, void* user);

} // namespace hebe::capi
