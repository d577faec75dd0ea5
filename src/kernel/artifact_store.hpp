// Immutable blobs by content. In: bytes; out: their SHA-256, under <root>/artifacts/ab/abcdef….
// Invariant: a blob's name is its digest, checked when it is read; storing twice is storing once.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace hebe::kernel {

class ArtifactStore {
public:
  explicit ArtifactStore(std::filesystem::path data_root)
      : root_(std::move(data_root) / "artifacts") {}
  /// Durable when it returns. Returns the digest.
  [[nodiscard]] Result<std::string> put(std::string_view bytes) const;
  /// Refuses with digest_mismatch when the blob is not what its name says.
  [[nodiscard]] Result<std::string> get(const std::string& digest) const;
  [[nodiscard]] bool has(const std::string& digest) const;
  [[nodiscard]] std::filesystem::path path_of(const std::string& digest) const;

private:
  std::filesystem::path root_;
};

/// Everything one compilation made: kind (source, ttir, ttgir, llir, ptx, cubin, sass) to digest.
using ArtifactSet = std::map<std::string, std::string>;

} // namespace hebe::kernel
