#include "report/verdict_words.hpp"

#include "report/markup.hpp"
#include "report/members.hpp"
#include "report/quantity_text.hpp"

#include <fmt/format.h>

namespace hebe::report {
namespace {

std::string unsigned_part(const std::string& effect) { // the words say which way
  return effect.substr(effect.find_first_of("0123456789"));
}

std::string interval(const EffectText& effect) {
  return "95\u00a0% interval " + element("span", effect.interval + "\u00a0%", R"(class="number")");
}

std::string time_clause(const Json& contrast, const char* before) {
  const auto effect = effect_text(member(contrast, {"latency"}));
  const auto percent = number(member(contrast, {"latency", "effect_percent"}));
  if (!effect || !percent) return "; its time is not known";
  const auto verdict = text(member(contrast, {"latency", "verdict"}));
  if (verdict == "lower" || verdict == "higher")
    return fmt::format("{} {} {} time", before, unsigned_part(effect->effect),
                       *percent < 0 ? "less" : "more");
  return fmt::format("; the time differs by {} {} ({})", effect->effect, effect->interval,
                     verdict.empty() ? "no verdict" : escaped(verdict));
}

} // namespace

const Json& primary_contrast(const Json& study) {
  static const Json kNone;
  if (const auto& all = member(study, {"contrasts"}); all.is_array())
    for (const auto& c : all)
      if (text(member(c, {"role"})) == "primary") return c;
  return kNone;
}

std::string verdict_sentence(const Json& study) {
  const auto& c = primary_contrast(study);
  if (c.is_null()) return "There is no primary contrast, so there is no answer.";
  const auto a = escaped(text(member(c, {"a"}))), b = escaped(text(member(c, {"b"}))),
             point = escaped(text(member(c, {"point"}))),
             verdict = text(member(study, {"verdict"}));
  const auto effect = effect_text(member(c, {"energy"}));
  if (verdict == "invalid" || !effect)
    return fmt::format("There is no answer for {} against {} at {}: {}.", b, a, point,
                       !effect ? "its energy is not known"
                               : "the measurement is invalid" +
                                     (text(member(c, {"reason"})).empty()
                                          ? std::string()
                                          : ", " + escaped(text(member(c, {"reason"})))));
  if (verdict == "lower" || verdict == "higher")
    return fmt::format("At {}, {} takes {} {} energy a launch than {}, {}{}.", point, b,
                       unsigned_part(effect->effect), verdict == "lower" ? "less" : "more", a,
                       interval(*effect), time_clause(c, ", in"));
  const auto numbers = fmt::format("{}, {}", effect->effect, interval(*effect));
  if (verdict == "equivalent")
    return fmt::format("At {}, {} takes the same energy a launch as {} within the margin: {}{}.",
                       point, b, a, numbers, time_clause(c, "; it takes"));
  return fmt::format("At {}, whether {} takes less or more energy a launch than {} is not decided: "
                     "{}{}.",
                     point, b, a, numbers, time_clause(c, "; it takes"));
}

std::string warning_banner(const Json& study) {
  std::string out;
  const auto provenance = text(member(study, {"provenance"})),
             label = text(member(study, {"label"})), tier = text(member(study, {"tier"}));
  const auto say = [&](const std::string& what) {
    out += element("p", what, R"(class="banner" role="alert")") + "\n";
  };
  if (provenance == "simulated")
    say("simulated: never evidence");
  else if (provenance != "measured")
    say(provenance.empty() ? "provenance not known: not evidence"
                           : escaped(provenance) + ": not evidence");
  if (label.starts_with("smoke") || tier.starts_with("smoke"))
    say(label.starts_with("smoke") ? escaped(label) : "smoke: checks the plumbing, never evidence");
  return out;
}

std::string qualification_sentence(const Json& study) {
  const auto& conditions = member(study, {"conditions"});
  std::size_t all = 0, failed = 0;
  if (conditions.is_array())
    for (const auto& c : conditions) {
      ++all;
      failed += holds(member(c, {"holds"})) ? 0 : 1;
    }
  const auto whole = yes_or_no(member(study, {"study_qualified"}), "qualified", "not qualified");
  if (all == 0) return whole + ": no condition is listed.";
  return failed == 0 ? fmt::format("{}: each of {} conditions holds.", whole, all)
                     : fmt::format("{}: {} of {} conditions do not hold.", whole, failed, all);
}

std::string yes_or_no(const Json& value, const char* yes, const char* no) {
  if (!value.is_boolean()) return unknown("not in the analysis");
  return value.get<bool>() ? element("span", std::string("\u2713 ") + yes, R"(class="good")")
                           : element("span", std::string("\u2717 ") + no, R"(class="bad")");
}

} // namespace hebe::report
