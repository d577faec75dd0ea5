// Arms that a plan says were qualified. In: a run's plan, and the data root in which the record of
// that qualification may lie; out: whether they are the kernels of that record. Invariant: kernels
// are compared by the digests of what they were made of and launched with, never by their names.
#pragma once

#include "evidence/data_root.hpp"
#include "measure/plan.hpp"

namespace hebe::evidence {

inline constexpr const char* kKernelQualification = "hebe.qualification.kernel/1";
/// Where the records of a data root lie.
[[nodiscard]] std::filesystem::path kernel_qualifications(const DataRoot& root);
[[nodiscard]] std::filesystem::path kernel_qualification_file(const DataRoot& root,
                                                              const std::string& id);

/// A kernel ("baseline" or a candidate) at a point of a record; null: there is none. It lives in
/// the record.
[[nodiscard]] const Json* qualified_kernel(const Json& record, const Json& point,
                                           const Json& variant);
/// Digests by kind of a kernel ("baseline" or a candidate) at a point of a stored
/// hebe.qualification.kernel/1; null: there is no such kernel, or it was not built.
[[nodiscard]] Json qualified_artifacts(const Json& record, const std::string& point,
                                       const std::string& variant);

/// Whether the record was there to compare with. analysis_mismatch: the plan's arms are others;
/// bad_schema, digest_mismatch: the record is damaged.
[[nodiscard]] Result<bool> check_qualified_arms(const DataRoot& root, const measure::Plan& plan,
                                                const std::string& where);

} // namespace hebe::evidence
