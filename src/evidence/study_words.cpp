#include "evidence/study_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::evidence {
namespace {

// From this share of the time on, a power limit or a throttle is worth a sentence.
constexpr double kSeldom = 0.01, kMostly = 0.9;

// Three figures, and no exponents.
std::string figures(double x) {
  const double size = std::abs(x);
  if (size >= 100) return fmt::format("{:.0f}", x);
  if (size < 1e-4) return "0.0000";
  return fmt::format("{:.3g}", x);
}
std::string with_sign(double x) { return (x >= 1e-4 ? "+" : "") + figures(x); }

// As many decimals as two figures of the interval's half width have.
int places_of(double half_width) {
  if (!(half_width > 0)) return 4;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(half_width))), 1, 4);
}

double number(const Json& of, const char* member) { return of.at(member).get<double>(); }

class Sentences {
public:
  Sentences(const Json& contrast, const StoredRun& run)
      : c_(contrast), run_(run), a_(contrast.at("a")), b_(contrast.at("b")),
        arm_a_(contrast.at("arms").at("A")), arm_b_(contrast.at("arms").at("B")) {}

  std::vector<std::string> all() {
    say(effect());
    if (c_.at("verdict") != "invalid") say(disagreement());
    say(limits());
    say(mechanism());
    say(floor());
    say(standing());
    return std::move(out_);
  }

private:
  void say(std::string sentence) {
    if (!sentence.empty()) out_.push_back(std::move(sentence));
  }

  std::string verdict_of(const char* quantity) const { return c_.at(quantity).at("verdict"); }
  double margin(const char* quantity) const {
    return number(run_.plan.at("margins"),
                  quantity == std::string("latency") ? "latency_percent" : "energy_percent");
  }
  std::string level() const {
    return fmt::format("{} % interval", figures(100 * number(run_.plan.at("analysis"), "level")));
  }

  static int places(const Json& e) {
    return places_of((number(e, "high_percent") - number(e, "low_percent")) / 2);
  }

  // "-0.31 % (-0.90 to +0.24 %, 95 % interval)"
  std::string undirected(const Json& e) const {
    return fmt::format("{:+.{}f} % ({:+.{}f} to {:+.{}f} %, {})", number(e, "effect_percent"),
                       places(e), number(e, "low_percent"), places(e), number(e, "high_percent"),
                       places(e), level());
  }
  // "5.71 % less energy a launch than baseline (5.65 to 5.77 % less, 95 % interval)"
  std::string directed(const Json& e, const std::string& of) const {
    const bool less = e.at("verdict") == "lower";
    const double low = std::abs(number(e, "low_percent")),
                 high = std::abs(number(e, "high_percent"));
    const char* way = less ? "less" : "more";
    return fmt::format("{:.{}f} % {} {} ({:.{}f} to {:.{}f} % {}, {})",
                       std::abs(number(e, "effect_percent")), places(e), way, of,
                       std::min(low, high), places(e), std::max(low, high), places(e), way,
                       level());
  }

  std::string time_and_power() const {
    const auto &t = c_.at("latency"), &p = c_.at("power");
    const auto of_time = verdict_of("latency"), of_power = verdict_of("power");
    std::string text;
    if (of_time == "lower" || of_time == "higher")
      text = fmt::format("takes {} % {} time", figures(std::abs(number(t, "effect_percent"))),
                         of_time == "lower" ? "less" : "more");
    else if (of_time == "equivalent")
      text = fmt::format("takes the same time within {} % ({} %)", figures(margin("latency")),
                         with_sign(number(t, "effect_percent")));
    else
      text = "takes a time that is not decided: " + undirected(t);
    text += "; power ";
    if (of_power == "lower" || of_power == "higher")
      text += fmt::format("{} by {} %", of_power == "lower" ? "falls" : "rises",
                          figures(std::abs(number(p, "effect_percent"))));
    else if (of_power == "equivalent")
      text += fmt::format("is the same within {} % ({} %)", figures(margin("power")),
                          with_sign(number(p, "effect_percent")));
    else
      text += "is not decided: " + undirected(p);
    return text;
  }

