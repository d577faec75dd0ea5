// A loop as a sequence of its bodies. In: an scf.for and how often it runs; out: that many copies
// in its place. Invariant: the same operations on the same values in the same order; what is
// contracted stays so, or the account says that it may not.
#pragma once

#include "rewrite/known_values.hpp"
#include "ttgir/view.hpp"

#include <optional>
#include <string>

namespace hebe::rewrite {

/// Why a loop may not be taken apart, whatever its number of trips.
[[nodiscard]] std::optional<std::string> holds_together(ttgir::Operation& loop);
/// "runs 0 to 1 times", "how often it runs depends on %n, which is not fixed".
[[nodiscard]] std::string says_trips(KnownValues& known, ttgir::Operation& loop);
/// The loop's attributes that go with it: ", with its tt.num_stages"; empty.
[[nodiscard]] std::string says_attributes(const ttgir::Operation& loop);
/// Whether the induction variable stays in its type until the loop ends.
[[nodiscard]] bool ends_in_range(KnownValues& known, ttgir::Operation& loop);
/// `trips` is at least 1.
void expand(Work& work, ttgir::Operation& loop, std::int64_t trips, bool pin);

} // namespace hebe::rewrite
