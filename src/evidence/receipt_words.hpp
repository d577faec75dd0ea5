// What signing and verifying a receipt have in common. In: what a subject says; out: the words and
// lists of its receipt. Invariant: both sides make them here, so that they can be compared.
#pragma once

#include "evidence/receipt_subject.hpp"

namespace hebe::evidence {

inline constexpr const char* kReceiptTime = "%Y-%m-%dT%H:%M:%SZ"; ///< UTC, whole seconds

/// Hebe's claim: what was looked at before it was signed.
[[nodiscard]] std::string claim_of(const std::string& kind, const Json& provenance);
/// As an in-toto statement lists its subjects.
[[nodiscard]] Json subject_list(const std::vector<NamedDigest>& digests);

} // namespace hebe::evidence
