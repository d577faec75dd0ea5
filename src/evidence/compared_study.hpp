// A study as it is compared with others: effects with standard errors, arms, runs, platform. In: an
// analysis of schema hebe.analysis.study/1, from this data root or from anybody's files; out: what
// a comparison needs of it. Invariant: other people's files are read with every member checked;
// what lies under an analysis' name is what the name says.
#pragma once

#include "core/json.hpp"
#include "evidence/data_root.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::evidence {

inline constexpr std::array<std::string_view, 3> kComparedQuantities = {"energy", "latency",
                                                                        "power"};

/// Percent. The standard error is the interval's half width over Student's t at 95 %.
struct ComparedEffect {
  double effect = 0, low = 0, high = 0, standard_error = 0;
  int pairs = 0; ///< the error has pairs - 1 degrees of freedom
};

struct ComparedArm {
  std::string variant, cubin;
  std::optional<double> joules; ///< a launch
};

struct ComparedContrast {
  std::string job, point, a, b, verdict;
  bool primary = false;
  double window_s = 0;
  ComparedArm arm_a, arm_b;
  std::map<std::string_view, ComparedEffect> effects; ///< by quantity; none where it has none

  /// Equal for the same experiment: both cubins, the point, and the arms' names.
  [[nodiscard]] std::array<std::string, 5> experiment() const {
    return {point, a, b, arm_a.cubin, arm_b.cubin};
  }
  [[nodiscard]] std::string name() const { return point + ": " + b + " against " + a; }
};

struct ComparedStudy {
  std::string given, id; ///< as the user named it; its content id
  std::string study, campaign, tier, label, provenance;
  bool qualified = false;
  Json platform;
  std::vector<std::string> seals;
  std::vector<ComparedContrast> contrasts;
  std::map<std::string_view, ComparedEffect> aa;
};

/// bad_schema names the member.
[[nodiscard]] Result<ComparedStudy> compared_study(const Json& analysis, const std::string& given);
/// By path (an analysis.json, or the directory it lies in), by analysis id, or by a unique part of
/// one. Refuses: not_found, bad_argument, bad_schema, digest_mismatch.
[[nodiscard]] Result<ComparedStudy> find_compared_study(const DataRoot& root,
                                                        const std::string& name);

} // namespace hebe::evidence
