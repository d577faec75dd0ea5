#include "ttgir/scan.hpp"

#include <array>

namespace hebe::ttgir {
namespace {

constexpr bool opens(char c) { return c == '<' || c == '(' || c == '[' || c == '{'; }

} // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::size_t end_of_string(std::string_view text, std::size_t from) {
  for (std::size_t i = from + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
    else if (text[i] == '\n')
      return kNowhere;
  }
  return kNowhere;
}

std::size_t end_of_brackets(std::string_view text, std::size_t from) {
  std::array<char, 256> open; // NOLINT: only the first `depth` are read
  std::size_t depth = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    switch (const char c = text[i]) {
    case '"':
      i = end_of_string(text, i);
      if (i == kNowhere) return kNowhere;
      --i;
      break;
    case '<':
    case '(':
    case '[':
    case '{':
      if (depth == open.size()) return kNowhere;
      open[depth++] = c;
      break;
    case '>':
      if (i > from && text[i - 1] == '-') break; // "->"
      [[fallthrough]];
    case ')':
    case ']':
    case '}': {
      const char partner = c == '>' ? '<' : c == ')' ? '(' : c == ']' ? '[' : '{';
      if (depth == 0 || open[depth - 1] != partner) return kNowhere;
      if (--depth == 0) return i + 1;
      break;
    }
    case '\n':
      return kNowhere;
    default:
      break;
    }
  }
  return kNowhere;
}

std::size_t end_of_item(std::string_view text, std::size_t from, std::string_view stops) {
  for (std::size_t i = from; i < text.size();) {
    const char c = text[i];
    if (c == '\n' || stops.find(c) != kNowhere) return i;
    if (c == '"' || opens(c)) {
      const auto end = c == '"' ? end_of_string(text, i) : end_of_brackets(text, i);
      if (end == kNowhere) return i;
      i = end;
    } else {
      ++i;
    }
  }
  return text.size();
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const auto end = end_of_item(text, begin, ",");
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    if (end >= text.size() || text[end] != ',') return parts;
    begin = end + 1;
  }
}

} // namespace hebe::ttgir
