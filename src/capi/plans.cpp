// hebe_plan: a campaign's specification, frozen as `hebe campaign-plan` does. Nothing is measured.
#include "campaign/frozen_campaign.hpp"
#include "capi/answer.hpp"
#include "capi/exclusive.hpp"
#include "capi/request.hpp"

#include <hebe/hebe.h>

#include <algorithm>

namespace hebe::capi {
namespace {
namespace fs = std::filesystem;

/// As the program names cases: "vector-add" lies in `kernels`, anything with a slash or .py is a
/// file, and ":function" may follow.
Result<kernel::CaseRequest> case_named(const fs::path& kernels, const std::string& name,
                                       const fs::path& base) {
  kernel::CaseRequest r;
  auto file = name.substr(0, name.rfind(':'));
  if (file.size() < name.size()) r.function = name.substr(file.size() + 1);
  if (file.find('/') == std::string::npos && !file.ends_with(".py")) {
    std::replace(file.begin(), file.end(), '-', '_');
    r.file = kernels / (file + ".py");
  } else {
    r.file = (base / file).lexically_normal();
  }
  std::error_code ec;
  if (fs::is_regular_file(r.file, ec)) return r;
  return refuse(RefusalCode::case_not_found, "no case \"" + name + "\"",
                "give a file.py[:function], or a case of " + kernels.string(), r.file.string());
}

Result<Answer> plan(const Json& request, const campaign::JobCallbacks& callbacks) {
  HEBE_CHECK(only_members(
      request, {"data_root", "spec", "device", "faults", "kernels", "worker", "scratch"}));
  HEBE_TRY(const auto exclusive, Exclusive::take());
  HEBE_TRY(const auto root, data_root_of(request));
  const fs::path kernels = request.at("kernels").get<std::string>();
  HEBE_TRY(const auto spec,
           campaign::read_campaign_spec(request.at("spec").get<std::string>(),
                                        [&](const std::string& name, const fs::path& base) {
                                          return case_named(kernels, name, base);
                                        }));
  HEBE_TRY(const auto asked, machine_of(request));
  HEBE_TRY(const auto machine, campaign::open_as_asked(asked));
  campaign::PlanRequest r;
  r.target = {machine->simulated(), machine->info().arch, asked.faults};
  r.memory = machine->memory();
  r.worker = {request.at("worker").at("argv"), request.at("worker").at("environment")};
  r.scratch = request.value("scratch", std::string("/tmp"));
  r.interrupted = callbacks.interrupted;
  HEBE_TRY(const auto outcome, plan_campaign(root, spec, r));
  return Answer{{{"campaign", outcome.campaign.id},
                 {"directory", outcome.campaign.directory.string()},
                 {"existed", outcome.existed},
                 {"estimated_s", outcome.estimated.value()}},
                0};
}

} // namespace
} // namespace hebe::capi

int hebe_plan(const char* request, hebe_interrupted interrupted, void* user, char** out) {
  return hebe::capi::answer(request, out, [&](const hebe::Json& json) {
    return hebe::capi::plan(json, hebe::capi::callbacks_of(interrupted, user));
  });
}
