// What an analysis says under a name. In: JSON of any shape; out: the member, or nothing.
// Invariant: what is missing, null or of another type is nothing, never 0 and never an exception.
#pragma once

#include "core/json.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace hebe::report {

/// The member at the end of the path; null where one of its names is missing.
[[nodiscard]] const Json& member(const Json& json, std::initializer_list<std::string_view> path);
[[nodiscard]] std::optional<double> number(const Json& json);
/// A string as it is, a number or a bool as JSON writes it, null as nothing.
[[nodiscard]] std::string text(const Json& json);
[[nodiscard]] inline bool holds(const Json& json) { return json.is_boolean() && json.get<bool>(); }

} // namespace hebe::report
