#include "cli/ladder_report.hpp"

#include "campaign/control_ladder.hpp"
#include "cli/campaign_request.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

void response(const Context& c, const char* name, const Json& r) {
  const auto& m = r.at("monotone");
  const auto number = [](const Json& v, const char* format) {
    return v.is_null() ? std::string("-") : fmt::format(fmt::runtime(format), v.get<double>());
  };
  c.print(fmt::format("  {:<8} slope {:.4f} ± {:.4f} % per 100 % extra [{:.4f}, {:.4f}]  intercept "
                      "{:+.4f} ± {:.4f} %  "
                      "R² {}  residual sd {:.4f} %",
                      name, r.at("slope_percent_per_100_percent").get<double>(),
                      r.at("slope_standard_error").get<double>(), r.at("slope_low").get<double>(),
                      r.at("slope_high").get<double>(), r.at("intercept_percent").get<double>(),
                      r.at("intercept_standard_error").get<double>(),
                      number(r.at("r_squared"), "{:.6f}"),
                      r.at("residual_sd_percent").get<double>()));
  c.print(fmt::format("           {} (largest fall {:.4f} %, trend p {}); lack of fit p {}",
                      m.at("holds").get<bool>() ? "monotone" : "NOT monotone",
                      m.at("largest_fall_percent").get<double>(), number(m.at("trend_p"), "{:.2g}"),
                      number(r.at("lack_of_fit").at("p"), "{:.2g}")));
}

void detection(const Context& c, const Json& d) {
  const auto& seen = d.at("smallest_fraction_seen");
  c.print(fmt::format("  smallest fraction seen by every run: {}",
                      seen.is_null() ? "none" : fmt::format("{:.4g} %", 100 * seen.get<double>())));
  const auto say = [&](const char* how, const Json& j) {
    const auto& f = j.at("fraction");
    c.print(fmt::format(
        "  in {:.0f} s of GPU time {}: {} pairs, extra traffic of {} is found 9 times "
        "in 10",
        d.at("budget_s").get<double>(), how, j.at("pairs").get<int>(),
        f.is_null() ? "no stated size" : fmt::format("{:.3g} %", 100 * f.get<double>())));
  };
  say("of pairs, after the warm-up", d.at("pairs_only"));
  say("with the warm-up", d.at("with_warm_up"));
}

void tell_ladder_report(const Context& c, const campaign::FinishedLadder& ladder) {
  const auto& a = ladder.analysis;
  c.print(fmt::format("control ladder: {} ({}, {})", a.at("verdict").get<std::string>(),
                      a.at("provenance").get<std::string>(), a.at("label").get<std::string>()));
  for (const auto& s : a.at("steps"))
    c.print(fmt::format(
        "  {:>8.3f} % extra: energy {:+.4f} %, latency {:+.4f} %, spread of {} runs {}; "
        "{} above 0",
        100 * s.at("fraction").get<double>(), s.at("mean_energy_percent").get<double>(),
        s.at("mean_latency_percent").get<double>(), s.at("runs").get<int>(),
        s.at("sd_energy_percent").is_null()
            ? std::string("-")
            : fmt::format("{:.4f} %", s.at("sd_energy_percent").get<double>()),
        s.at("runs_above_0").get<int>()));
  response(c, "energy", a.at("energy"));
  response(c, "latency", a.at("latency"));
  detection(c, a.at("detection"));
  if (const double capped = a.at("power_capped_s"); capped > 0)
    c.print(
        fmt::format("  the board was at its power limit for {:.3g} s: its clocks fall there, so "
                    "the extra traffic shows as time and not as power",
                    capped));
  c.print("analysis: " + ladder.id);
  c.print("dataset:  " + ladder.dataset);
  c.print("plot:     " + ladder.plot.string());
}

} // namespace

int report_ladder(const Context& c, const campaign::FrozenCampaign& campaign,
                  const campaign::SubmitOutcome& o) {
  for (const auto& r : o.work.refusals) cli::tell("hebe: " + to_text(r) + "\n");
  if (o.state.pending() > 0) return tell_pending(c, campaign, o, "ladder");
  const auto ladder =
      campaign::finish_ladder(evidence::DataRoot(c.data_root), campaign, o.state.ladder);
  if (!ladder) return c.refused(ladder.error());
  if (c.json)
    c.print_json({{"campaign", campaign.id},
                  {"pending", 0},
                  {"sealed_now", o.work.sealed_now},
                  {"ladder", ladder->id},
                  {"analysis", ladder->analysis},
                  {"dataset", ladder->dataset},
                  {"plot", ladder->plot.string()}});
  else
    tell_ladder_report(c, *ladder);
  if (ladder->analysis.at("claim_holds").get<bool>()) return static_cast<int>(ExitCode::done);
  return static_cast<int>(ladder->analysis.at("verdict") == "inconclusive" ? ExitCode::inconclusive
                                                                           : ExitCode::claim_fails);
}

} // namespace hebe::cli
