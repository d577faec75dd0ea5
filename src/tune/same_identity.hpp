// Whether two records are of one thing (a board, by its UUID), where each may have been redacted.
// In: identities, or what evidence::redacted makes of them; out: whether they are equal. Invariant:
// the same identity gives the same text, so that redacted records still say it.
#pragma once

#include "evidence/environment.hpp"

namespace hebe::tune {

[[nodiscard]] inline bool same_identity(const std::string& one, const std::string& other) {
  return one == other || evidence::redacted(one) == other || one == evidence::redacted(other);
}

} // namespace hebe::tune