  std::string effect() const {
    const auto verdict = c_.at("verdict").get<std::string>();
    const auto& e = c_.at("energy");
    const auto reason = c_.at("reason").get<std::string>();
    if (verdict == "invalid")
      return fmt::format("Nothing can be said of {} against {}: the run is invalid ({}).", b_, a_,
                         reason.empty() ? "no reason is recorded" : reason);
    if (verdict == "inconclusive")
      return fmt::format(
          "Whether {} costs more or less energy a launch than {} is not decided: {}. "
          "It {}.",
          b_, a_, undirected(e), time_and_power());
    if (verdict == "equivalent")
      return fmt::format("{} and {} cost the same energy a launch within {} %: {}. {} {}.", b_, a_,
                         figures(margin("energy")), undirected(e), b_, time_and_power());
    return fmt::format("{} costs {} and {}.", b_, directed(e, "energy a launch than " + a_),
                       time_and_power());
  }

  bool disagree() const {
    const auto e = verdict_of("energy"), t = verdict_of("latency");
    const auto decided = [](const std::string& v) {
      return v == "lower" || v == "higher" || v == "equivalent";
    };
    return c_.at("verdict") != "invalid" && decided(e) && decided(t) && e != t;
  }

  // Where energy and time do not go together: energy is power times time, so it is power.
  std::string disagreement() const {
    if (!disagree()) return {};
    const auto way = [](const std::string& verdict) {
      return verdict == "lower" ? "falls" : verdict == "higher" ? "rises" : "stays";
    };
    auto text = fmt::format("Energy and time do not go together: energy {} and time {}",
                            way(verdict_of("energy")), way(verdict_of("latency")));
    const auto &capped_a = arm_a_.at("power_capped_ratio"),
               &capped_b = arm_b_.at("power_capped_ratio");
    const auto power = with_sign(number(c_.at("power"), "effect_percent"));
    if (capped_a.is_null() || capped_b.is_null())
      text += ". Whether the board was at its power limit could not be read; power changes by " +
              power + " %.";
    else if (capped_a <= kSeldom && capped_b <= kSeldom)
      text += fmt::format(". No power cap was seen: power is free to move, and changes by {} %.",
                          power);
    else
      text += fmt::format(". Power changes by {} %.", power);
    return text + clocks();
  }

  std::string clocks() const {
    const auto both = [&](const char* member) {
      const auto &a = arm_a_.at(member), &b = arm_b_.at(member);
      return a.is_null() || b.is_null() ? std::string()
                                        : fmt::format("{:.0f} MHz under {} and {:.0f} MHz under {}",
                                                      a.get<double>(), a_, b.get<double>(), b_);
    };
    const auto sm = both("sm_clock_mhz"), memory = both("memory_clock_mhz");
    if (sm.empty()) return " The SM clock could not be read.";
    return " The SM clock was " + sm + (memory.empty() ? "" : ", the memory clock " + memory) + ".";
  }

  // The board at a limit, whichever way the effect goes.
  std::string limits() const {
    const auto share = [](const Json& arm, const char* member) {
      const auto& v = arm.at(member);
      return v.is_null() ? 0.0 : std::min(1.0, v.get<double>());
    };
    const auto said = [&](const char* member) {
      return fmt::format("{:.0f} % of {}'s time and {:.0f} % of {}'s", 100 * share(arm_a_, member),
                         a_, 100 * share(arm_b_, member), b_);
    };
    const auto most = [&](const char* member) {
      return std::max(share(arm_a_, member), share(arm_b_, member));
    };
    std::string text;
    if (most("power_capped_ratio") > kSeldom) {
      const bool both = std::min(share(arm_a_, "power_capped_ratio"),
                                 share(arm_b_, "power_capped_ratio")) >= kMostly;
      text = fmt::format(
          "The board was at its power limit for {}: there power is fixed, and energy "
          "follows time{}.",
          said("power_capped_ratio"), both ? "" : "; below it, power is the kernel's own");
    }
    if (most("throttled_ratio") > kSeldom)
      text += fmt::format("{}Its clocks were held down for another reason for {}.",
                          text.empty() ? "" : " ", said("throttled_ratio"));
    return text;
  }

