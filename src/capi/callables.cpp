// hebe_measure, hebe_compare, hebe_check and what a simulated callable does when it is called.
#include "capi/answer.hpp"
#include "capi/callable_answer.hpp"
#include "capi/exclusive.hpp"
#include "capi/request.hpp"
#include "gpu/sim_device.hpp"

#include <hebe/hebe.h>

#include <fmt/format.h>

#include <vector>

namespace hebe::capi {
namespace {

gpu::ExternalWork work_of(hebe_enqueue enqueue, void* user, int arm) {
  return [enqueue, user, arm](void* stream) -> Status {
    const int code = enqueue(user, stream, arm);
    if (code == 0) return {};
    return refuse(RefusalCode::case_failed,
                  fmt::format("the callable of arm {} ended with {}", arm == 0 ? "A" : "B", code),
                  "correct it; nothing was recorded", "callable");
  };
}

Status known_members(const Json& request) {
  return only_members(request, {"data_root", "device", "faults", "stream", "tier", "pairs",
                                "window_s", "warm_up_s", "idle_s", "seed", "energy_margin_percent",
                                "latency_margin_percent", "calls_per_enqueue"});
}

Result<campaign::CallableOutcome> measured(const Json& request, bool same, hebe_enqueue enqueue,
                                           hebe_interrupted interrupted, void* user) {
  HEBE_CHECK(known_members(request));
  if (enqueue == nullptr)
    return refuse(RefusalCode::bad_argument, "there is nothing to call", {}, "enqueue");
  HEBE_TRY(const auto exclusive, Exclusive::take());
  HEBE_TRY(const auto root, data_root_of(request));
  HEBE_TRY(auto callables, callables_of(request));
  callables.same = same;
  for (int arm = 0; arm < 2; ++arm)
    callables.arms[static_cast<std::size_t>(arm)].work = work_of(enqueue, user, same ? 0 : arm);
  return measure_callables(root, callables, callbacks_of(interrupted, user));
}

Result<Answer> checked(const Json& request) {
  HEBE_CHECK(known_members(request));
  HEBE_CHECK(data_root_of(request));
  HEBE_TRY(const auto callables, callables_of(request));
  HEBE_CHECK(check_callables(callables));
  return Answer{Json{{"checked", true}}, 0};
}

} // namespace
} // namespace hebe::capi

using namespace hebe;
using namespace hebe::capi;

int hebe_measure(const char* request, hebe_enqueue enqueue, hebe_interrupted interrupted,
                 void* user, char** out) {
  return answer(request, out, [&](const Json& json) -> Result<Answer> {
    HEBE_TRY(const auto outcome, measured(json, true, enqueue, interrupted, user));
    HEBE_TRY(auto told, measured_json(outcome));
    return Answer{std::move(told), 0};
  });
}

int hebe_compare(const char* request, hebe_enqueue enqueue, hebe_interrupted interrupted,
                 void* user, char** out) {
  return answer(request, out, [&](const Json& json) -> Result<Answer> {
    HEBE_TRY(const auto outcome, measured(json, false, enqueue, interrupted, user));
    return Answer{compared_json(outcome), 0};
  });
}

int hebe_check(const char* request, char** out) { return answer(request, out, checked); }

int hebe_sim_enqueue(void* stream, const double* seconds, const double* watts, size_t works,
                     uint32_t times, double host_seconds) {
  try {
    std::vector<gpu::TimedWork> graph;
    if (seconds != nullptr && watts != nullptr)
      for (std::size_t i = 0; i < works; ++i)
        graph.push_back({Seconds(seconds[i]), Watts(watts[i])});
    const auto done = gpu::enqueue_timed_work(stream, graph, times, Seconds(host_seconds));
    return done ? 0 : static_cast<int>(exit_code_of(done.error().code));
  } catch (...) {
    return static_cast<int>(ExitCode::bug);
  }
}
