// Ed25519 (RFC 8032) through OpenSSL. In: keys as PEM or raw bytes; out: signatures, and whether
// one fits. Invariant: the private half leaves this class only as the PEM that is meant for a key
// file; a key has one id, the SHA-256 of its SubjectPublicKeyInfo.
#pragma once

#include "core/result.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace hebe {

/// Bytes that are zeroed when they go: a private key on its way from or to its file.
class SecretBytes {
public:
  SecretBytes() = default;
  explicit SecretBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  SecretBytes(SecretBytes&& o) noexcept : bytes_(std::move(o.bytes_)) { o.clear(); }
  SecretBytes& operator=(SecretBytes&&) = delete;
  SecretBytes(const SecretBytes&) = delete;
  SecretBytes& operator=(const SecretBytes&) = delete;
  ~SecretBytes() { clear(); }
  [[nodiscard]] std::string_view view() const { return bytes_; }
  void clear();

private:
  std::string bytes_;
};

struct KeyHandle; ///< OpenSSL's key

class PublicKey {
public:
  /// SubjectPublicKeyInfo, "-----BEGIN PUBLIC KEY-----". bad_argument: another kind of PEM or key.
  [[nodiscard]] static Result<PublicKey> from_pem(std::string_view pem, std::string_view where);
  [[nodiscard]] static Result<PublicKey> from_raw(std::string_view bytes); ///< 32 of them
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] std::string pem() const;
  [[nodiscard]] bool fits(std::string_view signature, std::string_view message) const;

private:
  friend class SigningKey;
  explicit PublicKey(std::shared_ptr<const KeyHandle> key);
  std::shared_ptr<const KeyHandle> key_;
  std::string id_;
};

class SigningKey {
public:
  [[nodiscard]] static Result<SigningKey> made(); ///< from the system's random numbers
  /// PKCS#8, not encrypted, "-----BEGIN PRIVATE KEY-----". bad_argument as above.
  [[nodiscard]] static Result<SigningKey> from_pem(std::string_view pem, std::string_view where);
  [[nodiscard]] static Result<SigningKey> from_raw(std::string_view bytes); ///< 32 of them
  [[nodiscard]] Result<std::string> sign(std::string_view message) const;   ///< 64 bytes
  [[nodiscard]] PublicKey public_key() const;
  [[nodiscard]] SecretBytes pem() const;

private:
  explicit SigningKey(std::shared_ptr<const KeyHandle> key) : key_(std::move(key)) {}
  std::shared_ptr<const KeyHandle> key_;
};

} // namespace hebe
