// Is a run what it says? In: a sealed directory; out: every check with its outcome. Invariant:
// digests first, then schemas, then everything derived is computed again from the samples; one
// changed bit anywhere is named by its file.
#pragma once

#include "core/json.hpp"
#include "evidence/data_root.hpp"
#include "evidence/difference.hpp"
#include "measure/analysis.hpp"

#include <deque>

namespace hebe::evidence {

struct VerifyReport {
  std::filesystem::path directory;
  std::string seal;
  std::vector<std::string> passed;
  std::vector<Refusal> problems;
  std::vector<std::string> not_checked;          ///< and why
  Json analysis;                                 ///< as stored, once it has verified
  std::optional<measure::Analysis> recomputed{}; ///< of a run: that, from its samples
  [[nodiscard]] bool valid() const { return problems.empty(); }
};

/// Of something that is made of other records: what each of them was found to be.
struct VerifiedPart {
  std::string what; ///< "run …", "analysis …", "qualification …"
  VerifyReport report;
};
struct PartsReport {
  std::deque<VerifiedPart> parts; ///< each stays where it is
  bool complete = true;           ///< false: something that it is made of is not in the data root
  std::vector<std::string> absent{}; ///< what that is, each with its part
  [[nodiscard]] bool valid() const;
  VerifyReport& part(std::string what);
  /// Not here, so that nothing can be said of the whole.
  void missing(VerifyReport& report, const std::string& what);
};

/// Refuses only when there is nothing to verify (not_found, half_written, unreadable directory).
[[nodiscard]] Result<VerifyReport> verify_run(const std::filesystem::path& directory);

/// The run of this id, verified, for a record that is made of it; none, where it is not in the data
/// root. Refuses one that is there and is not, bit for bit, what was sealed: that is no missing
/// run.
[[nodiscard]] Result<std::optional<std::filesystem::path>>
verified_run(const DataRoot& root, const std::string& run_id, const std::string& seal);

/// Manifest and digests only: are these the bytes that were sealed? Nothing is recomputed.
[[nodiscard]] Result<VerifyReport> verify_digests(const std::filesystem::path& directory);

} // namespace hebe::evidence
