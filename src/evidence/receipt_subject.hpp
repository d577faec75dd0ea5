// What a receipt is about, as it lies there now. In: a run, a study, a tune, a profile or a file;
// out: its digests, and what it says of itself. Invariant: provenance, verdict and the rest are
// read from what has verified, never from what somebody says of it; of several provenances the
// weakest counts.
#pragma once

#include "evidence/content_record.hpp"
#include "evidence/sealed_study.hpp"
#include "evidence/verify.hpp"

#include <functional>

namespace hebe::evidence {

struct NamedDigest {
  std::string name, sha256;
  bool operator==(const NamedDigest&) const = default;
};

struct ReceiptSubject {
  std::string kind; ///< run, study, tune, profile, file
  std::filesystem::path place;
  std::vector<NamedDigest> digests; ///< the subject itself, then what it is made of
  /// provenance, qualified (a study's study_qualified), verdict, board, driver; null: it does not
  /// say.
  Json says;
  std::vector<Refusal> problems;        ///< what does not verify
  std::vector<std::string> missing;     ///< what it says cannot be looked at without these
  std::vector<std::string> not_checked; ///< what it is said to follow from, and is not here
};

/// All of a study, tune or profile, part by part, and what a placement must be to be read: the
/// caller brings them, for they need rooms that build on this one.
struct SubjectChecks {
  std::function<Result<VerifyReport>(const DataRoot&, const SealedStudy&)> study;
  std::function<Result<VerifyReport>(const DataRoot&, const StoredRecord&)> tune;
  std::function<Result<PartsReport>(const DataRoot&, const std::filesystem::path&)> profile;
  std::function<Status(const std::filesystem::path&)> placement;
};

/// By path, or by a unique part of a run's, study's or tune's id. Refuses what cannot be read at
/// all.
[[nodiscard]] Result<ReceiptSubject> read_subject(const DataRoot& root, const std::string& name,
                                                  const SubjectChecks& checks);
/// Where the subject of that kind and name (its first digest's) lies in the data root, if it does.
/// unsafe_path where the name leads out of it.
[[nodiscard]] Result<std::optional<std::filesystem::path>>
place_of_subject(const DataRoot& root, const std::string& kind, const std::string& name);

} // namespace hebe::evidence
