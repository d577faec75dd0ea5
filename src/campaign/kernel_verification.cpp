#include "campaign/kernel_verification.hpp"

#include "kernel/artifact_store.hpp"
#include "qualify/mechanism.hpp"
#include "qualify/static_checks.hpp"
#include "qualify/trial.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {
namespace {

/// What an account says of launches and bits; its words are for people and may become better.
Json demands(const Json& account) {
  Json contracts = Json::object();
  for (auto contract : account.at("contracts")) {
    contract.erase("why");
    contracts[contract.dump()] = true;
  }
  return {{"exactness", account.at("exactness")}, {"contracts", contracts}};
}

class Verifier {
public:
  Verifier(const evidence::DataRoot& root, const evidence::StoredRecord& stored)
      : store_(root.path()), stored_(stored) {
    report_.directory = stored.file;
    report_.seal = stored.id;
    report_.passed = {"content name", "schema"};
  }

  evidence::VerifyReport report() {
    for (const auto* each : points()) {
      const auto& point = *each;
      const auto& name = point.at("name").get_ref<const std::string&>();
      artifacts(name, point.at("baseline"));
      for (const auto& v : point.at("candidates")) {
        artifacts(name, v);
        rewrite_again(name, point.at("baseline"), v);
        static_again(name, point.at("baseline"), v);
        qualified_as_said(name, v, false);
      }
      qualified_as_said(name, point.at("baseline"), true);
    }
    as_specified();
    if (report_.problems.empty()) {
      report_.passed.push_back(fmt::format("{} artifacts by digest", artifacts_));
      report_.passed.push_back(fmt::format(
          "{} rewrites done again from the stored baselines, the same bytes", rewrites_));
      report_.passed.push_back("static mechanisms read again from the artifacts");
      report_.passed.push_back("checks are complete; verdicts and cases follow from them and from "
                               "the specification");
    }
    report_.not_checked.push_back(
        "what the kernels did when they ran, and who says so: run the qualification again");
    return report_;
  }

private:
  /// Of a qualification, or of the cases of a recon that were not refused.
  std::vector<const Json*> points() const {
    std::vector<const Json*> out;
    if (stored_.json.contains("points"))
      for (const auto& point : stored_.json.at("points")) out.push_back(&point);
    else
      for (const auto& row : stored_.json.at("cases"))
        if (!row.at("point").is_null()) out.push_back(&row.at("point"));
    return out;
  }

  void bad(RefusalCode code, const std::string& what, const std::string& where) {
    report_.problems.push_back(
        {code, what, where, "restore the record's artifacts from a copy", {}});
  }

  std::string place(const std::string& point, const Json& v) const {
    return point + ", " + v.at("name").get<std::string>();
  }

  void artifacts(const std::string& point, const Json& v) {
    if (v.at("artifacts").is_null()) return;
    for (const auto& [kind, digest] : v.at("artifacts").items()) {
      const auto bytes = store_.get(digest.get<std::string>());
      if (!bytes)
        bad(bytes.error().code, kind + ": " + bytes.error().what, place(point, v));
      else
        ++artifacts_;
    }
  }

  // The passes are deterministic: what is stored must come out of the stored baseline again.
  void rewrite_again(const std::string& point, const Json& baseline, const Json& v) {
    if (v.at("passes").empty() || v.at("artifacts").is_null()) return;
    const auto where = place(point, v);
    const auto text = store_.get(baseline.at("artifacts").at("ttgir").get<std::string>());
    const auto launch = kernel::LaunchSpec::from_json(baseline.at("launch"), where);
    const auto requests = rewrite::requests_from(v.at("passes"), where);
    if (!text || !launch || !requests) {
      const auto& why = !text ? text.error() : !launch ? launch.error() : requests.error();
      return bad(why.code, why.what, where);
    }
    const auto again = rewrite::apply(*text, *requests, qualify::facts_of(*launch), where);
    if (!again) return bad(again.error().code, again.error().what, where);
    const auto stored = store_.get(v.at("artifacts").at("ttgir").get<std::string>());
    if (!stored || *stored != again->ttgir)
      return bad(RefusalCode::analysis_mismatch,
                 "its TTGIR is not what its passes make of the baseline", where);
    if (demands(rewrite::to_json(again->account)) != demands(v.at("rewrite")))
      return bad(RefusalCode::analysis_mismatch,
                 "its rewrite rests on other contracts than are recorded", where);
    ++rewrites_;
  }

