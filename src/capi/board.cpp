// hebe_status: can this board be measured on, and if not, why not. Nothing is launched or written.
#include "capi/answer.hpp"
#include "capi/request.hpp"
#include "core/build_identity.hpp"

#include <hebe/hebe.h>

#include <cstdlib>

namespace hebe::capi {
namespace {

Json reading_json(const Result<std::int64_t>& reading) {
  return reading ? json_integer(*reading) : Json{{"unavailable", reading.error().what}};
}

Result<Answer> status_of(const Json& request) {
  HEBE_CHECK(only_members(request, {"data_root", "device", "faults", "stream"}));
  HEBE_TRY(const auto root, data_root_of(request));
  HEBE_TRY(const auto asked, machine_of(request));
  HEBE_TRY(const auto machine, campaign::open_as_asked(asked));
  const auto& board = machine->meter().board();
  const auto& info = machine->info();
  HEBE_TRY(const auto boundary, machine->meter().read_boundary());
  const auto status = campaign::samples_status(root, *machine);
  // With the caller's own context open its process is among those that are listed.
  const auto free = asked.stream ? Status{} : campaign::board_is_free(*machine);
  Json out{{"provenance", name_of(board.provenance)},
           {"device",
            {{"name", info.name},
             {"uuid", info.uuid},
             {"pci_bus_id", info.pci_bus_id},
             {"arch", info.arch},
             {"driver", machine->driver()},
             {"simulated", info.simulated}}},
           {"samples", machine->meter().samples_source().name},
           {"counter", machine->meter().counter_source().name},
           {"energy_mj", reading_json(boundary.energy_mj)},
           {"temperature_c", reading_json(boundary.temperature_c)},
           {"sm_clock_mhz", reading_json(boundary.sm_clock_mhz)},
           {"meter_status", status ? Json(*status) : Json(nullptr)}};
  const auto* refusal = !status ? &status.error() : !free ? &free.error() : nullptr;
  out["measurable"] = refusal == nullptr;
  out["why_not"] = refusal == nullptr ? Json(nullptr) : refusal_json(*refusal);
  return Answer{std::move(out), 0};
}

} // namespace
} // namespace hebe::capi

int hebe_status(const char* request, char** out) {
  return hebe::capi::answer(request, out, hebe::capi::status_of);
}

const char* hebe_version(void) { return hebe::kVersion; }

void hebe_free(char* text) { std::free(text); }
