#include "cli/tune_report.hpp"

#include "cli/parts_report.hpp"
#include "tune/tune_verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hebe::cli {
namespace {

std::string text_of(const Json& candidate) {
  return candidate.at("name").get<std::string>() + " " + candidate.at("configuration").dump();
}

std::string effect(const Json& e) {
  return fmt::format("{:+.3f} % [{:+.3f}, {:+.3f}]", e.at("percent").get<double>(),
                     e.at("low_percent").get<double>(), e.at("high_percent").get<double>());
}

// Of host code: its meter is not the board's.
std::string by_meter(const Json& cost) {
  return cost.contains("meter") ? " by " + cost.at("meter").at("name").get<std::string>() : "";
}

void tell_candidates(const Context& c, const Json& shape) {
  constexpr std::size_t kShown = 10;
  std::vector<const Json*> measured;
  std::map<std::string, int> others;
  for (const auto& one : shape.at("candidates"))
    if (!one.at("cost").is_null())
      measured.push_back(&one);
    else
      ++others[one.at("state").get<std::string>()];
  const auto objective = [](const Json* j) {
    return j->at("cost").at("objective").at("value").get<double>();
  };
  std::ranges::stable_sort(measured, {}, objective);
  for (std::size_t i = 0; i < std::min(kShown, measured.size()); ++i) {
    const auto& m = *measured[i];
    const auto& e = m.at("cost").at("energy_nj");
    c.print(fmt::format("  {:>14.0f} nJ [{:.0f}, {:.0f}]  {:>12.0f} ns  {:<12} {}",
                        e.at("value").get<double>(), e.at("low").get<double>(),
                        e.at("high").get<double>(),
                        m.at("cost").at("time_ns").at("value").get<double>(),
                        m.at("state") == "dropped" ? fmt::format("rung {}", m.at("rung").get<int>())
                                                   : m.at("state").get<std::string>(),
                        text_of(m) + by_meter(m.at("cost"))));
  }
  if (measured.size() > kShown) c.print(fmt::format("  and {} more", measured.size() - kShown));
  for (const auto& [state, count] : others) c.print(fmt::format("  {}: {}", state, count));
  for (const auto& one : shape.at("candidates"))
    if (one.at("state") == "failed")
      c.print("  failed: " + text_of(one) + ": " + one.at("why").at("what").get<std::string>());
}

void tell_finalists(const Context& c, const Json& shape) {
  const auto& f = shape.at("finalists");
  const auto& all = shape.at("candidates");
  const auto named = [&](const char* key) { return text_of(all.at(f.at(key).get<std::size_t>())); };
  const bool stays = f.at("is_baseline");
  c.print(fmt::format("  choice: {}{}", named("choice"), stays ? " (the baseline)" : ""));
  c.print("    " + f.at("why").get<std::string>());
  const auto& first = f.at("runs").at(0);
  if (first.at("a") != first.at("b"))
    c.print(fmt::format("    {} against the baseline, idle power included: energy {}, latency {}{}",
                        text_of(all.at(first.at("b").get<std::size_t>())),
                        effect(first.at("energy")), effect(first.at("latency")),
                        first.at("qualified").get<bool>() ? "" : " (not qualified as evidence)"));
  if (!f.at("latency_choice_differs").get<bool>()) {
    c.print("  the latency choice is the same");
  } else if (f.contains("not_compared")) {
    c.print(fmt::format("  the latency choice is {}, and no pair compares the two: {}",
                        named("latency_choice"),
                        f.at("not_compared").at("what").get<std::string>()));
  } else if (f.at("against_latency_choice").is_null()) {
    c.print(fmt::format("  the latency choice is {}: one of them runs on the host, so that nothing "
                        "pairs them",
                        named("latency_choice")));
  } else {
    const auto& r = f.at("runs").at(f.at("against_latency_choice").get<std::size_t>());
    // The run may have the two the other way round.
    const bool as_is = r.at("b") == f.at("choice");
    c.print(fmt::format("  the latency choice is {}: {}, in pairs, idle power included, energy {}, "
                        "latency {}",
                        named("latency_choice"),
                        as_is ? "the choice against it" : "it against the choice",
                        effect(r.at("energy")), effect(r.at("latency"))));
    // The search ranks by what a launch costs beyond the idle board, pairs compare all of it.
    const auto& e = r.at("energy");
    if (as_is ? e.at("low_percent") > 0 : e.at("high_percent") < 0)
      c.print("  beyond the idle board the choice costs less, idle power included the latency "
              "choice does: with a fixed rate of launches take the former, on a board that is "
              "never idle the latter");
  }
}

void tell_shape(const Context& c, const Json& shape, const std::string& provenance) {
  c.print(fmt::format("{} ({})", shape.at("name").get<std::string>(),
                      shape.at("bucket").get<std::string>()));
  if (!shape.at("voided").is_null()) {
    c.print("  voided, it has no row: " + shape.at("voided").at("what").get<std::string>());
    return;
  }
  const auto& s = shape.at("search");
  c.print(fmt::format("  {} costs beyond an idle board of {:.1f} W ({})", provenance,
                      s.at("idle").at("mean_w").get<double>(),
                      s.at("idle").at("state").get<std::string>()));
  tell_candidates(c, shape);
  tell_finalists(c, shape);
  c.print(fmt::format("  search: {} rung{}, {}; {:.1f} s of windows ({:.1f} s with all that they "
                      "need), {:.1f} s if every candidate had been measured as long",
                      s.at("rungs").get<int>(), s.at("rungs") == 1 ? "" : "s",
                      s.at("stopped").get<std::string>(), s.at("measured_s").get<double>(),
                      s.at("spent_s").get<double>(), s.at("exhaustive_measured_s").get<double>()));
}

} // namespace