  /// What must have been looked at of a kernel, by its kind; the rest depends on what was asked.
  static std::vector<std::string> due(const Json& v, bool baseline) {
    std::vector<std::string> out = {"no_side_effects"};
    if (!baseline) out.insert(out.end(), {"builds", "artifacts_distinct", "no_spills"});
    if (!v.at("passes").empty()) out.insert(out.end(), {"rewrite_applied", "contracts_hold"});
    for (const auto& row : qualify::no_gpu_trial({}))
      if (!baseline || row.name != "bits_equal") out.push_back(row.name);
    out.insert(out.end(), {"inputs_are_numbers", "accesses_in_bounds"});
    return out;
  }

  /// Checks by a GPU and by the interpreter; both are due, whatever came of them.
  static std::size_t rows_of(const Json& checks, const std::string& name) {
    return static_cast<std::size_t>(
        std::ranges::count_if(checks, [&](const Json& c) { return c.at("name") == name; }));
  }

  void qualified_as_said(const std::string& point, const Json& v, bool baseline) {
    const auto where = place(point, v);
    const auto& checks = v.at("checks");
    bool holds = !checks.empty() && !v.at("artifacts").is_null();
    Json failed = Json::array(), not_run = Json::array();
    for (const auto& c : checks) {
      const auto text =
          fmt::format("{} ({})", c.at("name").get<std::string>(), c.at("by").get<std::string>());
      if (c.at("outcome") == "failed") failed.push_back(text);
      if (c.at("outcome") == "not_run") not_run.push_back(text);
      holds = holds && (c.at("outcome") == "passed" || (!gpu_ && c.at("by") == "GPU"));
      if (gpu_ && c.at("by") == "GPU")
        bad(RefusalCode::analysis_mismatch, "a check by no GPU in a record of a GPU", where);
    }
    if (holds != v.at("qualified").get<bool>() || failed != v.at("failed") ||
        not_run != v.at("not_run"))
      bad(RefusalCode::analysis_mismatch, "its verdict is said against its checks", where);
    if (v.at("artifacts").is_null()) return;
    for (const auto& name : due(v, baseline)) {
      const bool twice = name != "accesses_in_bounds" && name != "no_side_effects" &&
                         name != "builds" && name != "artifacts_distinct" && name != "no_spills" &&
                         name != "rewrite_applied" && name != "contracts_hold" &&
                         !(name == "inputs_are_numbers" && !gpu_);
      if (rows_of(checks, name) < (twice ? 2U : 1U))
        bad(RefusalCode::analysis_mismatch, "the check " + name + " is missing", where);
    }
  }

  // What the artifacts say, read again: distinct from the baseline's, and the static mechanism.
  void static_again(const std::string& point, const Json& baseline, const Json& v) {
    if (v.at("artifacts").is_null() || baseline.at("artifacts").is_null()) return;
    const auto where = place(point, v);
    const auto launch = kernel::LaunchSpec::from_json(v.at("launch"), where);
    if (!launch) return bad(launch.error().code, launch.error().what, where);
    for (const auto& c : v.at("checks")) {
      if (c.at("name") != "artifacts_distinct" || c.at("outcome") != "passed") continue;
      for (const auto& [kind, digest] : v.at("artifacts").items())
        if (kind != "source" && baseline.at("artifacts").value(kind, "") == digest)
          bad(RefusalCode::analysis_mismatch, "its " + kind + " is the baseline's", where);
    }
    qualify::KernelTexts texts;
    const auto text = [&](const char* kind) {
      const auto found = v.at("artifacts").find(kind);
      const auto bytes = found == v.at("artifacts").end() ? Result<std::string>(std::string())
                                                          : store_.get(found->get<std::string>());
      return bytes ? *bytes : std::string();
    };
    texts.ttgir = text("ttgir");
    texts.ptx = text("ptx");
    texts.sass = text("sass");
    const auto again =
        qualify::mechanism_of(*launch, std::move(texts), v.at("resources"), std::nullopt);
    for (const auto* part : {"ttgir", "ptx", "sass", "occupancy"})
      if (v.at("mechanism").at(part) != again.at(part))
        bad(RefusalCode::analysis_mismatch,
            std::string("its mechanism (") + part + ") is not what its artifacts say", where);
  }

