// One experiment in several studies. In: studies; out: which contrasts they have in common, and
// what is said of each: effects beside each other, differences with their errors, spread.
// Invariant: an experiment is the same by its cubins, point and names; a spread stands beside the
// one that the pairs within the studies lead to expect.
#pragma once

#include "evidence/compared_study.hpp"

namespace hebe::evidence {

struct Occurrence {
  std::size_t study; ///< its number
  const ComparedContrast* contrast;
};
/// In the order of the studies; at least two of them have it.
using RepeatedExperiment = std::vector<Occurrence>;

/// In the order of the first study that has them. They point into the studies.
[[nodiscard]] std::vector<RepeatedExperiment>
repeated_experiments(const std::vector<ComparedStudy>& studies);

/// An element of a comparison's "contrasts".
[[nodiscard]] Json repeated_json(const RepeatedExperiment& experiment);
/// By quantity, of the A/A of the studies, which may be of different kernels: 0 is the truth of
/// all.
[[nodiscard]] Json repeated_aa_json(const std::vector<ComparedStudy>& studies);

} // namespace hebe::evidence
