#include "core/signing_key.hpp"

#include "core/sha256.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace hebe {

struct KeyHandle {
  EVP_PKEY* key = nullptr;
  explicit KeyHandle(EVP_PKEY* k) : key(k) {}
  KeyHandle(const KeyHandle&) = delete;
  KeyHandle& operator=(const KeyHandle&) = delete;
  ~KeyHandle() { EVP_PKEY_free(key); } // zeroes the private half
};

namespace {

constexpr std::size_t kKeyBytes = 32, kSignatureBytes = 64;

struct FreeBio {
  void operator()(BIO* b) const { BIO_free(b); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;
struct FreeContext {
  void operator()(EVP_MD_CTX* c) const { EVP_MD_CTX_free(c); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::unexpected<Refusal> wrong_key(std::string what, std::string_view where) {
  return refuse(RefusalCode::bad_argument, std::move(what),
                "give an Ed25519 key; `hebe receipt key FILE` makes a pair", std::string(where));
}

// OpenSSL would take the first block that it understands: the label decides here, by its name.
Status check_label(std::string_view pem, std::string_view required, std::string_view where) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  const auto at = pem.find(kBegin);
  const auto end = at == std::string_view::npos ? at : pem.find("-----", at + kBegin.size());
  if (end == std::string_view::npos) return wrong_key("it is no PEM file", where);
  const auto label = pem.substr(at + kBegin.size(), end - at - kBegin.size());
  if (pem.find(kBegin, end) != std::string_view::npos)
    return wrong_key("it holds more than one key or certificate", where);
  if (label == required) return {};
  if (label == "PUBLIC KEY") return wrong_key("it is a public key, a private one is needed", where);
  if (label == "PRIVATE KEY")
    return wrong_key("it is a private key, a public one is needed: the file that ends in .pub",
                     where);
  return wrong_key(
      fmt::format("it holds \"{}\", required is \"{}\"", label.substr(0, 40), required), where);
}

Status check_type(EVP_PKEY* key, std::string_view where) {
  if (EVP_PKEY_is_a(key, "ED25519") == 1) return {};
  const char* name = EVP_PKEY_get0_type_name(key);
  return wrong_key(fmt::format("its key is {}, required is ED25519", name ? name : "unknown"),
                   where);
}

// A passphrase is never asked for: nobody may be at the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

using ReadPem = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);
Result<std::shared_ptr<const KeyHandle>> read_pem(ReadPem read, std::string_view label,
                                                  std::string_view pem, std::string_view where) {
  HEBE_CHECK(check_label(pem, label, where));
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  auto handle = std::make_shared<const KeyHandle>(
      bio ? read(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  ERR_clear_error();
  if (handle->key == nullptr) return wrong_key("its PEM cannot be read", where);
  HEBE_CHECK(check_type(handle->key, where));
  return handle;
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

} // namespace

void SecretBytes::clear() {
  OPENSSL_cleanse(bytes_.data(), bytes_.capacity());
  bytes_.clear();
}

PublicKey::PublicKey(std::shared_ptr<const KeyHandle> key) : key_(std::move(key)) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key_->key, &der);
  if (size <= 0) std::abort(); // memory is gone: no id can be given
  id_ = sha256_hex({reinterpret_cast<char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
}

Result<PublicKey> PublicKey::from_pem(std::string_view pem, std::string_view where) {
  HEBE_TRY(auto key, read_pem(PEM_read_bio_PUBKEY, "PUBLIC KEY", pem, where));
  return PublicKey(std::move(key));
}

Result<PublicKey> PublicKey::from_raw(std::string_view bytes) {
  auto* key = bytes.size() != kKeyBytes ? nullptr
                                        : EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr,
                                                                      bytes_of(bytes), kKeyBytes);
  if (key == nullptr) return wrong_key("no 32 bytes of a public key", {});
  return PublicKey(std::make_shared<const KeyHandle>(key));
}

std::string PublicKey::pem() const {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PUBKEY(bio.get(), key_->key) != 1) std::abort();
  return text_in(bio.get());
}

bool PublicKey::fits(std::string_view signature, std::string_view message) const {
  if (signature.size() != kSignatureBytes) return false;
  const Context context(EVP_MD_CTX_new());
  const bool fits =
      context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_->key) == 1 &&
      EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message),
                       message.size()) == 1;
  ERR_clear_error();
  return fits;
}

Result<SigningKey> SigningKey::made() {
  auto* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  if (key == nullptr) return refuse(RefusalCode::internal, "OpenSSL made no key");
  return SigningKey(std::make_shared<const KeyHandle>(key));
}

Result<SigningKey> SigningKey::from_pem(std::string_view pem, std::string_view where) {
  HEBE_TRY(auto key, read_pem(PEM_read_bio_PrivateKey, "PRIVATE KEY", pem, where));
  return SigningKey(std::move(key));
}

Result<SigningKey> SigningKey::from_raw(std::string_view bytes) {
  auto* key = bytes.size() != kKeyBytes ? nullptr
                                        : EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                                                       bytes_of(bytes), kKeyBytes);
  if (key == nullptr) return wrong_key("no 32 bytes of a private key", {});
  return SigningKey(std::make_shared<const KeyHandle>(key));
}

Result<std::string> SigningKey::sign(std::string_view message) const {
  std::array<unsigned char, kSignatureBytes> out{};
  std::size_t size = out.size();
  const Context context(EVP_MD_CTX_new());
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_->key) != 1 ||
      EVP_DigestSign(context.get(), out.data(), &size, bytes_of(message), message.size()) != 1 ||
      size != out.size())
    return refuse(RefusalCode::internal, "OpenSSL did not sign");
  return std::string(reinterpret_cast<const char*>(out.data()), out.size());
}

PublicKey SigningKey::public_key() const { return PublicKey(key_); }

SecretBytes SigningKey::pem() const {
  const Bio bio(BIO_new(BIO_s_secmem())); // zeroed when it is freed
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), key_->key, nullptr, nullptr, 0, nullptr,
                                            nullptr) != 1)
    std::abort();
  return SecretBytes(text_in(bio.get()));
}

} // namespace hebe
