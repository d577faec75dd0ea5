#include "ttgir/attribute.hpp"

#include "ttgir/scan.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace hebe::ttgir {
namespace {

/// "16 : i32" without its type.
std::string_view without_type(std::string_view text) {
  return trimmed(text.substr(0, end_of_item(text, 0, ":")));
}

} // namespace

std::optional<std::int64_t> integer(std::string_view text) {
  text = without_type(text);
  if (text == "true") return 1;
  if (text == "false") return 0;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::optional<bool> boolean(std::string_view text) {
  text = without_type(text);
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::optional<FloatText> floating(std::string_view text) {
  text = without_type(text);
  if (text.starts_with("0x")) {
    const auto bits = integer(text);
    if (!bits) return std::nullopt;
    return FloatText{0, static_cast<std::uint64_t>(*bits)};
  }
  // from_chars reads to the nearest double; what MLIR prints reads back to the value it had.
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    value = std::strtod(std::string(text).c_str(), nullptr);
  else if (error != std::errc())
    return std::nullopt;
  return FloatText{value, std::nullopt};
}

std::optional<std::string> string(std::string_view text) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  const auto hex = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string plain;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const char c = text[++i];
    if (c == 'n')
      plain += '\n';
    else if (c == 't')
      plain += '\t';
    else if (c == '"' || c == '\\')
      plain += c;
    else if (i + 2 < text.size() && hex(c) >= 0 && hex(text[i + 1]) >= 0)
      plain += static_cast<char>(hex(c) * 16 + hex(text[++i]));
    else
      return std::nullopt;
  }
  return plain;
}

std::optional<std::vector<std::int64_t>> integers(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("array<") && text.ends_with('>')) {
    text = text.substr(6, text.size() - 7);
    const auto colon = text.find(':');
    text = colon == kNowhere ? std::string_view{} : text.substr(colon + 1);
  } else if (text = without_type(text); text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
  } else {
    return std::nullopt;
  }
  std::vector<std::int64_t> values;
  while (!trimmed(text).empty()) {
    const auto comma = text.find(',');
    const auto value = integer(text.substr(0, comma));
    if (!value) return std::nullopt;
    values.push_back(*value);
    if (comma == kNowhere) break;
    text.remove_prefix(comma + 1);
  }
  return values;
}

std::optional<std::string_view> dense(std::string_view text) {
  text = without_type(text);
  if (!text.starts_with("dense<") || !text.ends_with('>')) return std::nullopt;
  return text.substr(6, text.size() - 7);
}

std::optional<std::string_view> parameter(std::string_view text, std::string_view key) {
  const auto open = text.find("<{");
  if (open == kNowhere || text.rfind('}') < open + 2) return std::nullopt;
  for (const auto entry : parts_of(text.substr(open + 2, text.rfind('}') - open - 2))) {
    const auto equals = entry.find('=');
    if (equals != kNowhere && trimmed(entry.substr(0, equals)) == key)
      return trimmed(entry.substr(equals + 1));
  }
  return std::nullopt;
}

} // namespace hebe::ttgir
