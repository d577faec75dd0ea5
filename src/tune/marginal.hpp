// Marginal energy: what an operation costs beyond a board that does nothing,
// (ΔE_busy − P_idle·Δt) / operations. In: the raw readings of a busy and an idle window; out: a
// cost in whole nanojoules with its interval, or why there is none. Invariant: no cost is zero,
// negative or not finite, nothing is clamped, and every refusal names the file that is not
// written, the reason and the meter's status.
#pragma once

#include "core/result.hpp"
#include "tune/metered_window.hpp"

namespace hebe::tune {

struct MarginalRequest {
  std::optional<MeteredWindow> busy, idle; ///< none: it was not measured, which is a refusal
  Idle idle_state = Idle::no_context;
  std::int64_t operations = 0; ///< done in the busy window
  std::string not_written;     ///< the file that a refusal keeps from being written
};

struct MarginalCost {
  std::int64_t cost_nj = 0;       ///< of one operation; at least 1
  double low_nj = 0, high_nj = 0; ///< 95 %, normal; above 0, around the exact cost
  double exact_nj = 0;            ///< before it was rounded
  Joules busy, idle, marginal;    ///< of the whole busy window; `idle` is P_idle·Δt
  Joules standard_error;          ///< of `marginal`: those of busy and idle combined
  Seconds duration;               ///< of the busy window
  std::int64_t operations = 0;
  Idle idle_state = Idle::no_context;
  MeterIdentity meter; ///< with its status and the provenance of this cost
};

/// The normal quantile of the interval.
inline constexpr double kNormal95 = 1.959963984540054;

/// meter_frozen, meter_backwards, meter_implausible, gate_failed (busy is at or below idle, not
/// told from it, or rounds to 0), bad_argument, or what the meter was rejected for.
[[nodiscard]] Result<MarginalCost> marginal_cost(const MarginalRequest& request);

/// How many times `one` is of `other`: undefined unless both are positive and finite, and the
/// ratio too. The statuses are those of the meters that gave them.
struct RatioOperand {
  double cost = 0; ///< of both in one unit
  MeterIdentity meter;
};
[[nodiscard]] Result<double> cost_ratio(const RatioOperand& one, const RatioOperand& other,
                                        const std::string& not_written);

/// A refusal's words about a meter that gives no value: the code follows from its status.
[[nodiscard]] Refusal meter_refusal(RefusalCode code, const MeterIdentity& meter,
                                    const std::string& reason, const std::string& not_written,
                                    std::string next = {});
/// A refusal from below of something that was to be measured: what it was, the meter with its
/// status, what is not written. An interruption stays as it is.
[[nodiscard]] Refusal with_meter(const std::string& of, Refusal refusal, const MeterIdentity& meter,
                                 const std::string& not_written);
/// Nothing, if the meter's status lets it be believed.
[[nodiscard]] Status check_meter(const MeterIdentity& meter, const std::string& not_written);

} // namespace hebe::tune