void tell_tune_preview(const Context& c, const Json& preview) {
  if (c.json) return c.print_json(preview);
  double all = 0;
  for (const auto& shape : preview.at("shapes")) {
    const double search = shape.at("search_s"), finalists = shape.at("finalists_s");
    all += search + finalists;
    c.print(fmt::format("{}: {} candidates, at least {:.0f} s of search and {:.0f} s of pairs; "
                        "nothing was run",
                        shape.at("name").get<std::string>(), shape.at("candidates").size(), search,
                        finalists));
    for (const auto& one : shape.at("candidates"))
      c.print(fmt::format("  {:<12} {}", one.at("state").get<std::string>(), text_of(one)));
  }
  c.print(fmt::format("all shapes: {:.0f} s of the board at least; compiling, warm-ups that wait "
                      "for it to settle, longer windows and second pairs come on top",
                      all));
}

int report_tune(const Context& c, const tune::TuneOutcome& o) {
  for (const auto& shape : o.shapes)
    if (shape.voided) tell("hebe: " + to_text(*shape.voided) + "\n");
  if (c.json) {
    c.print_json({{"tune", o.record},
                  {"id", o.record_id},
                  {"profile", o.profile_file.string()},
                  {"record", o.record_file.string()}});
  } else {
    c.print(fmt::format(
        "tune {}: {} of {} in {}, by {}", o.record.at("name").get<std::string>(),
        o.record.at("operation").get<std::string>(), o.record.at("dtype").get<std::string>(),
        o.record.at("provenance").get<std::string>(), o.record.at("objective").get<std::string>()));
    for (const auto& shape : o.record.at("shapes")) tell_shape(c, shape, o.record.at("provenance"));
    c.print("profile: " + o.profile_file.string());
    c.print("record:  " + o.record_file.string());
  }
  if (o.interrupted()) return static_cast<int>(ExitCode::interrupted);
  return static_cast<int>(o.first_void() ? ExitCode::unfit_environment : ExitCode::done);
}

int verify_tune(const Context& c, const std::string& name) {
  const evidence::DataRoot root(c.data_root);
  const auto record = tune::find_tune(root, name);
  if (!record) return c.refused(record.error());
  const auto report = tune::verify_tune_and_profile(root, *record, tune::sealed_finalists(root));
  if (!report) return c.refused(report.error());
  return report_parts(c, {{"tune", record->id}, {"record", record->file.string()}}, *report);
}

} // namespace hebe::cli
