#include "tune/host_search.hpp"

#include "core/files.hpp"
#include "kernel/output_check.hpp"
#include "meter/file_sources.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

using Outputs = std::vector<std::vector<std::byte>>;

Result<Outputs> outputs_of_a_run(const HostCode& code, const kernel::LaunchSpec& launch) {
  HEBE_CHECK(code.run(1));
  Outputs out;
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer || a.role == kernel::Role::in) continue;
    HEBE_TRY(auto bytes, code.output(a.name));
    out.push_back(std::move(bytes));
  }
  return out;
}

Status check_output(std::span<const std::byte> found, const kernel::Argument& a,
                    const campaign::PreparedCase& baseline, const std::string& who) {
  const auto& made = baseline.expected.at(a.name);
  HEBE_TRY(const auto bytes, read_file(made.file));
  const auto oracle = std::as_bytes(std::span(bytes));
  const auto& launch = baseline.compiled.launch;
  const auto checked =
      kernel::check_output(found, a.dtype, oracle, made.dtype, launch.atol, launch.rtol);
  if (checked.passed()) return {};
  return refuse(RefusalCode::wrong_output,
                fmt::format("{}: output \"{}\": {}", who, a.name, kernel::describe(checked)),
                "what is wrong is not measured");
}

} // namespace

HostMetering rapl_metering() {
  return {Provenance::measured, [](const HostWindows& windows) {
            static RealClock clock; // outlives every meter
            return HostMeter::open(meter::discover_file_sources(), clock, Provenance::measured,
                                   windows);
          }};
}

HostContender host_contender(std::size_t candidate, HostCost seen, MeterIdentity meter) {
  const auto spent = seen.cost.measured + seen.idle.duration;
  return {candidate, std::move(seen.cost),    seen.idle, std::move(meter),
          spent,     std::move(seen.readings)};
}

HostWindows searching_windows(const TuneSpec& spec) {
  HostWindows out;
  out.idle = std::max(out.idle, spec.idle);
  out.busy = std::max(out.busy, spec.window);
  return out;
}

HostWindows confirming_windows(const TuneSpec& spec) {
  HostWindows out;
  out.idle = std::max(out.idle, spec.idle);
  out.busy = spec.protocol.window;
  out.count = std::max(out.count, spec.protocol.pairs);
  return out;
}

Status check_host_code(const HostCode& code, const campaign::PreparedCase& baseline,
                       const std::string& who) {
  const auto& launch = baseline.compiled.launch;
  HEBE_TRY(const auto first, outputs_of_a_run(code, launch));
  std::size_t next = 0;
  for (const auto& a : launch.arguments)
    if (a.is_buffer && a.role != kernel::Role::in)
      HEBE_CHECK(check_output(first[next++], a, baseline, who));
  HEBE_TRY(const auto again, outputs_of_a_run(code, launch));
  if (first == again) return {};
  return refuse(RefusalCode::wrong_output,
                who + ": two runs on the same inputs gave different outputs",
                "what is timed must be repeatable");
}

Result<HostContender> measure_host(std::size_t candidate, const TriedCandidate& tried,
                                   const HostSearch& how) {
  const auto& code = std::get<HostCode>(tried.prepared->code);
  HEBE_TRY(auto meter, how.metering.open(how.windows));
  HEBE_CHECK(check_meter(meter.identity(), how.not_written));
  auto got = meter.measure(code.run, how.may_continue, how.not_written, how.objective);
  if (!got) {
    auto r = std::move(got).error();
    if (r.code != RefusalCode::interrupted && r.code != RefusalCode::lease_lost)
      r.what = fmt::format("{} ran on the host and was not measured: {}; meter {}: {}",
                           text_of(tried.candidate), r.what, meter.identity().name,
                           meter.identity().status);
    return std::unexpected(std::move(r));
  }
  return host_contender(candidate, std::move(*got), meter.identity());
}

Result<std::vector<HostContender>> measure_hosts(std::vector<TriedCandidate>& candidates,
                                                 const campaign::PreparedCase& baseline,
                                                 const HostSearch& how) {
  std::vector<HostContender> out;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto& tried = candidates[i];
    if (tried.state != TriedCandidate::State::ready ||
        !std::holds_alternative<HostCode>(tried.prepared->code))
      continue;
    HEBE_CHECK(how.may_continue());
    const auto& code = std::get<HostCode>(tried.prepared->code);
    if (auto right = check_host_code(code, baseline, text_of(tried.candidate)); !right) {
      if (right.error().code != RefusalCode::wrong_output) return std::unexpected(right.error());
      tried.state = TriedCandidate::State::failed;
      tried.why = std::move(right).error();
      continue;
    }
    HEBE_TRY(auto one, measure_host(i, tried, how));
    HEBE_CHECK(check_host_code(code, baseline, text_of(tried.candidate))); // nor did it stop
    out.push_back(std::move(one));
  }
  return out;
}

const HostContender* best_host(std::span<const HostContender> all,
                               const std::optional<double>& latency_bound_ns) {
  const HostContender* best = nullptr;
  for (const auto& one : all)
    if ((!latency_bound_ns || one.cost.latency_ns <= *latency_bound_ns) &&
        (best == nullptr || one.cost.value < best->cost.value))
      best = &one;
  return best;
}

} // namespace hebe::tune
