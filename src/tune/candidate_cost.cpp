#include "tune/candidate_cost.hpp"

#include "measure/intervals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::tune {
namespace {

double relative_spread(std::span<const double> values) {
  double mean = 0, squares = 0;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) mean += v / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double widened = measure::t_exceeded_with(0.025, n - 1) / kNormal95;
  return std::sqrt(squares / (n - 1)) / mean * widened;
}

} // namespace

std::optional<WindowNoise> noise_of(std::span<const measure::SeriesWindow> windows) {
  constexpr std::size_t kFewest = 3;
  if (windows.size() < kFewest) return std::nullopt;
  std::vector<double> power, latency;
  for (const auto& w : windows) {
    power.push_back(w.power.value());
    latency.push_back(w.latency.value());
  }
  return WindowNoise{relative_spread(power), relative_spread(latency)};
}

Result<IdlePower> idle_power(std::span<const measure::IdleStretch> stretches,
                             const std::optional<std::int64_t>& loaded_clock_mhz) {
  if (stretches.empty())
    return refuse(RefusalCode::meter_not_qualified, "idle power was not measured");
  IdlePower out;
  const auto n = static_cast<double>(stretches.size());
  double sum = 0, squares = 0, spread = 0;
  bool up = loaded_clock_mhz.has_value();
  for (const auto& s : stretches) {
    sum += s.power.value();
    squares += s.power_error.value() * s.power_error.value();
    out.duration += s.duration;
    // A clock nobody could read is not said to be up.
    up = up && s.sm_clock_mhz && *s.sm_clock_mhz * 10 >= *loaded_clock_mhz * 9;
  }
  const double mean = sum / n;
  for (const auto& s : stretches) spread = std::max(spread, std::abs(s.power.value() - mean));
  out.mean = Watts(mean);
  out.error = Watts(std::hypot(std::sqrt(squares) / n, spread));
  out.state = up ? Idle::clocks_up : Idle::context_open;
  return out;
}

CandidateWindow with_noise(const measure::SeriesWindow& w, const WindowNoise& noise) {
  return {w, std::max(w.power_error, w.power * noise.power),
          std::max(w.latency_error, w.latency * noise.latency)};
}

Result<CandidateCost> cost_of(std::span<const CandidateWindow> windows, const CostTerms& terms) {
  CandidateCost out;
  MarginalRequest request;
  request.idle_state = terms.idle.state;
  request.not_written = terms.not_written;
  request.idle = MeteredWindow{
      terms.meter, PowerWindow{terms.idle.mean, terms.idle.error, to_nanos(terms.idle.duration)}};
  Joules energy(0);
  double energy_variance = 0, latency_variance = 0;
  for (const auto& w : windows) {
    energy += w.seen.power * w.seen.duration;
    const double joules = (w.power_error * w.seen.duration).value();
    energy_variance += joules * joules;
    const double share = static_cast<double>(w.seen.launches);
    out.latency_ns += w.seen.latency.value() * 1e9 * share;
    const double error = w.latency_error.value() * 1e9 * share;
    latency_variance += error * error;
    out.measured += w.seen.duration;
    request.operations += w.seen.launches;
  }
  if (request.operations > 0)
    request.busy = MeteredWindow{
        terms.meter,
        PowerWindow{energy / out.measured, Watts(std::sqrt(energy_variance) / out.measured.value()),
                    to_nanos(out.measured)}};
  HEBE_TRY(out.energy, marginal_cost(request));
  const auto launches = static_cast<double>(request.operations);
  out.latency_ns /= launches;
  out.latency_error_ns = std::sqrt(latency_variance) / launches;
  const bool edp = terms.objective == Objective::edp;
  double nj = out.energy.exact_nj;
  double energy_error = (out.energy.high_nj - nj) / kNormal95 / nj;
  if (terms.idle_power == IdleCharge::included) {
    nj = energy.value() * 1e9 / launches;
    energy_error = std::sqrt(energy_variance) / energy.value();
  }
  out.value = nj * (edp ? out.latency_ns * 1e-9 : 1);
  const double relative = std::hypot(energy_error, edp ? out.latency_error_ns / out.latency_ns : 0);
  out.low = out.value * (1 - kNormal95 * relative);
  out.high = out.value * (1 + kNormal95 * relative);
  return out;
}

} // namespace hebe::tune
