// The verdict on a job. In: plan, acquisition and judged windows; out: contrasts, conditions,
// verdict. Invariant: pure; run again on stored data it gives the same answer, and a simulated or
// smoke record can never qualify.
#pragma once

#include "measure/acquisition.hpp"
#include "measure/condition.hpp"
#include "measure/contrast.hpp"

namespace hebe::measure {

struct Analysis {
  Contrast energy, latency, power;
  std::vector<Condition> conditions;
  Verdict verdict = Verdict::invalid;
  std::string reason;       ///< of an invalid or inconclusive verdict
  bool claim_holds = false; ///< aa: the arms are equivalent; ab: there is a verdict;
                            ///< positive_control: it was seen
  bool qualified = false;   ///< the claim holds and every condition does
  Json json;                ///< schema hebe.run.analysis/1
};

/// Recomputes each window's estimate and gates from the samples, then the pairs' acceptance.
[[nodiscard]] Status judge_windows(std::vector<Window>& windows,
                                   std::span<const meter::AlignedSample> samples, const Plan& plan,
                                   const Acquisition& acquisition);

[[nodiscard]] Result<Analysis> analyse(const Plan& plan, const std::string& plan_id,
                                       const Acquisition& acquisition,
                                       std::span<const Window> windows);

} // namespace hebe::measure
