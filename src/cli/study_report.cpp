#include "cli/study_report.hpp"

#include "campaign/finished_study.hpp"
#include "cli/campaign_request.hpp"
#include "cli/parts_report.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

std::string effect(const Json& e) {
  return fmt::format("{:+.4f} % [{:+.4f}, {:+.4f}]", e.at("effect_percent").get<double>(),
                     e.at("low_percent").get<double>(), e.at("high_percent").get<double>());
}

void tell_contrast(const Context& c, const Json& k) {
  c.print(fmt::format("{}: {} against {} at {}: energy is {}{}", k.at("job").get<std::string>(),
                      k.at("b").get<std::string>(), k.at("a").get<std::string>(),
                      k.at("point").get<std::string>(), k.at("verdict").get<std::string>(),
                      k.at("qualified").get<bool>() ? "" : " (not qualified as evidence)"));
  for (const char* quantity : {"energy", "latency", "power"})
    c.print(fmt::format("  {:<8} {}", quantity, effect(k.at(quantity))));
  for (const auto& line : k.at("words")) c.print("  " + line.get<std::string>());
}

void tell_study_report(const Context& c, const campaign::FinishedStudy& study) {
  const auto& a = study.analysis;
  c.print(fmt::format("study {} ({}, {}): {}", a.at("study").at("name").get<std::string>(),
                      a.at("provenance").get<std::string>(), a.at("label").get<std::string>(),
                      a.at("study_qualified").get<bool>() ? "QUALIFIED" : "not qualified"));
  const auto& aa = a.at("aa");
  c.print(fmt::format("A/A: {}", aa.at("verdict").get<std::string>()));
  for (const char* quantity : {"energy", "latency"})
    c.print(fmt::format("  {:<8} {}", quantity, effect(aa.at(quantity))));
  for (const auto& k : a.at("contrasts")) tell_contrast(c, k);
  if (const auto& control = a.at("control"); !control.is_null()) {
    const auto& due = control.at("predicted").at("energy");
    c.print(fmt::format("control, {:.4g} % extra traffic: {}",
                        100 * control.at("fraction").get<double>(),
                        control.at("seen").get<bool>() ? "seen" : "NOT seen"));
    c.print(fmt::format("  energy   {}, predicted {:+.2f} % ({:+.2f} to {:+.2f})",
                        effect(control.at("energy")), due.at("percent").get<double>(),
                        due.at("low_percent").get<double>(), due.at("high_percent").get<double>()));
  }
  for (const auto& k : a.at("conditions"))
    if (!k.at("holds").get<bool>())
      c.print(fmt::format("  not met: {}: {}", k.at("name").get<std::string>(),
                          k.at("evidence").get<std::string>()));
  c.print("analysis: " + study.sealed.json.at("analysis").get<std::string>());
  c.print("dataset:  " + study.sealed.json.at("dataset").get<std::string>());
  c.print("page:     " + (study.sealed.directory / "page.html").string());
  c.print("study:    " + study.sealed.directory.string());
}

int exit_of(const Json& a) {
  const bool evidence = a.at("label") == "research" && a.at("provenance") == "measured";
  if (a.at("verdict") == "inconclusive") return static_cast<int>(ExitCode::inconclusive);
  const bool holds =
      a.at("claim_holds").get<bool>() && (!evidence || a.at("study_qualified").get<bool>());
  return static_cast<int>(holds ? ExitCode::done : ExitCode::claim_fails);
}

} // namespace

int report_study(const Context& c, const campaign::FrozenCampaign& campaign,
                 const campaign::SubmitOutcome& o) {
  for (const auto& r : o.work.refusals) cli::tell("hebe: " + to_text(r) + "\n");
  if (o.state.pending() > 0) return tell_pending(c, campaign, o, "study");
  const auto study =
      campaign::finish_study(evidence::DataRoot(c.data_root), campaign, o.state.study);
  if (!study) return c.refused(study.error());
  if (c.json)
    c.print_json({{"campaign", campaign.id},
                  {"pending", 0},
                  {"sealed_now", o.work.sealed_now},
                  {"study", study->sealed.id},
                  {"directory", study->sealed.directory.string()},
                  {"study_qualified", study->analysis.at("study_qualified")},
                  {"analysis_id", study->sealed.json.at("analysis")},
                  {"dataset", study->sealed.json.at("dataset")},
                  {"analysis", study->analysis}});
  else
    tell_study_report(c, *study);
  return exit_of(study->analysis);
}

int verify_study(const Context& c, const std::string& name) {
  const evidence::DataRoot root(c.data_root);
  const auto sealed = evidence::load_study(root, name);
  if (!sealed) return c.refused(sealed.error());
  const auto parts = campaign::verify_study(root, *sealed);
  if (!parts) return c.refused(parts.error());
  const bool whole = parts->valid() && parts->complete;
  return report_parts(
      c,
      {{"study", sealed->id},
       {"directory", sealed->directory.string()},
       {"study_qualified", whole ? sealed->json.at("study_qualified") : Json(nullptr)}},
      *parts);
}

} // namespace hebe::cli
