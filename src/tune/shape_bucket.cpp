#include "tune/shape_bucket.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>

namespace hebe::tune {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 62;

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Result<BucketDimension> dimension_from(std::string_view text, std::string_view where) {
  const auto bad = [&](std::string_view why) {
    return refuse(RefusalCode::bad_schema,
                  fmt::format("\"{}\" is no dimension of a shape: {}", text, why),
                  "write it as in \"m<=256,n=4096\"", std::string(where));
  };
  const auto sign = text.find_first_of("<=");
  if (sign == std::string_view::npos || (text[sign] == '<' && !text.substr(sign).starts_with("<=")))
    return bad("it has no = or <=");
  BucketDimension out;
  out.name = text.substr(0, sign);
  out.bucketed = text.substr(sign).starts_with("<=");
  const auto digits = text.substr(sign + (out.bucketed ? 2 : 1));
  const auto* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, out.size);
  if (!is_name(out.name)) return bad("its name is not of a-z, 0-9 and _");
  // A leading zero would give one bucket two texts.
  if (error != std::errc() || rest != end || digits.starts_with('0') || out.size < 1 ||
      out.size > kLargest)
    return bad("its size is no whole number from 1 on");
  if (out.bucketed && !std::has_single_bit(static_cast<std::uint64_t>(out.size)))
    return bad("a bucket ends at a power of two");
  return out;
}

} // namespace

std::int64_t bucket_end(std::int64_t size) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

Result<ShapeBucket> bucket_of(std::span<const NamedSize> shape,
                              std::span<const std::string> bucketed) {
  ShapeBucket out;
  std::set<std::string> names;
  for (const auto& [name, size] : shape) {
    if (!is_name(name) || !names.insert(name).second)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("\"{}\" is no name of a dimension, or is there twice", name));
    if (size < 1 || size > kLargest)
      return refuse(RefusalCode::bad_argument, fmt::format("{} is {}", name, size));
    const bool shared = std::find(bucketed.begin(), bucketed.end(), name) != bucketed.end();
    out.push_back({name, shared ? bucket_end(size) : size, shared});
  }
  if (out.empty()) return refuse(RefusalCode::bad_argument, "a shape has a dimension");
  for (const auto& name : bucketed)
    if (!names.contains(name))
      return refuse(RefusalCode::bad_argument,
                    fmt::format("the shape has no \"{}\" to be bucketed", name));
  return out;
}

std::string text_of(const ShapeBucket& bucket) {
  std::string out;
  for (const auto& d : bucket)
    out += fmt::format("{}{}{}{}", out.empty() ? "" : ",", d.name, d.bucketed ? "<=" : "=", d.size);
  return out;
}

Result<ShapeBucket> bucket_from(std::string_view text, std::string_view where) {
  ShapeBucket out;
  std::set<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    HEBE_TRY(auto dimension, dimension_from(text.substr(begin, comma - begin), where));
    if (!names.insert(dimension.name).second)
      return refuse(RefusalCode::bad_schema,
                    fmt::format("\"{}\" has {} twice", text, dimension.name), {},
                    std::string(where));
    out.push_back(std::move(dimension));
    begin = comma + 1;
  }
  return out;
}

bool holds(const ShapeBucket& bucket, std::span<const NamedSize> shape) {
  return std::equal(bucket.begin(), bucket.end(), shape.begin(), shape.end(),
                    [](const BucketDimension& d, const NamedSize& s) {
                      if (d.name != s.name || s.size < 1 || s.size > d.size) return false;
                      return d.bucketed ? s.size > d.size / 2 : s.size == d.size;
                    });
}

} // namespace hebe::tune
