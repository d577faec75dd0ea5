#include "core/json.hpp"

#include "core/sha256.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace hebe {
namespace {

constexpr std::int64_t kMaxSafeInteger = 9'007'199'254'740'992; // 2^53

void append_string(std::string& out, const std::string& s) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char ch : s) {
    const auto c = static_cast<unsigned char>(ch);
    switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      if (c < 0x20) {
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
      } else {
        out += ch;
      }
    }
  }
  out += '"';
}

// UTF-16 code units of valid UTF-8, or nothing if it is not valid.
std::optional<std::u16string> utf16(std::string_view s) {
  std::u16string out;
  for (std::size_t i = 0; i < s.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned char first = byte(i);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xC2 ? 0
                               : first < 0xE0 ? 2
                               : first < 0xF0 ? 3
                               : first < 0xF5 ? 4
                                              : 0;
    if (length == 0 || i + length > s.size()) return std::nullopt;
    char32_t cp = length == 1 ? first : first & (0x7FU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return std::nullopt;
      cp = (cp << 6) | (byte(i + k) & 0x3FU);
    }
    static constexpr std::array<char32_t, 5> kMinimum = {0, 0, 0x80, 0x800, 0x10000};
    if (cp < kMinimum[length] || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
      return std::nullopt;
    if (cp >= 0x10000) {
      out += static_cast<char16_t>(0xD800 + ((cp - 0x10000) >> 10));
      out += static_cast<char16_t>(0xDC00 + ((cp - 0x10000) & 0x3FF));
    } else {
      out += static_cast<char16_t>(cp);
    }
    i += length;
  }
  return out;
}

Status append(std::string& out, const Json& v);

Status append_object(std::string& out, const Json& v) {
  std::vector<std::pair<std::u16string, const std::string*>> names;
  for (const auto& [name, member] : v.items()) {
    auto key = utf16(name);
    if (!key) return refuse(RefusalCode::bad_schema, "a member name is not valid UTF-8");
    names.emplace_back(std::move(*key), &v.find(name).key());
  }
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  out += '{';
  for (bool first = true; const auto& [key, name] : names) {
    if (!std::exchange(first, false)) out += ',';
    append_string(out, *name);
    out += ':';
    HEBE_CHECK(append(out, v.at(*name)));
  }
  out += '}';
  return {};
}

// A whole double beyond 2^53 is written without an exponent up to 1e21, and reads back as an
// integer: its own text is taken again. Any other integer of that size would lose digits.
Status append_integer(std::string& out, double nearest, const std::string& digits) {
  if (std::abs(nearest) >= static_cast<double>(kMaxSafeInteger) &&
      ecmascript_number(nearest) != digits)
    return refuse(RefusalCode::bad_schema, "integer " + digits + " is beyond 2^53",
                  "store it as a string (json_integer)");
  out += digits;
  return {};
}

Status append(std::string& out, const Json& v) {
  switch (v.type()) {
  case Json::value_t::null:
    out += "null";
    return {};
  case Json::value_t::boolean:
    out += v.get<bool>() ? "true" : "false";
    return {};
  case Json::value_t::number_integer: {
    const auto i = v.get<std::int64_t>();
    return append_integer(out, static_cast<double>(i), std::to_string(i));
  }
  case Json::value_t::number_unsigned: {
    const auto u = v.get<std::uint64_t>();
    return append_integer(out, static_cast<double>(u), std::to_string(u));
  }
  case Json::value_t::number_float:
    if (!std::isfinite(v.get<double>()))
      return refuse(RefusalCode::bad_schema, "a number is NaN or infinite",
                    "a missing value is null, never NaN");
    out += ecmascript_number(v.get<double>());
    return {};
  case Json::value_t::string:
    if (!utf16(v.get_ref<const std::string&>()))
      return refuse(RefusalCode::bad_schema, "a string is not valid UTF-8");
    append_string(out, v.get_ref<const std::string&>());
    return {};
  case Json::value_t::array:
    out += '[';
    for (bool first = true; const auto& item : v) {
      if (!std::exchange(first, false)) out += ',';
      HEBE_CHECK(append(out, item));
    }
    out += ']';
    return {};
  case Json::value_t::object:
    return append_object(out, v);
  default:
    return refuse(RefusalCode::internal, "a JSON value of no JSON type");
  }
}

} // namespace

