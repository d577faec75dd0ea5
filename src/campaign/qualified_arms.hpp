// Kernels of a stored qualification, ready to be measured. In: a record that passed, and which of
// its kernels; out: both arms, from the artifact store. Invariant: nothing is compiled: what is
// measured is, byte for byte, what was qualified, and a file that changed since is named.
#pragma once

#include "campaign/frozen_job.hpp"
#include "evidence/content_record.hpp"
#include "evidence/qualified_arms.hpp"

#include <functional>
#include <map>

namespace hebe::campaign {

/// One contrast of a qualification. a == b: a kernel against itself.
struct QualifiedContrast {
  std::string point, a, b;
};

using CaseLookup = std::function<Result<kernel::CaseRequest>(const std::string& name)>;

class QualifiedArms {
public:
  /// A qualification by file, id or a unique part of one. Everything in it is looked at before any
  /// of it is used: name and schema, artifacts by digest, every rewrite done again, no label of
  /// energy in it, passed. `find_case`: where the cases that it names lie now; they are the
  /// oracles. Refuses: not_found, digest_mismatch, bad_schema, analysis_mismatch, not_qualified.
  [[nodiscard]] static Result<QualifiedArms> open(const evidence::DataRoot& root,
                                                  const std::string& name, CaseLookup find_case);

  /// For a GPU of this kind? not_qualified: a real one needs a record that a GPU made, and code for
  /// its own architecture.
  [[nodiscard]] Status fit_for(bool simulated, int arch) const;

  /// Whether it can be measured: refuses not_qualified, naming what failed or which file is not
  /// what it was; not_found for a point or kernel that is not there; digest_mismatch.
  [[nodiscard]] Status check(const QualifiedContrast& contrast) const;
  /// Both arms, with neither inputs nor oracle. digest_mismatch.
  [[nodiscard]] Result<PreparedArms> compiled(const QualifiedContrast& contrast) const;
  /// With both; what arms have in common is made once. case_failed where a case is not what it was.
  [[nodiscard]] Result<PreparedArms> prepared(CasePreparer& preparer,
                                              const QualifiedContrast& contrast);

  [[nodiscard]] const evidence::StoredRecord& record() const { return stored_; }
  [[nodiscard]] std::string name() const { return stored_.json.at("name"); }
  /// What has been made of the case: arms with equal keys share inputs and oracle.
  [[nodiscard]] static std::string oracle_key(const PreparedCase& arm);
  /// Keeps the record in this data root, where it came from another place.
  [[nodiscard]] Status keep(const evidence::DataRoot& root) const;

private:
  QualifiedArms(const evidence::DataRoot& root, evidence::StoredRecord stored, CaseLookup find_case)
      : store_(root.path()), stored_(std::move(stored)), find_case_(std::move(find_case)) {}
  [[nodiscard]] Result<kernel::CaseRequest> case_of(const std::string& variant) const;
  [[nodiscard]] Status same_sources(const kernel::CaseRequest& request, const Json& compile,
                                    const Json& artifacts) const;

  kernel::ArtifactStore store_;
  evidence::StoredRecord stored_;
  CaseLookup find_case_;
  std::map<std::string, PreparedCase> oracles_; ///< by oracle_key
};

} // namespace hebe::campaign
