// What a pass was asked for. In: the options of one pass, JSON; out: values of the wanted kind, or
// bad_spec with the option's name. Invariant: an option that is absent has its default.
#pragma once

#include "core/json.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace hebe::rewrite {

[[nodiscard]] Result<bool> flag(const Json& options, std::string_view name, bool otherwise);
/// A whole number, `least` or more.
[[nodiscard]] Result<std::int64_t> number(const Json& options, std::string_view name,
                                          std::int64_t otherwise, std::int64_t least);
/// A list of names; nothing where it is absent.
[[nodiscard]] Result<std::optional<std::set<std::string>>> names(const Json& options,
                                                                 std::string_view name);
/// A list of whole numbers from 1; nothing where it is absent.
[[nodiscard]] Result<std::optional<std::set<std::int64_t>>> ordinals(const Json& options,
                                                                     std::string_view name);

} // namespace hebe::rewrite
