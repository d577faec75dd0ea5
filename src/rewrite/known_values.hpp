// What integers a value can be, in every launch that keeps the facts. In: an SSA value of integer
// type, scalar or tensor; out: an interval of its elements, and the arguments it rests on.
// Invariant: arithmetic that could wrap gives no interval; nothing is assumed of an argument that
// the facts do not name.
#pragma once

#include "rewrite/pass.hpp"

#include <optional>
#include <set>
#include <unordered_map>

namespace hebe::rewrite {

struct Interval {
  std::int64_t low = 0, high = 0;    ///< both included
  std::set<std::string> arguments{}; ///< scalars whose value was used
  bool grid = false;                 ///< the grid was used
  [[nodiscard]] bool single() const { return low == high; }
};

class KnownValues {
public:
  explicit KnownValues(const LaunchFacts& facts) : facts_(facts) {}
  [[nodiscard]] std::optional<Interval> interval(const ttgir::Value& value);
  /// The one value that it has, everywhere in its tensor.
  [[nodiscard]] std::optional<Interval> constant(const ttgir::Value& value);
  /// How often a loop's body runs; low and high are equal where it is known exactly.
  [[nodiscard]] std::optional<Interval> trips(ttgir::Operation& loop);

private:
  [[nodiscard]] std::optional<Interval> computed(const ttgir::Value& value);
  [[nodiscard]] std::optional<Interval> of_operation(const ttgir::Operation& op);
  const LaunchFacts& facts_;
  std::unordered_map<const ttgir::Value*, std::optional<Interval>> seen_;
};

/// Puts what an interval rests on into the account as contracts.
void assume(Account& account, const LaunchFacts& facts, const Interval& interval,
            const std::string& why);

} // namespace hebe::rewrite
