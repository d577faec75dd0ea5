#include "kernel/artifact_store.hpp"

#include "core/files.hpp"
#include "core/sha256.hpp"

namespace hebe::kernel {

std::filesystem::path ArtifactStore::path_of(const std::string& digest) const {
  return root_ / digest.substr(0, 2) / digest;
}

bool ArtifactStore::has(const std::string& digest) const {
  std::error_code ec;
  return std::filesystem::is_regular_file(path_of(digest), ec);
}

Result<std::string> ArtifactStore::put(std::string_view bytes) const {
  const auto digest = sha256_hex(bytes);
  // An existing blob is trusted only as far as its bytes: a damaged one is replaced by the good
  // one.
  if (has(digest) && get(digest)) return digest;
  const auto path = path_of(digest);
  HEBE_CHECK(make_directories(path.parent_path()));
  HEBE_CHECK(write_file_whole(path, bytes));
  return digest;
}

Result<std::string> ArtifactStore::get(const std::string& digest) const {
  const auto path = path_of(digest);
  HEBE_TRY(auto bytes, read_file(path));
  if (const auto found = sha256_hex(bytes); found != digest)
    return refuse(RefusalCode::digest_mismatch, "required sha256 " + digest + ", found " + found,
                  "restore the artifact from a copy", path.string());
  return bytes;
}

} // namespace hebe::kernel
