#include "tune/disagreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::tune {
namespace {

constexpr double kRelative = 1e-9, kAbsolute = 1e-12;
constexpr std::size_t kMostShown = 120; ///< characters of a value

std::string shown(const Json& j) {
  auto text = j.dump();
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "…";
  return text;
}

bool equal(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number() || (a.is_number_integer() && b.is_number_integer()))
    return a == b;
  const auto x = a.get<double>(), y = b.get<double>();
  return std::abs(x - y) <= kAbsolute + kRelative * std::max(std::abs(x), std::abs(y));
}

class Walk {
public:
  explicit Walk(std::vector<Refusal>& out) : out_(out) {}

  void compare(const Json& recorded, const Json& again, const std::string& path) {
    if (recorded.is_object() && again.is_object()) return members(recorded, again, path);
    if (recorded.is_array() && again.is_array() && recorded.size() == again.size()) {
      for (std::size_t i = 0; i < recorded.size(); ++i)
        compare(recorded[i], again[i], fmt::format("{}[{}]", path, i));
      return;
    }
    if (!equal(recorded, again))
      differ(path, "recorded " + shown(recorded) + ", recomputed " + shown(again));
  }

private:
  void members(const Json& recorded, const Json& again, const std::string& path) {
    for (const auto& [key, value] : recorded.items())
      if (again.contains(key))
        compare(value, again.at(key), path + "/" + key);
      else
        differ(path + "/" + key, "recorded " + shown(value) + ", recomputed: there is none");
    for (const auto& [key, value] : again.items())
      if (!recorded.contains(key))
        differ(path + "/" + key, "not recorded, recomputed " + shown(value));
  }
  void differ(const std::string& path, std::string what) {
    out_.push_back({RefusalCode::analysis_mismatch,
                    std::move(what),
                    path,
                    "restore the record from a copy",
                    {}});
  }
  std::vector<Refusal>& out_;
};

} // namespace

std::vector<Refusal> disagreements(const Json& recorded, const Json& recomputed,
                                   const std::string& where) {
  std::vector<Refusal> out;
  Walk(out).compare(recorded, recomputed, where);
  return out;
}

} // namespace hebe::tune
