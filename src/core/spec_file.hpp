// A specification that a person wrote. In: a TOML file, or JSON in a file named .json; out: JSON.
// Invariant: whatever is wrong with it is bad_spec with line and column, and nothing was run.
#pragma once

#include "core/json.hpp"

#include <filesystem>

namespace hebe {

[[nodiscard]] Result<Json> read_spec_file(const std::filesystem::path& file);

} // namespace hebe
