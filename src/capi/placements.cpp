// hebe_load_placement: what a placement file says that still holds here. Nothing is measured.
// Invariant: no row leaves without what came of holding it against the present machine.
#include "capi/answer.hpp"
#include "capi/request.hpp"

#include <hebe/hebe.h>

namespace hebe::capi {
namespace {

const char* outcome_of(const tune::HeldRow& held) {
  if (held.rejected) return "rejected";
  return held.reasons.empty() ? "holds" : "downgraded";
}

Result<Answer> load(const Json& request) {
  HEBE_CHECK(only_members(request, {"file", "board", "board_uuid", "cpu", "driver", "os", "hebe",
                                    "triton", "meters", "days", "date"}));
  HEBE_TRY(const auto file, file_of(request));
  HEBE_TRY(const auto now, placement_now_of(request));
  HEBE_TRY(const auto placement, tune::read_placement(file));
  HEBE_TRY(const auto held, tune::hold_placement(placement, now));
  Json rows = Json::array();
  for (const auto& one : held) {
    auto row = tune::json_of(tune::Placement{{one.row}}).at("rows").at(0);
    row["outcome"] = outcome_of(one);
    row["reasons"] = one.reasons;
    rows.push_back(std::move(row));
  }
  return Answer{{{"rows", std::move(rows)}}, 0};
}

} // namespace
} // namespace hebe::capi

int hebe_load_placement(const char* request, char** out) {
  return hebe::capi::answer(request, out, hebe::capi::load);
}
