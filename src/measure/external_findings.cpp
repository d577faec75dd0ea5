#include "measure/external_findings.hpp"

#include "measure/external_alignment.hpp"
#include "measure/source_statistics.hpp"

#include <algorithm>
#include <cmath>

namespace hebe::measure {

SourceRecord external_record(std::span<const double> time_s, std::span<const double> power_w) {
  SourceRecord s;
  s.description.identity = {kExternalSource, "log", kExternalSource, "uW"};
  s.description.quantity = meter::Quantity::power;
  s.description.si_per_unit = 1e-6;
  for (std::size_t i = 0; i < time_s.size(); ++i) {
    const auto t = std::llround(time_s[i] * 1e9);
    s.readings.push_back({t, t, std::llround(power_w[i] * 1e6), {}, {}, {}});
  }
  return s;
}

Json external_findings(const Recording& r) {
  const auto named = [&](auto test) {
    return std::find_if(r.sources.begin(), r.sources.end(), test);
  };
  const auto external =
      named([](auto& s) { return s.description.identity.name == kExternalSource; });
  if (external == r.sources.end()) return nullptr;
  const auto buffer = named([](auto& s) { return s.is_buffer; });
  const auto phase =
      std::find_if(r.phases.begin(), r.phases.end(), [](auto& p) { return p.name == "signature"; });
  std::vector<double> in_t, in_w, ex_t, ex_w;
  if (buffer != r.sources.end() && phase != r.phases.end())
    for (const auto& p : buffer_points(*buffer))
      if (p.t_ns >= phase->begin_ns && p.t_ns <= phase->end_ns) {
        in_t.push_back(static_cast<double>(p.t_ns - phase->begin_ns) * 1e-9);
        in_w.push_back(p.watts);
      }
  for (const auto& x : external->readings) {
    ex_t.push_back(static_cast<double>(x.before_ns) * 1e-9);
    ex_w.push_back(static_cast<double>(x.raw.value_or(0)) * 1e-6);
  }
  AlignmentLimits limits;
  limits.settle_s = 0.1; // every sensor met so far has settled by then, but a one-second average
  const auto a = align_external({in_t, in_w}, {ex_t, ex_w}, limits);
  if (!a)
    return {{"aligned", false},
            {"refused", {{"code", hebe::name_of(a.error().code)}, {"what", a.error().what}}}};
  return {{"aligned", true},
          {"source", buffer->description.identity.name},
          {"clock_offset_s", a->offset_s},
          {"clock_skew_ppm", a->skew_ppm},
          {"correlation", a->correlation},
          {"overlap_s", a->overlap_s},
          {"edges", a->edges},
          {"gain_ratio", a->gain},
          {"gain_standard_error", a->gain_se},
          {"offset_w", a->offset_w},
          {"offset_standard_error_w", a->offset_se_w},
          {"residual_w", a->residual_w},
          {"residual_with_edges_w", a->residual_all_w},
          {"plateaus", a->plateaus}};
}

} // namespace hebe::measure
