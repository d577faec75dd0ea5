#include "core/key_file.hpp"

#include "core/files.hpp"
#include "core/new_file.hpp"

#include <fmt/format.h>

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostBytes = 16 << 10; ///< an Ed25519 key has 200; RSA's are named, not read

Status check_private(const struct stat& info, const fs::path& path) {
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    return refuse(
        RefusalCode::no_permission,
        fmt::format("the private key belongs to user {}, we are user {}", info.st_uid, ::geteuid()),
        "use a key of your own: `hebe receipt key FILE`", path.string());
  if ((info.st_mode & 0077) == 0) return {};
  return refuse(
      RefusalCode::no_permission,
      fmt::format("the private key can be reached by others: its mode is {:04o}",
                  info.st_mode & 07777),
      fmt::format("chmod 600 {}, and if others were there, make a new key", path.string()),
      path.string());
}

enum class Half { is_private, is_public };

// Opened once: what is looked at is what is read.
Result<SecretBytes> read_key(const fs::path& path, Half half) {
  std::error_code ec;
  if (fs::symlink_status(path, ec).type() == fs::file_type::not_found)
    return refuse(RefusalCode::not_found, "there is no such key file",
                  "`hebe receipt key FILE` makes a pair", path.string());
  HEBE_TRY(const auto fd, open_record(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return std::unexpected(io_refusal(errno, "stat", path));
  std::string bytes(kMostBytes + 1, '\0');
  std::size_t have = 0;
  int error = 0;
  while (have < bytes.size() && error == 0) {
    const auto got = ::read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno != EINTR) error = errno;
    if (got == 0) break;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  SecretBytes out(std::move(bytes));
  // A public key in a private one's place is named as that: nobody is to be told to hide it.
  if (half == Half::is_private && out.view().find("BEGIN PUBLIC KEY") == std::string_view::npos)
    HEBE_CHECK(check_private(info, path));
  if (error != 0) return std::unexpected(io_refusal(error, "read", path));
  if (have > kMostBytes)
    return refuse(RefusalCode::io_failed,
                  fmt::format("it has more than {} bytes: no key", kMostBytes), {}, path.string());
  return out;
}

} // namespace

Result<SigningKey> read_signing_key(const fs::path& path) {
  HEBE_TRY(const auto pem, read_key(path, Half::is_private));
  return SigningKey::from_pem(pem.view(), path.string());
}

Result<PublicKey> read_public_key(const fs::path& path) {
  HEBE_TRY(const auto pem, read_key(path, Half::is_public));
  return PublicKey::from_pem(pem.view(), path.string());
}

fs::path public_file_of(const fs::path& path) { return path.string() + ".pub"; }

Result<PublicKey> make_key_files(const fs::path& path) {
  HEBE_TRY(const auto key, SigningKey::made());
  const auto half = key.public_key();
  // The public file first: a private key whose other half is missing would be of no use.
  HEBE_CHECK(write_unless_there(public_file_of(path), half.pem(), 0644));
  if (auto status = write_unless_there(path, key.pem().view(), 0600); !status) {
    ::unlink(public_file_of(path).c_str());
    return std::unexpected(std::move(status).error());
  }
  return half;
}

} // namespace hebe
