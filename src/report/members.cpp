#include "report/members.hpp"

namespace hebe::report {

const Json& member(const Json& json, std::initializer_list<std::string_view> path) {
  static const Json kNothing;
  const Json* at = &json;
  for (const auto name : path) {
    if (!at->is_object()) return kNothing;
    const auto found = at->find(std::string(name));
    if (found == at->end()) return kNothing;
    at = &*found;
  }
  return *at;
}

std::optional<double> number(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

std::string text(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_string()) return json.get<std::string>();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace hebe::report
