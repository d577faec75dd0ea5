// The sign-flip test of paired log ratios. In: n >= 2 log ratios; out: a two-sided p value, exact
// where it can be. Invariant: p > 0, and a pattern that ties with the observed one counts as at
// least as extreme.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.hpp"

namespace hebe::measure {

struct SignFlip {
  double p = 1;                          ///< two-sided
  bool exact = false;                    ///< all 2^n sign patterns were counted
  std::uint64_t count = 0;               ///< sign patterns counted: 2^n or 100 000
  std::uint64_t at_least_as_extreme = 0; ///< of these, |sum| >= the observed |sum|
};

/// Sign-flip test of "the log ratios are symmetric about 0", by |mean| (Fisher 1935; Hemerik and
/// Goeman 2018, TEST 27:811): under no effect, swapping A and B in a pair is as likely as not. All
/// 2^n patterns if 2^n <= max_exact and n <= 40, else 100 000 random ones with p = (k + 1)/(m + 1)
/// (Phipson and Smyth 2010, SAGMB 9:39). All values 0: p = 1. Errors: bad_argument for n < 2 or a
/// value that is not finite.
[[nodiscard]] Result<SignFlip> sign_flip(std::span<const double> x, std::uint64_t seed,
                                         std::uint64_t max_exact = std::uint64_t{1} << 20);

/// The same test over the sign patterns that a balanced order could have drawn: `a_first[i]` says
/// which arm ran first in pair i; every assignment with as many A-first pairs (or, for odd n, one
/// more or fewer) is as likely. Exact up to 2^20 assignments, else 100 000 random ones. This is the
/// randomisation that was done, so it stays valid when every second window of a pair reads higher.
/// Errors: as sign_flip, and another length of `a_first`.
[[nodiscard]] Result<SignFlip>
balanced_sign_flip(std::span<const double> x, const std::vector<bool>& a_first, std::uint64_t seed);

} // namespace hebe::measure
