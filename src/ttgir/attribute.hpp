// Attributes as text, and what can be read from it. In: "16 : i32", "dense<0.0> : tensor<…>",
// "array<i32: 1, 0>"; out: numbers and lists, or nothing where the text is of another kind.
// Invariant: reading never changes the text, which is what is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::ttgir {

/// One entry of an attribute dictionary, or one keyword of an op's own syntax.
struct Attribute {
  enum class Place : std::uint8_t {
    dictionary, ///< printed in `{…}`
    properties, ///< printed in `<{…}>` (generic form)
    syntax,     ///< printed where the op's own syntax has it
  };
  std::string_view name;
  std::string_view text; ///< empty for a unit attribute
  Place place = Place::dictionary;
};

[[nodiscard]] std::optional<std::int64_t> integer(std::string_view text); ///< "true" is 1; hex too
[[nodiscard]] std::optional<bool> boolean(std::string_view text);
/// "0.000000e+00 : f32", or hexadecimal bits "0x7FC00000 : f32" as MLIR prints NaN and infinities.
struct FloatText {
  double value = 0;
  std::optional<std::uint64_t> bits; ///< set where the text gives the bits themselves
};
[[nodiscard]] std::optional<FloatText> floating(std::string_view text);
/// The inside of "…", escapes undone.
[[nodiscard]] std::optional<std::string> string(std::string_view text);
/// "array<i32: 1, 0>" and "[1, 0]".
[[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view text);
/// The inside of "dense<…>" (its type cut off).
[[nodiscard]] std::optional<std::string_view> dense(std::string_view text);
/// The value of `key` in an attribute with a body, "#ttg.slice<{dim = 1, parent = #blocked}>".
[[nodiscard]] std::optional<std::string_view> parameter(std::string_view text,
                                                        std::string_view key);

} // namespace hebe::ttgir
