// Keys in files. In: a path; out: a key, or why the file is refused. Invariant: a private key is
// taken only from a regular file, under its own name, that belongs to us or to root and that nobody
// else can reach; it is never printed, and what was read of it is zeroed.
#pragma once

#include "core/signing_key.hpp"

#include <filesystem>

namespace hebe {

/// no_permission with the mode and the chmod that mends it; not_found; io_failed for a link, a
/// device, or a file that is too large to be a key; bad_argument for another kind of key.
[[nodiscard]] Result<SigningKey> read_signing_key(const std::filesystem::path& path);
/// The same but for the permissions: anybody may read a public key.
[[nodiscard]] Result<PublicKey> read_public_key(const std::filesystem::path& path);

/// The file's own name with ".pub" behind it.
[[nodiscard]] std::filesystem::path public_file_of(const std::filesystem::path& path);
/// Makes `path` (0600) and its public file (0644). already_exists where either is there.
[[nodiscard]] Result<PublicKey> make_key_files(const std::filesystem::path& path);

} // namespace hebe
