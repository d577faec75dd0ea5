#include "report/effect_table.hpp"

#include "report/markup.hpp"
#include "report/members.hpp"
#include "report/quantity_text.hpp"
#include "report/verdict_words.hpp"

#include <fmt/format.h>

namespace hebe::report {
namespace {

constexpr const char* kHead =
    R"(<thead><tr><th scope="col">of</th><th scope="col">effect</th><th scope="col">95 % interval</th>)"
    R"(<th scope="col">half width</th><th scope="col">spread of pairs</th><th scope="col">verdict</th>)"
    R"(<th scope="col">p</th><th scope="col">p, Holm</th></tr></thead>)";

std::string or_unknown(const Json& json) {
  const auto shown = text(json);
  return shown.empty() ? unknown("") : escaped(shown);
}

// Only the energy of a contrast is tested in the family; other rows have no p and show none.
std::string p_cells(const Json& job, const char* quantity) {
  if (std::string_view(quantity) != "energy" || !job.contains("energy_p")) return "<td/><td/>";
  std::string out;
  for (const char* name : {"energy_p", "energy_p_holm"}) {
    const auto p = number(member(job, {name}));
    out += element("td", p ? digits_text(*p, 2) : unknown("not tested"));
  }
  return out;
}

std::string effect_row(const Json& job, const char* quantity) {
  const auto& effect = member(job, {quantity});
  auto row = element("th", quantity, R"(scope="row")");
  if (const auto shown = effect_text(effect)) {
    const auto spread = number(member(effect, {"pair_spread_percent"}));
    const auto kind = text(member(effect, {"interval"}));
    row += element("td", shown->effect) +
           element("td", fmt::format("{} {}", shown->interval,
                                     kind == "bca" ? "BCa" : or_unknown(Json(kind)))) +
           element("td", "\u00b1" + shown->half_width) +
           element("td", spread ? digits_text(*spread, 3) + " %" : unknown("")) +
           element("td", or_unknown(member(effect, {"verdict"})));
  } else {
    const auto why = text(member(effect, {"unavailable"}));
    row += element("td", unknown(why.empty() ? "not in the analysis" : why), R"(colspan="5")");
  }
  return element("tr", row + p_cells(job, quantity)) + "\n";
}

std::string predicted_row(const Json& control, const char* quantity) {
  const auto& range = member(control, {"predicted", quantity});
  const auto percent = number(member(range, {"percent"})),
             low = number(member(range, {"low_percent"})),
             high = number(member(range, {"high_percent"}));
  const auto shown = percent && low && high
                         ? fmt::format("{}, {} to {}", signed_percent(*percent, 2),
                                       signed_percent(*low, 2), signed_percent(*high, 2))
                         : unknown("no prediction in the analysis");
  return element("tr", element("th", "predicted", R"(scope="row")") +
                           element("td", shown, R"(colspan="7")"));
}

std::string group_row(const std::string& name, const Json& job) {
  const auto pairs = number(member(job, {"pairs"})), window = number(member(job, {"window_s"}));
  return element("tr",
                 element("th",
                         fmt::format("{} <small>{} pairs of windows of {}</small>", name,
                                     pairs ? count_text(*pairs) : unknown(""),
                                     window ? ecmascript_number(*window) + " s" : unknown("")),
                         R"(colspan="8" scope="rowgroup")"),
                 R"(class="group")") +
         "\n";
}

std::string control_rows(const Json& control) {
  const auto fraction = number(member(control, {"fraction"}));
  auto out = group_row(fmt::format("Control, {} extra traffic: {}",
                                   fraction ? share_text(*fraction) : unknown(""),
                                   yes_or_no(member(control, {"seen"}), "seen", "not seen")),
                       control);
  for (const char* quantity : {"energy", "latency"})
    out += effect_row(control, quantity) + predicted_row(control, quantity);
  return out;
}

} // namespace

std::string effect_table(const Json& study) {
  std::string rows;
  if (const auto& aa = member(study, {"aa"}); aa.is_object()) {
    rows += group_row("A/A: the first contrast's A against itself", aa);
    for (const char* quantity : {"energy", "latency"}) rows += effect_row(aa, quantity);
  }
  if (const auto& contrasts = member(study, {"contrasts"}); contrasts.is_array())
    for (const auto& c : contrasts) {
      rows += group_row(fmt::format("{}: {} against {}", or_unknown(member(c, {"point"})),
                                    or_unknown(member(c, {"b"})), or_unknown(member(c, {"a"}))),
                        c);
      for (const char* quantity : {"energy", "latency", "power"}) rows += effect_row(c, quantity);
    }
  if (const auto& control = member(study, {"control"}); control.is_object())
    rows += control_rows(control);
  return element("div", element("table", kHead + element("tbody", rows), R"(class="effects")"),
                 R"(class="scroll")");
}

} // namespace hebe::report
