#include "qualify/static_code.hpp"

#include <algorithm>
#include <tuple>

namespace hebe::qualify {

std::string_view name_of(AccessKind kind) {
  constexpr std::string_view names[] = {
      "global_load", "global_store", "atomic",        "async_copy", "bulk_load",  "bulk_store",
      "shared_load", "shared_store", "shared_atomic", "local_load", "local_store"};
  return names[static_cast<std::size_t>(kind)];
}

bool is_global(AccessKind kind) { return kind < AccessKind::shared_load; }

void StaticCode::count(std::string_view class_name, std::string_view opcode, bool is_predicated) {
  ++instructions;
  if (is_predicated) ++predicated;
  ++classes[std::string(class_name.empty() ? "other" : class_name)];
  if (class_name.empty()) ++other[std::string(opcode)];
}

std::uint64_t StaticCode::accesses_of(AccessKind kind) const {
  return static_cast<std::uint64_t>(std::ranges::count(accesses, kind, &StaticAccess::kind));
}

std::uint64_t StaticCode::accesses_of(AccessKind kind, std::string_view argument) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(accesses, [&](const StaticAccess& each) {
    return each.kind == kind && each.argument == argument;
  }));
}

void StaticCode::mark_loop(std::uint32_t first_line, std::uint32_t last_line) {
  for (StaticAccess& each : accesses)
    if (each.line >= first_line && each.line <= last_line) each.in_loop = true;
}

Json to_json(const StaticCode& code) {
  using Key = std::tuple<AccessKind, std::string, std::string, unsigned, bool, bool, std::string>;
  std::map<Key, std::uint64_t> groups;
  for (const StaticAccess& each : code.accesses)
    ++groups[{each.kind, each.argument, each.untraced, each.bytes, each.predicated, each.in_loop,
              each.modifiers}];
  Json accesses = Json::array();
  for (const auto& [key, number] : groups) {
    const auto& [kind, argument, untraced, bytes, predicated, in_loop, modifiers] = key;
    Json group = {{"kind", name_of(kind)},
                  {"count", number},
                  {"predicated", predicated},
                  {"in_loop", in_loop}};
    if (is_global(kind)) {
      group["argument"] = argument.empty() ? Json() : Json(argument);
      if (argument.empty()) group["untraced"] = untraced;
    }
    group["bytes_a_thread"] = bytes == 0 ? Json() : Json(bytes);
    if (!modifiers.empty()) group["modifiers"] = modifiers;
    accesses.push_back(std::move(group));
  }
  return {{"provenance", "static counts of the text; what is in a loop counts once"},
          {"instructions", code.instructions},
          {"predicated", code.predicated},
          {"classes", code.classes},
          {"other", code.other},
          {"accesses", accesses}};
}

} // namespace hebe::qualify
