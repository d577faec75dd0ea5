#include "evidence/difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hebe::evidence {
namespace {

// Prose carries rounded numbers, whose last digit another libm may turn: only the words are
// compared.
std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) {
    return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e';
  });
  return text;
}

} // namespace

std::string first_difference(const Json& stored, const Json& now, const std::string& path) {
  constexpr double kRelative = 1e-6, kAbsolute = 1e-12;
  if (stored.is_number() && now.is_number()) {
    const auto a = stored.get<double>(), b = now.get<double>();
    if (std::abs(a - b) <= kAbsolute + kRelative * std::max(std::abs(a), std::abs(b))) return {};
    return fmt::format("{}: stored {}, recomputed {}", path, a, b);
  }
  if (stored.type() != now.type())
    return fmt::format("{}: stored {}, recomputed {}", path, stored.dump(), now.dump());
  if (stored.is_object()) {
    for (const auto& [key, value] : stored.items()) {
      if (value.is_string() && now.contains(key) && now.at(key).is_string() &&
          (key == "evidence" || key == "reason")) {
        if (without_digits(value.get<std::string>()) !=
            without_digits(now.at(key).get<std::string>()))
          return fmt::format("{}/{}: stored {}, recomputed {}", path, key, value.dump(),
                             now.at(key).dump());
        continue;
      }
      if (!now.contains(key)) return path + "/" + key + ": not recomputed";
      if (auto d = first_difference(value, now.at(key), path + "/" + key); !d.empty()) return d;
    }
    for (const auto& [key, value] : now.items())
      if (!stored.contains(key)) return path + "/" + key + ": missing in the stored record";
    return {};
  }
  if (stored.is_array()) {
    if (stored.size() != now.size())
      return fmt::format("{}: stored {} items, recomputed {}", path, stored.size(), now.size());
    for (std::size_t i = 0; i < stored.size(); ++i)
      if (auto d = first_difference(stored[i], now[i], fmt::format("{}[{}]", path, i)); !d.empty())
        return d;
    return {};
  }
  return stored == now
             ? std::string()
             : fmt::format("{}: stored {}, recomputed {}", path, stored.dump(), now.dump());
}

} // namespace hebe::evidence
