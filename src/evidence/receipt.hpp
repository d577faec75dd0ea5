// Receipts: what a subject says, signed. In: a verified subject, a key, the time; out: a DSSE
// envelope of one line over an in-toto statement (predicate hebe.receipt/1), and later whether it
// holds. Invariant: a receipt never says more than its subject said when it was signed; whatever it
// says is compared with the subject again, and each thing that is wrong has a name of its own.
#pragma once

#include "core/clock.hpp"
#include "core/signing_key.hpp"
#include "evidence/receipt_subject.hpp"

namespace hebe::evidence {

inline constexpr std::string_view kReceiptPayloadType = "application/vnd.in-toto+json";
inline constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";
inline constexpr std::string_view kReceiptPredicateType = "urn:hebe:receipt:1";
inline constexpr std::string_view kReceiptSuffix = ".dsse.jsonl";

/// The statement that would be signed. Refuses the subject's first problem, and not_found where
/// something is missing that it cannot be verified without. `valid_days` 1 to 36500; none: no end.
[[nodiscard]] Result<Json> receipt_statement(const ReceiptSubject& subject, const Clock& clock,
                                             std::optional<int> valid_days);
/// The envelope, no newline.
[[nodiscard]] Result<std::string> signed_receipt(const Json& statement, const SigningKey& key);

/// receipts/<SHA-256 of the line>.dsse.jsonl, read-only.
[[nodiscard]] Result<std::filesystem::path> store_receipt(const DataRoot& root,
                                                          const std::string& line);
/// A file, or a receipt of the data root by a unique part of its name.
[[nodiscard]] Result<std::filesystem::path> find_receipt(const DataRoot& root,
                                                         const std::string& name);
/// The envelopes of a file, a line each. digest_mismatch where it is named by a digest that is not
/// its line's.
[[nodiscard]] Result<std::vector<std::string>> receipt_lines(const std::filesystem::path& file);

/// What is wrong, in a word or two that never change, and in full.
struct ReceiptProblem {
  std::string name;
  Refusal refusal;
};

struct ReceiptReport {
  Json statement; ///< once its signature fits; else null
  std::vector<std::string> passed, not_checked;
  std::vector<ReceiptProblem> problems;
  bool looked_at = false;  ///< the subject; false: at most the signature was checked
  bool whole_there = true; ///< false: something that the subject is made of is not in the data root
  /// False: it may hold, and not all that it says could be compared.
  [[nodiscard]] bool complete() const { return looked_at && whole_there; }
  [[nodiscard]] bool valid() const { return problems.empty(); }
};

struct ReceiptCheck {
  const DataRoot& root;
  const PublicKey& key;
  const Clock& clock;
  const SubjectChecks& checks;
  std::string subject; ///< where it lies; empty: looked for in the data root
};

/// `where` names the line. Refuses only what the user got wrong: a subject that is not there.
[[nodiscard]] Result<ReceiptReport> verify_receipt(const ReceiptCheck& check, std::string_view line,
                                                   const std::string& where);

} // namespace hebe::evidence
