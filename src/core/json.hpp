// JSON in and out. In: text from files and the worker; out: nlohmann DOM, or RFC 8785 canonical
// bytes. Invariant: duplicate names, NaN and infinities never pass; equal values give equal
// canonical bytes.
#pragma once

#include "core/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace hebe {

using Json = nlohmann::json;

/// Parses one JSON text. Refuses duplicate member names and trailing bytes (I-JSON, RFC 7493).
/// `where` names the file or stream in the refusal; code is bad_schema.
[[nodiscard]] Result<Json> parse_json(std::string_view text, std::string_view where);

/// RFC 8785 (JCS): members sorted by UTF-16 code units, numbers as ECMAScript prints them. Refuses
/// NaN, infinities, invalid UTF-8 and integers beyond 2^53 (those travel as strings).
[[nodiscard]] Result<std::string> canonical_json(const Json& value);

/// ECMAScript's Number::toString for a finite double.
[[nodiscard]] std::string ecmascript_number(double value);

/// Lower-case hex SHA-256 of the canonical bytes: the content id of a record.
[[nodiscard]] Result<std::string> content_id(const Json& value);

/// Integers of any size: a JSON number up to 2^53, a string beyond.
[[nodiscard]] Json json_integer(std::int64_t value);
/// Reads what json_integer wrote.
[[nodiscard]] Result<std::int64_t> integer_from(const Json& value, std::string_view where);

} // namespace hebe
