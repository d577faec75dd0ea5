#include "core/sha256.hpp"

#include "core/files.hpp"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace hebe {

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  // Fails only when the library itself is broken or memory is gone: no digest can be given then.
  if (EVP_DigestInit_ex(context_->md, EVP_sha256(), nullptr) != 1) std::abort();
}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_->md, bytes.data(), bytes.size()) != 1) std::abort();
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(context_->md, digest.data(), nullptr) != 1) std::abort();
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const auto b : digest) out += kHex[b >> 4], out += kHex[b & 15];
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.hex();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::unexpected(io_refusal(errno, "open", path));
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL); // reads ahead further; may be ignored
  Sha256 sha;
  std::vector<std::byte> buffer(kHashingPiece);
  for (;;) {
    const auto got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(io_refusal(errno, "read", path));
    if (got == 0) return sha.hex();
    sha.update(std::span(buffer).first(static_cast<std::size_t>(got)));
  }
}

} // namespace hebe