  // The record is of the specification that it holds: its points, candidates, passes, contrasts.
  void as_specified() {
    const auto& spec = stored_.json.at("spec");
    if (!spec.contains("points")) return; // a recon's cases
    const auto wrong = [&](const std::string& what) {
      bad(RefusalCode::analysis_mismatch, what + " is not as its specification has it",
          stored_.file.string());
    };
    bool primary_holds = true, primary_seen = false, all_hold = true;
    for (const auto& point : stored_.json.at("points")) {
      const auto& name = point.at("name");
      if (std::ranges::none_of(spec.at("points"), [&](auto& p) { return p.at("name") == name; }))
        wrong("point " + name.dump());
      std::size_t due = 0;
      for (const auto& c : spec.at("candidates")) {
        if (c.contains("points") && std::ranges::find(c.at("points"), name) == c.at("points").end())
          continue;
        ++due;
        const auto found = std::ranges::find_if(
            point.at("candidates"), [&](const Json& v) { return v.at("name") == c.at("name"); });
        const auto asked = rewrite::requests_from(c.value("passes", Json::array()), "the record");
        if (found == point.at("candidates").end() || !asked ||
            found->at("passes") != rewrite::to_json(*asked))
          wrong("candidate " + c.at("name").dump() + " at " + name.dump());
      }
      if (due != point.at("candidates").size()) wrong("the number of candidates at " + name.dump());
      all_hold = all_hold && point.at("baseline").at("qualified") == true;
      for (const auto& v : point.at("candidates")) all_hold = all_hold && v.at("qualified") == true;
    }
    const auto& cases = stored_.json.at("measurement_cases").at("cases");
    bool every_case = true;
    for (const auto& k : cases) {
      bool eligible = true;
      for (const auto& point : stored_.json.at("points")) {
        if (point.at("name") != k.at("point")) continue;
        for (const auto* arm : {"a", "b"}) {
          if (k.at(arm) == "baseline") {
            eligible = eligible && point.at("baseline").at("qualified") == true;
            continue;
          }
          const auto v = std::ranges::find_if(point.at("candidates"), [&](const Json& each) {
            return each.at("name") == k.at(arm);
          });
          eligible = eligible && v != point.at("candidates").end() && v->at("qualified") == true;
        }
      }
      if (eligible != k.at("eligible").get<bool>() ||
          eligible != k.at("why_not").get<std::string>().empty())
        wrong("the case " + k.at("b").dump() + " against " + k.at("a").dump());
      every_case = every_case && eligible;
      if (k.at("primary") == true) primary_seen = true, primary_holds = eligible;
    }
    Json contrasts = spec.value("contrasts", Json::array());
    if (spec.contains("contrast")) contrasts.push_back(spec.at("contrast"));
    std::size_t due_cases = 0; // a contrast at every point that both of its kernels are asked for
    for (const auto& contrast : contrasts)
      for (const auto& point : stored_.json.at("points"))
        due_cases += std::ranges::none_of(spec.at("candidates"), [&](const Json& c) {
          const bool arm = c.at("name") == contrast.at("a") || c.at("name") == contrast.at("b");
          return arm && c.contains("points") &&
                 std::ranges::find(c.at("points"), point.at("name")) == c.at("points").end();
        });
    if (due_cases != cases.size()) wrong("the number of cases");
    const bool qualified = cases.empty() ? all_hold : primary_seen ? primary_holds : every_case;
    if (qualified != stored_.json.at("qualified").get<bool>())
      bad(RefusalCode::analysis_mismatch,
          "the whole is said to be qualified, or not, against its cases", stored_.file.string());
  }

  kernel::ArtifactStore store_;
  const evidence::StoredRecord& stored_;
  evidence::VerifyReport report_;
  bool gpu_ = stored_.json.at("provenance") == "gpu";
  std::size_t artifacts_ = 0, rewrites_ = 0;
};

} // namespace

Result<evidence::VerifyReport> verify_kernel_qualification(const evidence::DataRoot& root,
                                                           const evidence::StoredRecord& stored) {
  return Verifier(root, stored).report();
}

} // namespace hebe::campaign
