// What a stored qualification of kernels gives to a measurement. In: a record of
// hebe.qualification.kernel/1 that follows its schema, a point, two kernels by name; out: their
// artifacts, launches and static features, or a refusal that says what was not proved. Invariant:
// only kernels whose every check passed come out of it; a record that says anything of energy or
// time is refused.
#pragma once

#include "core/json.hpp"
#include "kernel/launch_spec.hpp"

#include <string>

namespace hebe::qualify {

struct QualifiedKernel {
  std::string variant; ///< "baseline" or a candidate's name
  kernel::LaunchSpec launch;
  Json artifacts, compile, resources; ///< as the record has them
  Json mechanism;                     ///< mechanism_summary
  bool baseline = false;
};

struct QualifiedPair {
  std::string point, a, b;
  QualifiedKernel arm_a, arm_b;
  Json inputs;             ///< name to digest of every input's bytes
  bool equal_bits = false; ///< both write the same bits: seen by someone, and by nobody otherwise
};

/// Refuses (bad_schema, with the place) a record in which a member speaks of energy, power or time.
/// What users name (arguments, parameters, files) may be called anything.
[[nodiscard]] Status label_free(const Json& record, const std::string& where);

/// Refuses: bad_spec for no such point or kernel; not_qualified for a kernel with a check that did
/// not pass, a case that is not eligible, a record that is not qualified as a whole. `a` == `b` is
/// one kernel against itself, which needs that kernel qualified and nothing else.
[[nodiscard]] Result<QualifiedPair> qualified_pair(const Json& record, const std::string& point,
                                                   const std::string& a, const std::string& b,
                                                   const std::string& where);

} // namespace hebe::qualify
