// Looking at text without understanding it: brackets, strings, comma-separated parts. In: a piece
// of IR text; out: where something ends. Invariant: a bracket or comma inside "…" does not count,
// nor does the '>' of "->".
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace hebe::ttgir {

inline constexpr std::size_t kNowhere = std::string_view::npos;

[[nodiscard]] std::string_view trimmed(std::string_view text);
/// One past the closing bracket of the one at `from`; kNowhere if it is not closed on its line,
/// closed by another kind, or nested deeper than 256.
[[nodiscard]] std::size_t end_of_brackets(std::string_view text, std::size_t from);
/// One past the closing quote of the string at `from`; kNowhere where there is none on the line.
[[nodiscard]] std::size_t end_of_string(std::string_view text, std::size_t from);
/// Where one of `stops` stands outside brackets and strings, or the line ends; text.size() if
/// neither.
[[nodiscard]] std::size_t end_of_item(std::string_view text, std::size_t from,
                                      std::string_view stops);
/// The parts between commas, without blanks around them. "" has one empty part.
[[nodiscard]] std::vector<std::string_view> parts_of(std::string_view text);
/// Characters of bare identifiers and SSA names: letters, digits, '_', '$', '.', '-'.
[[nodiscard]] constexpr bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '.' || c == '-';
}

} // namespace hebe::ttgir
