#include "campaign/kernel_verification.hpp"

#include "kernel/artifact_store.hpp"
#include "qualify/static_checks.hpp"

#include <fmt/format.h>

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
        qualified_as_said(name, v);
      }
      qualified_as_said(name, point.at("baseline"));
    }
    if (report_.problems.empty()) {
      report_.passed.push_back(fmt::format("{} artifacts by digest", artifacts_));
      report_.passed.push_back(fmt::format(
          "{} rewrites done again from the stored baselines, the same bytes", rewrites_));
      report_.passed.push_back("every kernel is qualified as its checks say");
    }
    report_.not_checked.push_back(
        "what the kernels did when they ran: run the qualification again");
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

  void qualified_as_said(const std::string& point, const Json& v) {
    const bool gpu = stored_.json.at("provenance") == "gpu";
    bool holds = !v.at("checks").empty() && !v.at("artifacts").is_null();
    for (const auto& c : v.at("checks"))
      holds = holds && (c.at("outcome") == "passed" || (!gpu && c.at("by") == "GPU"));
    if (holds != v.at("qualified").get<bool>())
      bad(RefusalCode::analysis_mismatch, "it is said to be qualified, or not, against its checks",
          place(point, v));
  }

  kernel::ArtifactStore store_;
  const evidence::StoredRecord& stored_;
  evidence::VerifyReport report_;
  std::size_t artifacts_ = 0, rewrites_ = 0;
};

} // namespace

Result<evidence::VerifyReport> verify_kernel_qualification(const evidence::DataRoot& root,
                                                           const evidence::StoredRecord& stored) {
  return Verifier(root, stored).report();
}

} // namespace hebe::campaign
