#include "tune/finalist_run.hpp"

#include "evidence/stored_run.hpp"
#include "tune/same_identity.hpp"

#include <fmt/format.h>

namespace hebe::tune {
namespace {

class FinalistCheck {
public:
  FinalistCheck(evidence::VerifyReport& report, const FinalistPair& pair)
      : report_(report), pair_(pair) {}

  Status compare(const std::filesystem::path& directory) {
    HEBE_TRY(const auto run, evidence::read_stored_run(directory));
    const auto where = report_.directory.string();
    HEBE_TRY(const auto plan, measure::plan_from(run.plan, where + "/plan.json"));
    HEBE_TRY(const auto acquisition,
             measure::acquisition_from(run.acquisition, where + "/windows.jsonl:1"));
    arms(plan);
    protocol(plan);
    platform(run);
    must_be("meter", pair_.tune.meter.name, acquisition.samples.name);
    must_be("provenance", std::string(name_of(pair_.tune.place.provenance)), run.provenance());
    return {};
  }

private:
  void must_be(const std::string& what, const Json& recorded, const Json& found) {
    if (recorded == found) return;
    report_.problems.push_back({RefusalCode::analysis_mismatch,
                                fmt::format("{}: the tune recorded {}, its run has {}", what,
                                            recorded.dump(), found.dump()),
                                report_.directory.string(),
                                "this is not the run that the tune made: restore both from a copy",
                                {}});
  }

  void arms(const measure::Plan& plan) {
    const auto &a = pair_.run.at("a"), &b = pair_.run.at("b");
    must_be("kind", a == b ? "aa" : "ab", plan.kind);
    for (const int arm : {0, 1}) {
      const auto& candidate =
          pair_.shape.at("candidates").at((arm == 0 ? a : b).get<std::size_t>());
      const auto name = std::string("arm ") + (arm == 0 ? "A" : "B");
      must_be(name + "'s artifact", candidate.at("artifact_sha256"),
              plan.cubins[static_cast<std::size_t>(arm)]);
      const auto& subject = measure::subject_of(plan, arm);
      const auto& configuration = candidate.at("configuration");
      // A library's algorithms are one file: there the configuration tells them apart.
      if (const auto& made = subject.at("compile"); made.contains("configuration"))
        must_be(name + "'s configuration", configuration, made.at("configuration"));
      const auto parameters = subject.at("launch").value("parameters", Json::object());
      for (const auto& [key, value] : configuration.items())
        if (parameters.contains(key)) must_be(name + "'s " + key, value, parameters.at(key));
    }
  }

  void protocol(const measure::Plan& plan) {
    const auto& due = pair_.tune.spec.protocol;
    must_be("tier", due.tier.name, plan.tier.name);
    must_be("pairs", due.pairs, plan.pairs);
    must_be("window_s", due.window.value(), plan.window.value());
    must_be("warm_up_s", due.warm_up.value(), plan.warm_up.value());
    must_be("energy margin", due.margins.energy_percent, plan.margins.energy_percent);
    must_be("latency margin", due.margins.latency_percent, plan.margins.latency_percent);
    must_be("seed",
            pair_.tune.seed_of(fmt::format("{}.{}.{}", pair_.shape.at("name").get<std::string>(),
                                           pair_.run.at("a").get<std::size_t>(),
                                           pair_.run.at("b").get<std::size_t>())),
            plan.seed);
  }

  void platform(const evidence::StoredRun& run) {
    const auto& place = pair_.tune.place;
    const auto fact = [&](const char* name, const std::string& recorded) {
      for (const auto& f : run.environment.at("facts")) {
        if (f.at("name") != name || !f.contains("value") || !f.at("value").is_string()) continue;
        const auto found = f.at("value").get<std::string>();
        if (!same_identity(recorded, found)) must_be(name, recorded, found);
      }
    };
    fact("device.name", place.board);
    fact("device.uuid", *place.platform.board_uuid);
    fact("board.driver", place.platform.driver);
    fact("host.distribution", place.platform.os);
    fact("hebe.version", place.platform.hebe);
  }

  evidence::VerifyReport& report_;
  const FinalistPair& pair_;
};

} // namespace

std::optional<campaign::JobOutcome> check_finalist(evidence::VerifyReport& report,
                                                   const std::filesystem::path& directory,
                                                   const FinalistPair& pair) {
  auto found = evidence::verify_run(directory);
  if (!found) {
    report.problems.push_back(std::move(found).error());
    return std::nullopt;
  }
  report = std::move(*found);
  if (const auto due = pair.run.at("seal").get<std::string>(); report.seal != due)
    report.problems.push_back({RefusalCode::digest_mismatch,
                               fmt::format("recorded seal {}, found {}", due, report.seal),
                               report.directory.string(),
                               "restore the run from a copy",
                               {}});
  if (!report.valid() || !report.recomputed) return std::nullopt;
  if (auto compared = FinalistCheck(report, pair).compare(directory); !compared)
    report.problems.push_back(std::move(compared).error());
  if (!report.valid()) return std::nullopt;
  report.passed.push_back("tune: kernels, protocol, seed, board and meter are the record's");
  campaign::JobOutcome out;
  out.run = {directory, directory.filename().string(), report.seal, 0};
  out.analysis = *report.recomputed;
  return out;
}

} // namespace hebe::tune
