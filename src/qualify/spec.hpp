// What to qualify, as somebody wrote it (schema hebe.qualification.spec/1). In: a TOML or JSON
// file; out: typed values. Invariant: every name that refers to another is known, every pass and
// option exists, before anything is compiled.
#pragma once

#include "kernel/compiled_case.hpp"
#include "rewrite/pass.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <set>

namespace hebe::qualify {

/// The candidate's code: one of three.
struct Candidate {
  std::string name, why;
  std::vector<rewrite::PassRequest> passes;      ///< over the baseline's TTGIR
  std::optional<std::filesystem::path> ttgir;    ///< an edited text
  std::optional<kernel::CaseRequest> other_case; ///< another kernel on the same buffers
  bool equal_bits = true;                        ///< else: within the case's tolerance
  std::vector<std::string> fewer_loads_of;       ///< arguments of which fewer bytes are loaded
  std::set<std::string> points;                  ///< empty: all
  std::uint64_t max_local_bytes = 0;             ///< a thread; 0: no spills
  std::vector<std::string> distinct;             ///< artifacts that must not be the baseline's
};

struct Point {
  std::string name;
  kernel::CaseRequest subject;
  /// Parameters at which the same code is interpreted, where the point itself would take too long.
  std::optional<kernel::CaseRequest> interpreted;
  bool primary = false;
};

/// The two kernels that are to be measured against each other. "baseline" is the case as it is.
struct ContrastNames {
  std::string a = "baseline", b;
};

struct QualificationSpec {
  std::string name, description;
  std::vector<Point> points;
  std::vector<Candidate> candidates;
  std::vector<ContrastNames> contrasts; ///< the first is the primary one
  int launches = 5;                     ///< of each kernel on a GPU
  Json json;                            ///< as it was read
};

using CaseResolver = std::function<Result<kernel::CaseRequest>(const std::string& name,
                                                               const std::filesystem::path& base)>;

/// A file that somebody wrote, and that follows its schema and can stand in a record; bad_spec.
[[nodiscard]] Result<Json> read_checked_spec(const std::filesystem::path& file,
                                             std::string_view schema);

[[nodiscard]] Result<QualificationSpec> read_qualification_spec(const std::filesystem::path& file,
                                                                const CaseResolver& resolve);

} // namespace hebe::qualify
