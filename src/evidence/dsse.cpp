#include "evidence/dsse.hpp"

#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include <openssl/evp.h>

namespace hebe::evidence {
namespace {

constexpr std::size_t kMostBytes = 4 << 20, kMostSignatures = 64;

std::unexpected<Refusal> no_envelope(std::string what, std::string_view where) {
  return refuse(RefusalCode::bad_schema, "it is no DSSE envelope: " + std::move(what),
                "restore the receipt from a copy", std::string(where));
}

// Others are somebody else's, and passed over, as the specification has it: no signature covers
// them.
Status texts_in(const Json& object, std::initializer_list<const char*> names,
                std::string_view where) {
  if (!object.is_object())
    return no_envelope(fmt::format("required an object, found {}", object.type_name()), where);
  for (const char* name : names)
    if (const auto hit = object.find(name); hit != object.end() && !hit->is_string())
      return no_envelope(fmt::format("required \"{}\" to be a string", name), where);
  return {};
}

Result<std::string> decoded(const Json& object, const char* name, std::string_view where) {
  if (!object.contains(name)) return no_envelope(fmt::format("it has no \"{}\"", name), where);
  auto bytes = from_base64(object.at(name).get_ref<const std::string&>());
  if (!bytes)
    return no_envelope(fmt::format("\"{}\" is not in base64 of one alphabet (standard or URL-safe) "
                                   "with its padding",
                                   name),
                       where);
  return *std::move(bytes);
}

Result<EnvelopeSignature> signature_from(const Json& json, std::string_view where) {
  HEBE_CHECK(texts_in(json, {"keyid", "sig"}, where));
  EnvelopeSignature out;
  HEBE_TRY(out.bytes, decoded(json, "sig", where));
  out.key_id = json.value("keyid", "");
  return out;
}

} // namespace

std::string pre_authentication_encoding(std::string_view payload_type, std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", payload_type.size(), payload_type, payload.size(),
                     payload);
}

Status add_signature(Envelope& envelope, const SigningKey& key) {
  HEBE_TRY(auto bytes,
           key.sign(pre_authentication_encoding(envelope.payload_type, envelope.payload)));
  envelope.signatures.push_back({key.public_key().id(), std::move(bytes)});
  return {};
}

SignatureFinding find_signature(const Envelope& envelope, const PublicKey& key) {
  const auto message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  auto finding = SignatureFinding::by_other_keys;
  for (const auto& s : envelope.signatures) {
    if (!s.key_id.empty() && s.key_id != key.id()) continue;
    if (key.fits(s.bytes, message)) return SignatureFinding::fits;
    finding = SignatureFinding::does_not_fit;
  }
  return finding;
}

Result<std::string> envelope_line(const Envelope& envelope) {
  Json signatures = Json::array();
  for (const auto& s : envelope.signatures)
    signatures.push_back({{"keyid", s.key_id}, {"sig", to_base64(s.bytes)}});
  return canonical_json({{"payloadType", envelope.payload_type},
                         {"payload", to_base64(envelope.payload)},
                         {"signatures", signatures}});
}

Result<Envelope> envelope_from(std::string_view line, std::string_view where) {
  if (line.size() > kMostBytes)
    return no_envelope(
        fmt::format("it has {} bytes, at most {} can be right", line.size(), kMostBytes), where);
  if (!line.starts_with('{') || !line.ends_with('}'))
    return no_envelope("it does not begin with { and end with }", where);
  const auto json = parse_json(line, where);
  if (!json) return no_envelope(json.error().what, where);
  HEBE_CHECK(texts_in(*json, {"payload", "payloadType"}, where));
  Envelope out;
  HEBE_TRY(out.payload, decoded(*json, "payload", where));
  if (!json->contains("payloadType")) return no_envelope("it has no \"payloadType\"", where);
  out.payload_type = json->at("payloadType").get<std::string>();
  const auto& signatures = json->value("signatures", Json());
  if (!signatures.is_array() || signatures.empty() || signatures.size() > kMostSignatures)
    return no_envelope(fmt::format("required 1 to {} signatures", kMostSignatures), where);
  for (const auto& s : signatures) {
    HEBE_TRY(auto signature, signature_from(s, where));
    out.signatures.push_back(std::move(signature));
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0'); // OpenSSL ends it with a zero
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  out.pop_back();
  return out;
}

std::optional<std::string> from_base64(std::string_view given) {
  std::string text(given);
  if (text.find_first_of("-_") != std::string::npos) { // the URL-safe alphabet (RFC 4648, 5)
    if (text.find_first_of("+/") != std::string::npos) return std::nullopt;
    std::ranges::replace(text, '-', '+');
    std::ranges::replace(text, '_', '/');
  }
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(text.data()),
                      static_cast<int>(text.size())) < 0)
    return std::nullopt;
  if (text.ends_with("==")) out.pop_back();
  if (text.ends_with('=')) out.pop_back();
  // OpenSSL overlooks blanks and bits behind the end: two texts would be one payload.
  if (to_base64(out) != text) return std::nullopt;
  return out;
}

} // namespace hebe::evidence
