#include "rewrite/pass_options.hpp"

#include <fmt/format.h>

namespace hebe::rewrite {
namespace {

std::unexpected<Refusal> wrong(std::string_view name, std::string_view kind, const Json& value) {
  return refuse(RefusalCode::bad_spec,
                fmt::format("option \"{}\" is {}, not {}", name, value.dump(), kind));
}

} // namespace

Result<bool> flag(const Json& options, std::string_view name, bool otherwise) {
  const auto found = options.find(name);
  if (found == options.end()) return otherwise;
  if (!found->is_boolean()) return wrong(name, "true or false", *found);
  return found->get<bool>();
}

Result<std::int64_t> number(const Json& options, std::string_view name, std::int64_t otherwise,
                            std::int64_t least) {
  const auto found = options.find(name);
  if (found == options.end()) return otherwise;
  if (!found->is_number_integer() || found->get<std::int64_t>() < least)
    return wrong(name, fmt::format("a whole number from {}", least), *found);
  return found->get<std::int64_t>();
}

Result<std::optional<std::set<std::string>>> names(const Json& options, std::string_view name) {
  const auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  std::set<std::string> out;
  if (!found->is_array()) return wrong(name, "a list of names", *found);
  for (const auto& each : *found) {
    if (!each.is_string()) return wrong(name, "a list of names", *found);
    out.insert(each.get<std::string>());
  }
  return out;
}

Result<std::optional<std::set<std::int64_t>>> ordinals(const Json& options, std::string_view name) {
  const auto found = options.find(name);
  if (found == options.end()) return std::nullopt;
  std::set<std::int64_t> out;
  if (!found->is_array()) return wrong(name, "a list of whole numbers from 1", *found);
  for (const auto& each : *found) {
    if (!each.is_number_integer() || each.get<std::int64_t>() < 1)
      return wrong(name, "a list of whole numbers from 1", *found);
    out.insert(each.get<std::int64_t>());
  }
  return out;
}

} // namespace hebe::rewrite
