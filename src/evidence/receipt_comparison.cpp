#include "evidence/receipt_comparison.hpp"

#include "core/provenance.hpp"
#include "evidence/receipt_words.hpp"

#include <fmt/format.h>

namespace hebe::evidence {
namespace {

constexpr std::size_t kMostShown = 100; ///< of somebody else's text

class Comparison {
public:
  Comparison(ReceiptReport& report, const std::string& where) : report_(report), where_(where) {}

  void compare(const ReceiptSubject& there) {
    report_.looked_at = true;
    report_.whole_there = there.missing.empty();
    const auto& due = report_.statement.at("subject")[0];
    const auto& found = there.digests.front();
    if (due.at("digest").at("sha256") != found.sha256) {
      problem("subject digest", RefusalCode::digest_mismatch,
              fmt::format("the receipt is for sha256 {}, {} has {}",
                          due.at("digest").at("sha256").get<std::string>(), there.place.string(),
                          found.sha256),
              "restore the subject from a copy, or ask for a receipt for this one");
      report_.not_checked.push_back("what it says: this is not what was signed");
      return;
    }
    for (const auto& p : there.problems) report_.problems.push_back({"subject", p});
    for (const auto& m : there.missing)
      report_.not_checked.push_back("subject: " + m + " is not in this data root");
    for (const auto& n : there.not_checked) report_.not_checked.push_back("subject: " + n);
    if (!there.problems.empty()) {
      report_.not_checked.push_back("what it says: the subject does not verify");
      return;
    }
    report_.passed.push_back(
        fmt::format("subject: {} {} has sha256 {}", there.kind, found.name, found.sha256));
    const auto before = report_.problems.size();
    compare_provenance(there);
    for (const char* member : {"kind", "qualified", "verdict", "board", "driver", "claim"})
      compare_member(member, there);
    if (report_.statement.at("subject") != subject_list(due_digests(there)))
      problem("subjects", RefusalCode::analysis_mismatch,
              "the receipt lists other parts than its subject has", "ask who signed it");
    if (report_.problems.size() == before)
      report_.passed.push_back("what it says: provenance, qualified, verdict, board and driver are "
                               "the subject's");
  }

private:
  void problem(std::string name, RefusalCode code, std::string what, std::string next) {
    report_.problems.push_back(
        {std::move(name), {code, std::move(what), where_, std::move(next), {}}});
  }
  const Json& said() const { return report_.statement.at("predicate"); }

  // Files are named by where they lay, and may lie elsewhere now; nothing else may differ.
  std::vector<NamedDigest> due_digests(const ReceiptSubject& there) const {
    auto out = there.digests;
    if (there.kind == "file" || there.kind == "profile")
      out.front().name = report_.statement.at("subject")[0].at("name").get<std::string>();
    return out;
  }

  void compare_provenance(const ReceiptSubject& there) {
    const auto &says = said().at("provenance"), &is = there.says.at("provenance");
    if (says == is) return;
    // A subject that says nothing vouches for nothing.
    const auto rank = [](const Json& p) {
      return p.is_null() ? 3 : static_cast<int>(*provenance_from(p.get<std::string>()));
    };
    const bool more = rank(says) < rank(is);
    problem(more ? "downgraded provenance" : "provenance", RefusalCode::analysis_mismatch,
            fmt::format("the receipt says {}, its subject {}{}", says.dump(), is.dump(),
                        more ? ": that is less" : ""),
            "believe the subject, and ask who signed it");
  }

  void compare_member(const char* member, const ReceiptSubject& there) {
    const Json is = std::string_view(member) == "kind" ? Json(there.kind)
                    : std::string_view(member) == "claim"
                        ? Json(claim_of(there.kind, there.says.at("provenance")))
                        : there.says.at(member);
    const auto& says = said().at(member);
    // Board and driver of a study are in its analysis; without it there is nothing to compare.
    if (says == is || (is.is_null() && !there.missing.empty())) return;
    // Profiles were once signed as files are. Those receipts say less, and go on holding.
    if (std::string_view(member) == "claim" && there.kind == "profile" &&
        says == claim_of("file", there.says.at("provenance")))
      return;
    problem(member, RefusalCode::analysis_mismatch,
            fmt::format("the receipt says {} {}, its subject {}", member,
                        says.dump().substr(0, kMostShown), is.dump().substr(0, kMostShown)),
            "believe the subject, and ask who signed it");
  }

  ReceiptReport& report_;
  const std::string& where_;
};

} // namespace

void compare_with_subject(ReceiptReport& report, const ReceiptSubject& there,
                          const std::string& where) {
  Comparison(report, where).compare(there);
}

} // namespace hebe::evidence
