// A study's answer in words. In: its analysis or a part of it; out: markup. Invariant: a sentence
// claims no more than the verdict beside it; "not evidence" stands wherever it is true.
#pragma once

#include "core/json.hpp"

#include <string>

namespace hebe::report {

/// One sentence on the energy of the primary contrast.
[[nodiscard]] std::string verdict_sentence(const Json& study);
/// What keeps the whole from being evidence (simulated, a smoke test); empty where nothing does.
[[nodiscard]] std::string warning_banner(const Json& study);
/// Qualified or not, and how many conditions do not hold.
[[nodiscard]] std::string qualification_sentence(const Json& study);

/// "yes", "no" or "not known", coloured; the words given in their place where they are.
[[nodiscard]] std::string yes_or_no(const Json& value, const char* yes = "yes",
                                    const char* no = "no");
/// The primary contrast; null where there is none.
[[nodiscard]] const Json& primary_contrast(const Json& study);

} // namespace hebe::report
