// A file that is whole under its name, and never in another's place. In: a path and bytes; out: a
// durable file of exactly that mode, or a refusal. Invariant: what lies under the name is never
// touched: already_exists, whoever made it and when.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <string_view>

#include <sys/types.h>

namespace hebe {

/// Written beside its place, synced, and linked there: a link never takes another file's name.
[[nodiscard]] Status write_unless_there(const std::filesystem::path& path, std::string_view bytes,
                                        ::mode_t mode);

} // namespace hebe
