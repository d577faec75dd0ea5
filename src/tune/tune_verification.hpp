// Is a tune what its record says? In: a stored record and the data root with its sealed runs and
// profile; out: every check with its outcome, part by part, and the rows that follow from it.
// Invariant: costs, drops, choice and rows are computed again from the stored readings and the
// runs' samples; every disagreement says where, what was recorded and what was recomputed.
#pragma once

#include "evidence/content_record.hpp"
#include "evidence/verify.hpp"
#include "tune/finalist_run.hpp"
#include "tune/profile.hpp"

#include <set>

namespace hebe::tune {

/// By path, id, or a unique part of one; empty: the newest. not_found, digest_mismatch, bad_schema.
[[nodiscard]] Result<evidence::StoredRecord> find_tune(const evidence::DataRoot& root,
                                                       const std::string& name);

/// What a pair's sealed run gave. None: what is wrong with it, or that it is missing, is said in
/// `report`, a part of `all`.
using FinalistOf = std::function<std::optional<campaign::JobOutcome>(
    evidence::PartsReport& all, evidence::VerifyReport& report, const FinalistPair& pair)>;
/// From the sealed runs of a data root.
[[nodiscard]] FinalistOf sealed_finalists(const evidence::DataRoot& root);

struct VerifiedTune {
  evidence::PartsReport report;
  Profile rows;               ///< recomputed
  std::set<RowKey> not_known; ///< of shapes that could not be
};
/// Record, searches, finalists' runs. bad_schema, bad_spec where nothing can be computed at all.
[[nodiscard]] Result<VerifiedTune> verify_tune(const evidence::StoredRecord& record,
                                               const FinalistOf& finalist);
/// The same, with the profile that was written of it, where the data root has it.
[[nodiscard]] Result<evidence::PartsReport>
verify_tune_and_profile(const evidence::DataRoot& root, const evidence::StoredRecord& record,
                        const FinalistOf& finalist);
/// Every row of a profile against the tune that it rests on, which is verified as well. A row that
/// was downgraded may say less than its tune, and nothing else.
[[nodiscard]] Result<evidence::PartsReport> verify_profile(const evidence::DataRoot& root,
                                                           const std::filesystem::path& file);

} // namespace hebe::tune
