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

// Whether the search charged launches with the idle board's power.
bool idle_included(const Json& record) { return record.contains("idle_power"); }

void tell_candidates(const Context& c, const Json& shape, const char* cost) {
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
    const auto& e = m.at("cost").at(cost);
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
  }
}

// Where a search that left idle power out would have chosen otherwise with it. Of candidates that
// were measured apart: what pairs would say of them is not known.
void tell_idle_matters(const Context& c, const Json& shape) {
  const double idle = shape.at("search").at("idle").at("mean_w");
  const auto total = [&](const Json& candidate) {
    const auto& cost = candidate.at("cost");
    return cost.at("energy_nj").at("value").get<double>() +
           idle * cost.at("time_ns").at("value").get<double>();
  };
  const auto& choice =
      shape.at("candidates").at(shape.at("finalists").at("choice").get<std::size_t>());
  const Json* best = nullptr;
  for (const auto& one : shape.at("candidates"))
    if (!one.at("cost").is_null() && !one.at("cost").contains("meter") &&
        (best == nullptr || total(one) < total(*best)))
      best = &one;
  constexpr double kFloor = 0.995; // the search's own: what lies closer it does not tell apart
  if (best == nullptr || choice.at("cost").is_null() || choice.at("cost").contains("meter") ||
      total(*best) > kFloor * total(choice))
    return;
  c.print(
      fmt::format("  idle power included, the search had {} at {:.0f} nJ and {:.0f} ns, the "
                  "choice at {:.0f} nJ: idle_power = \"included\" in the specification ranks so",
                  text_of(*best), total(*best),
                  best->at("cost").at("time_ns").at("value").get<double>(), total(choice)));
}

void tell_shape(const Context& c, const Json& shape, const Json& record) {
  c.print(fmt::format("{} ({})", shape.at("name").get<std::string>(),
                      shape.at("bucket").get<std::string>()));
  if (!shape.at("voided").is_null()) {
    c.print("  voided, it has no row: " + shape.at("voided").at("what").get<std::string>());
    return;
  }
  const auto& s = shape.at("search");
  // With energy x time the objective is no energy: then costs are shown beyond idle.
  const bool charged = idle_included(record), total = charged && record.at("objective") != "edp";
  c.print(fmt::format("  {} costs {} {:.1f} W ({})", record.at("provenance").get<std::string>(),
                      total ? "with the idle board's" : "beyond an idle board of",
                      s.at("idle").at("mean_w").get<double>(),
                      s.at("idle").at("state").get<std::string>()));
  tell_candidates(c, shape, total ? "objective" : "energy_nj");
  tell_finalists(c, shape);
  if (!charged && record.at("objective") != "edp") tell_idle_matters(c, shape);
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
        "tune {}: {} of {} in {}, by {}{}", o.record.at("name").get<std::string>(),
        o.record.at("operation").get<std::string>(), o.record.at("dtype").get<std::string>(),
        o.record.at("provenance").get<std::string>(), o.record.at("objective").get<std::string>(),
        idle_included(o.record) ? ", idle power included" : ""));
    for (const auto& shape : o.record.at("shapes")) tell_shape(c, shape, o.record);
    c.print("profile: " + o.profile_file.string());
    c.print("record:  " + o.record_file.string());
  }
  bool kept = true;
  for (const auto& [key, row] : o.profile.rows()) {
    if (tune::within_its_bound(row)) continue;
    kept = false;
    if (!c.json)
      c.print(fmt::format("{}: NOT within the latency bound of {:.1f} ns: {} ns",
                          tune::text_of(key), *row.objective->latency_bound_ns, row.time_ns.value));
  }
  if (o.interrupted()) return static_cast<int>(ExitCode::interrupted);
  return static_cast<int>(o.first_void() ? ExitCode::unfit_environment
                          : kept         ? ExitCode::done
                                         : ExitCode::claim_fails);
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
