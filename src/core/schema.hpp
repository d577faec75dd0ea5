// Versioned JSON schemas (schemas/*.json, embedded in the binary). In: a parsed value and a schema
// name; out: nothing, or a refusal that says where, what was required and what was found.
#pragma once

#include "core/json.hpp"

namespace hebe {

/// Checks `value` against the embedded schema, e.g. "hebe.run.plan/1". The value's own "schema"
/// member is compared first: another major version is refused with «required X, found Y».
/// May be called from several threads.
[[nodiscard]] Status check_schema(const Json& value, std::string_view schema,
                                  std::string_view where);

} // namespace hebe
