// Which instrument may be believed? In: a recording of every source at idle and under load; out:
// findings and a verdict for each by name, one primary and one cross-check, or why there is none.
// Invariant: pure, so that anybody can compute it again from the stored readings; nothing is
// believed for its name.
#pragma once

#include "measure/source_statistics.hpp"

namespace hebe::measure {

enum class SourceVerdict { primary, cross_check, usable, rejected };
[[nodiscard]] std::string_view name_of(SourceVerdict verdict);

// Why a source is rejected: name, meaning.
#define HEBE_SOURCE_REJECTIONS(X)                                                                  \
  X(unsupported, "the board or driver does not offer it")                                          \
  X(no_permission, "this user may not read it")                                                    \
  X(read_failed, "its calls fail")                                                                 \
  X(empty, "it answers, and gives nothing")                                                        \
  X(frozen, "its value does not advance where it must")                                            \
  X(resets, "the counter restarted")                                                               \
  X(wraps, "the counter wraps at a width that nobody declared")                                    \
  X(not_monotonic, "the counter fell")                                                             \
  X(implausible, "its values cannot be true of this board")                                        \
  X(wrong_unit, "its values are a power of 1000 away from the others'")                            \
  X(foreign_clock, "its time stamps are of no clock of this host")                                 \
  X(cached_too_long, "it updates too seldom")                                                      \
  X(one_second_average, "it averages over about a second: neighbouring windows mix")               \
  X(lies, "it disagrees with sources that agree with each other")                                  \
  X(disagrees, "sources disagree, and which is right cannot be told")

enum class Rejection {
  none,
#define X(name, meaning) name,
  HEBE_SOURCE_REJECTIONS(X)
#undef X
};
[[nodiscard]] std::string_view name_of(Rejection rejection); ///< "" for none

struct LevelPower {
  Level level = Level::mixed;
  double watts = 0, error = 0;       ///< relative
  std::optional<double> ratio;       ///< to the reference source
  std::optional<double> ratio_error; ///< expected of that ratio, relative
};

struct ObserverEffect {
  double watts = 0,
         error_w = 0; ///< power with this source polled minus without, one standard error
};

struct SourceFindings {
  std::string name;
  SourceStatistics statistics;
  std::vector<LevelPower> levels;
  std::optional<ObserverEffect> observer;
  SourceVerdict verdict = SourceVerdict::usable;
  Rejection rejection = Rejection::none;
  std::string reason; ///< with the numbers
};

struct Qualification {
  std::vector<SourceFindings> sources; ///< in the recording's order
  std::string reference;               ///< whose power the ratios are to; empty: none
  std::string primary, cross_check;    ///< empty: none
  std::string refusal;                 ///< why not both
  [[nodiscard]] bool qualified() const { return refusal.empty(); }
};

[[nodiscard]] Qualification qualify(const Recording& recording);
[[nodiscard]] Json to_json(const Qualification& q);

} // namespace hebe::measure
