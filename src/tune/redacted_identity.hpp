// What stands for an identity (a board's UUID) in records that are given to others. In: the
// identity; out: the beginning of its digest, as evidence::redact writes it in sealed runs.
// Invariant: the same identity gives the same text, so that records still say whether they are of
// one board.
#pragma once

#include "core/sha256.hpp"

namespace hebe::tune {

[[nodiscard]] inline std::string redacted_identity(const std::string& identity) {
  constexpr std::size_t kDigits = 16;
  return "sha256:" + sha256_hex(identity).substr(0, kDigits);
}
/// Whether two of them, either of which may be redacted, are of one thing.
[[nodiscard]] inline bool same_identity(const std::string& one, const std::string& other) {
  return one == other || redacted_identity(one) == other || one == redacted_identity(other);
}

} // namespace hebe::tune
