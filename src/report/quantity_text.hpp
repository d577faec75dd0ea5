// Numbers as people read them. In: doubles in SI units, ratios or percent; out: text with a unit.
// Invariant: the digits shown follow from the number and how sure it is; what is unknown never gets
// here; number and unit are joined by a no-break space.
#pragma once

#include "core/json.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace hebe::report {

/// An effect and its interval, in equally many decimals: four digits of the effect, or as many as
/// the interval's half width lets differ.
struct EffectText {
  std::string effect;     ///< "−5.712 %"
  std::string interval;   ///< "[−5.793, −5.638]"
  std::string half_width; ///< "0.078 %"
};
/// Of an object with effect_percent, low_percent and high_percent; nothing where one is missing.
[[nodiscard]] std::optional<EffectText> effect_text(const Json& effect);

[[nodiscard]] std::string signed_percent(double percent, int decimals);
/// Five digits and a prefix from p to T: 0.0137841 J is "13.784 mJ".
[[nodiscard]] std::string with_prefix(double value, std::string_view unit);
/// 0.0127 is "1.27 %".
[[nodiscard]] std::string share_text(double ratio);
/// `digits` significant ones, no exponent where it can be avoided.
[[nodiscard]] std::string digits_text(double value, int digits);
/// Whole numbers by thousands, "100,663,296"; others as ECMAScript prints them.
[[nodiscard]] std::string count_text(double value);

} // namespace hebe::report
