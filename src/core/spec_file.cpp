#include "core/spec_file.hpp"

#include "core/files.hpp"

#include <fmt/format.h>
#define TOML_EXCEPTIONS 0
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include <algorithm>

namespace hebe {
namespace {

Result<Json> json_of(const toml::node& node, const std::string& where) {
  if (const auto* table = node.as_table()) {
    Json out = Json::object();
    for (const auto& [key, value] : *table) {
      HEBE_TRY(out[std::string(key.str())], json_of(value, where));
    }
    return out;
  }
  if (const auto* array = node.as_array()) {
    Json out = Json::array();
    for (const auto& value : *array) {
      HEBE_TRY(auto item, json_of(value, where));
      out.push_back(std::move(item));
    }
    return out;
  }
  if (const auto v = node.value_exact<bool>()) return Json(*v);
  if (const auto v = node.value_exact<std::int64_t>()) return Json(*v);
  if (const auto v = node.value_exact<double>()) return Json(*v);
  if (const auto v = node.value_exact<std::string>()) return Json(*v);
  const auto& at = node.source().begin;
  return refuse(RefusalCode::bad_spec, "dates and times have no meaning in a specification", {},
                fmt::format("{}:{}:{}", where, at.line, at.column));
}

// The parser limits nested values but not dotted keys, and a key of 50 000 dots ends in a stack
// overflow. No honest line has so many dots.
Status not_nested_deeply(std::string_view text, const std::string& where) {
  constexpr std::ptrdiff_t kMostDots = 1000;
  for (int line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    if (std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '.') > kMostDots)
      return refuse(RefusalCode::bad_spec,
                    fmt::format("a line with more than {} dots is no specification's", kMostDots),
                    {}, fmt::format("{}:{}", where, line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

} // namespace

Result<Json> read_spec_file(const std::filesystem::path& file) {
  constexpr std::uint64_t kLargestSpec = 64 << 20;
  HEBE_CHECK(there_is(file));
  HEBE_TRY(const auto record, read_record(file, kLargestSpec));
  const auto& text = record.bytes;
  const auto where = file.string();
  if (file.extension() == ".json") {
    auto parsed = parse_json(text, where);
    if (!parsed) parsed.error().code = RefusalCode::bad_spec; // the author's file, not stored data
    return parsed;
  }
  HEBE_CHECK(not_nested_deeply(text, where));
  const auto parsed = toml::parse(text, where);
  if (!parsed) {
    const auto& error = parsed.error();
    return refuse(
        RefusalCode::bad_spec, std::string(error.description()),
        "TOML, or JSON in a file named .json",
        fmt::format("{}:{}:{}", where, error.source().begin.line, error.source().begin.column));
  }
  return json_of(parsed.table(), where);
}

} // namespace hebe