std::string ecmascript_number(double value) {
  if (value == 0) return "0"; // also -0
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view all(text.data(), static_cast<std::size_t>(end - text.data()));
  const auto e = all.find('e');
  std::string digits(all.substr(0, e));
  if (const auto dot = digits.find('.'); dot != std::string::npos) digits.erase(dot, 1);
  int exponent = 0;
  const char* begin = all.data() + e + 1;
  if (*begin == '+') ++begin;
  std::from_chars(begin, end, exponent);

  // ECMA-262 Number::toString: k digits, decimal point after n of them.
  const int k = static_cast<int>(digits.size()), n = exponent + 1;
  const std::string sign = value < 0 ? "-" : "";
  const auto zeros = [](int count) { return std::string(static_cast<std::size_t>(count), '0'); };
  const auto split = static_cast<std::size_t>(std::max(n, 0));
  if (k <= n && n <= 21) return sign + digits + zeros(n - k);
  if (0 < n && n <= 21) return sign + digits.substr(0, split) + "." + digits.substr(split);
  if (-6 < n && n <= 0) return sign + "0." + zeros(-n) + digits;
  const std::string mantissa = k == 1 ? digits : digits.substr(0, 1) + "." + digits.substr(1);
  return sign + mantissa + "e" + (n > 0 ? "+" : "-") + std::to_string(std::abs(n - 1));
}

namespace {

// In the words of whoever gave the text, and where in it: nlohmann's own say which of its classes
// noticed.
Refusal not_json(std::string_view text, std::string_view where, const Json::exception& e) {
  Refusal out{RefusalCode::bad_schema,
              "it is empty",
              std::string(where),
              "give a whole JSON text; a file that was cut short has to be made or copied again",
              {}};
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return out;
  std::string_view said = e.what();
  if (const auto end = said.find("] "); end != said.npos) said.remove_prefix(end + 2);
  std::string at;
  if (const auto* syntax = dynamic_cast<const Json::parse_error*>(&e)) {
    at = " at byte " + std::to_string(std::min(syntax->byte, text.size()));
    if (syntax->byte > text.size())
      said = "it ends in the middle of a value";
    else if (const auto place = said.find("column "); place != said.npos)
      said.remove_prefix(std::min(said.size(), said.find(": ", place) + 2));
  }
  out.what = "it is not JSON: " + std::string(said) + at;
  return out;
}

} // namespace

Result<Json> parse_json(std::string_view text, std::string_view where) {
  std::vector<std::set<std::string>> open;
  std::string duplicate;
  // Nothing of ours nests deeply; what does would end in a stack overflow where it is destroyed.
  constexpr int kDeepest = 200;
  struct TooDeep {};
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) throw TooDeep();
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      duplicate = parsed.get<std::string>();
    return true;
  };
  try {
    Json value = Json::parse(text, watch);
    if (!duplicate.empty())
      return refuse(RefusalCode::bad_schema, "the member name \"" + duplicate + "\" occurs twice",
                    {}, std::string(where));
    return value;
  } catch (const TooDeep&) {
    return refuse(RefusalCode::bad_schema,
                  "values are nested more than " + std::to_string(kDeepest) + " deep", {},
                  std::string(where));
  } catch (const Json::exception& e) {
    return std::unexpected(not_json(text, where, e));
  }
}

Result<std::string> canonical_json(const Json& value) {
  std::string out;
  HEBE_CHECK(append(out, value));
  return out;
}

Result<std::string> content_id(const Json& value) {
  HEBE_TRY(auto text, canonical_json(value));
  return sha256_hex(text);
}

Json json_integer(std::int64_t value) {
  if (value >= -kMaxSafeInteger && value <= kMaxSafeInteger) return value;
  return std::to_string(value);
}

Result<std::int64_t> integer_from(const Json& value, std::string_view where) {
  const bool fits = !value.is_number_unsigned() ||
                    value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max();
  if (value.is_number_integer() && fits) return value.get<std::int64_t>();
  if (value.is_string()) {
    const auto& s = value.get_ref<const std::string&>();
    std::int64_t out = 0;
    if (auto [p, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
        ec == std::errc{} && p == s.data() + s.size())
      return out;
  }
  return refuse(RefusalCode::bad_schema, "required an integer, found " + value.dump(), {},
                std::string(where));
}

} // namespace hebe