  // --- beside it ---------------------------------------------------------------------------------

  static Json at(const Json& of, std::initializer_list<const char*> path) {
    const Json* here = &of;
    for (const char* member : path) {
      if (!here->is_object() || !here->contains(member)) return {};
      here = &here->at(member);
    }
    return here->is_number() ? *here : Json();
  }
  static std::string shown(const Json& number) {
    return number.is_null() ? "unknown" : fmt::format("{:.0f}", number.get<double>());
  }
  static Json loaded(const Json& mechanism) {
    const auto bytes = at(mechanism, {"bytes", "loaded"}),
               programs = at(mechanism, {"bytes", "programs"}),
               counted = at(mechanism, {"bytes", "programs_counted"});
    if (bytes.is_null() || mechanism.at("bytes").value("counted_at", Json()).is_null())
      return bytes;
    if (programs.is_null() || counted.is_null() || counted == 0) return {};
    return bytes.get<double>() * programs.get<double>() / counted.get<double>();
  }

  std::string mechanism() const {
    const auto &a = arm_a_.at("mechanism"), &b = arm_b_.at("mechanism");
    if (!a.is_object() || !b.is_object())
      return "What its qualification found of the kernels is not in the plan.";
    const char *level = "ttgir", *level_name = "TTGIR";
    for (const auto& [deeper, name] : {std::pair("ptx", "PTX"), {"sass", "SASS"}})
      if (!at(a, {"loads", deeper}).is_null() && !at(b, {"loads", deeper}).is_null())
        level = deeper, level_name = name;
    const auto both = [&](std::initializer_list<const char*> path) {
      return shown(at(a, path)) + " and " + shown(at(b, path));
    };
    const auto scaled = [](const Json& m) {
      const auto bytes = m.value("bytes", Json());
      return bytes.is_object() && !bytes.value("counted_at", Json()).is_null();
    };
    return fmt::format("Beside it, in {} and {}: static global loads {} ({}), registers {}, blocks "
                       "a multiprocessor "
                       "{}, bytes loaded a launch {} and {}{}.",
                       a_, b_, both({"loads", level}), level_name, both({"registers"}),
                       both({"blocks_per_multiprocessor"}), shown(loaded(a)), shown(loaded(b)),
                       scaled(a) || scaled(b) ? " (scaled from a smaller launch of the same code)"
                                              : "");
  }

  std::string floor() const {
    const auto &a = arm_a_.at("floor"), &b = arm_b_.at("floor");
    const auto why = [](const Json& f) {
      return f.at("provenance").get<std::string>() + ": " + f.at("how").get<std::string>();
    };
    const auto distance = [&](const std::string& variant, const Json& f, bool say_why) {
      if (f.contains("unavailable"))
        return fmt::format("how far {} is from it is not known ({})", variant,
                           f.at("unavailable").get<std::string>());
      return fmt::format("{} takes {:.2f} times its energy and {:.2f} times its time{}", variant,
                         number(f, "energy_ratio"), number(f, "time_ratio"),
                         say_why ? " (" + why(f) + ")" : std::string());
    };
    const bool alike = !a.contains("unavailable") && !b.contains("unavailable") && why(a) == why(b);
    return fmt::format("Against a plain copy of the same bytes, {}; {}.", distance(a_, a, !alike),
                       distance(b_, b, true));
  }

  std::string standing() const {
    if (run_.provenance() != "measured")
      return "A " + run_.provenance() + " run: it says nothing of a GPU.";
    if (!run_.plan.at("tier").value("is_evidence", false))
      return "A smoke run: it checks the plumbing and is never evidence.";
    if (!c_.at("qualified").get<bool>())
      return "Not qualified: the study's conditions and the run's say what fails.";
    return {};
  }

  const Json& c_;
  const StoredRun& run_;
  const std::string a_, b_;
  const Json &arm_a_, &arm_b_;
  std::vector<std::string> out_;
};

} // namespace

std::vector<std::string> study_words(const Json& contrast, const StoredRun& run) {
  return Sentences(contrast, run).all();
}

} // namespace hebe::evidence
