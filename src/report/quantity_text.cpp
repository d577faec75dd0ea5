#include "report/quantity_text.hpp"

#include "report/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace hebe::report {
namespace {

constexpr const char* kMinus = "\u2212"; // as wide as the plus sign
constexpr const char* kUnit = "\u00a0";  // a number and its unit stay on one line

// Decimals that show `significant` digits of a number of this magnitude.
int decimals(double magnitude, int significant) {
  if (!(magnitude > 0)) return 0;
  return std::clamp(significant - 1 - static_cast<int>(std::floor(std::log10(magnitude))), 0, 12);
}

int decimals_of(double effect, double half_width) {
  const int four = decimals(std::abs(effect), 4);
  if (!(half_width > 0)) return std::min(four, 4);
  const int one = decimals(half_width, 1);
  return std::min({std::max(four, decimals(half_width, 2)), decimals(half_width, 3),
                   std::max(four, one), std::max(4, one)});
}

std::string with_sign(double value, int places) {
  auto digits = fmt::format("{:.{}f}", std::abs(value), places);
  if (digits.find_first_not_of("0.") == std::string::npos) return digits; // no sign of a zero
  return fmt::format("{}{}", value < 0 ? kMinus : "+", digits);
}

} // namespace

std::string signed_percent(double percent, int places) {
  return with_sign(percent, places) + kUnit + "%";
}

std::optional<EffectText> effect_text(const Json& effect) {
  const auto value = number(member(effect, {"effect_percent"}));
  const auto low = number(member(effect, {"low_percent"}));
  const auto high = number(member(effect, {"high_percent"}));
  if (!value || !low || !high) return std::nullopt;
  const double half = number(member(effect, {"half_width_percent"})).value_or((*high - *low) / 2);
  const int places = decimals_of(*value, half);
  return EffectText{signed_percent(*value, places),
                    fmt::format("[{}, {}]", with_sign(*low, places), with_sign(*high, places)),
                    digits_text(half, 2) + kUnit + "%"};
}

std::string digits_text(double value, int digits) {
  const double size = std::abs(value);
  const auto shown = size == 0 ? std::string("0")
                     : size < 1e-4 || size >= 1e9
                         ? fmt::format("{:.{}e}", size, digits - 1)
                         : fmt::format("{:.{}f}", size, decimals(size, digits));
  return fmt::format("{}{}", value < 0 ? kMinus : "", shown);
}

std::string with_prefix(double value, std::string_view unit) {
  constexpr std::array kPrefixes = {"p", "n", "\u00b5", "m", "", "k", "M", "G", "T"};
  if (value == 0) return fmt::format("0{}{}", kUnit, unit);
  // By the rounded number: 999.999 m is 1.0000, not 1000.0 m.
  const double size = std::abs(value) * (1 + 5e-6);
  const int thousands = std::clamp(static_cast<int>(std::floor(std::log10(size) / 3)), -4, 4);
  return fmt::format("{}{}{}{}", digits_text(value / std::pow(1000, thousands), 5), kUnit,
                     kPrefixes[static_cast<std::size_t>(thousands + 4)], unit);
}

std::string share_text(double ratio) {
  if (ratio == 0 || ratio == 1) return std::string(ratio == 0 ? "0" : "100") + kUnit + "%";
  return digits_text(100 * ratio, std::abs(ratio) < 0.1 ? 3 : 4) + kUnit + "%";
}

std::string count_text(double value) {
  if (value != std::floor(value) || std::abs(value) > 9e15) return ecmascript_number(value);
  auto digits = fmt::format("{:.0f}", std::abs(value));
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return fmt::format("{}{}", value < 0 ? kMinus : "", digits);
}

} // namespace hebe::report
