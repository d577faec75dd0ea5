// SHA-256 through OpenSSL. In: bytes or a file; out: lower-case hex. Invariant: a digest is only
// ever of all the bytes; a read error is a refusal, never a digest of less.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hebe {

/// How much is read before it is hashed: small enough to stay in the second-level cache, large
/// enough that the system calls do not count (bench/hashing.cpp).
inline constexpr std::size_t kHashingPiece = 1 << 17;

class Sha256 {
public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  [[nodiscard]] std::string hex(); ///< ends the computation

private:
  struct Context;
  std::unique_ptr<Context> context_;
};

[[nodiscard]] std::string sha256_hex(std::string_view bytes);
[[nodiscard]] Result<std::string> sha256_of_file(const std::filesystem::path& path);

} // namespace hebe
