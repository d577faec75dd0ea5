// A study for people to read. In: JSON of schema hebe.analysis.study/1; out: one HTML page that is
// XML too, or its picture alone as SVG; neither refers to anything outside itself. Invariant: a
// pure function of the analysis; every member of it is on the page, what is missing is "not known"
// with the reason, and what is simulated or a smoke test says so above everything else.
#pragma once

#include "core/json.hpp"

#include <string>

namespace hebe::report {

[[nodiscard]] std::string study_page(const Json& study_analysis);
/// The forest plot: effects on energy, latency and power with their intervals.
[[nodiscard]] std::string study_svg(const Json& study_analysis);

} // namespace hebe::report
