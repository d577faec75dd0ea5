// DSSE envelopes: a payload, its type, and signatures over both. In: JSON of one line; out: the
// envelope, and whether a key signed it; and back. Invariant: what is signed has one spelling in
// each alphabet of base64, with its padding, and nothing is around the object. Passed over is only
// what no signature covers: members that the specification does not name, other keys' signatures,
// and the key's name, which is a hint.
#pragma once

#include "core/signing_key.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::evidence {

struct EnvelopeSignature {
  std::string key_id; ///< empty: not said
  std::string bytes;
};

struct Envelope {
  std::string payload_type, payload;
  std::vector<EnvelopeSignature> signatures;
};

/// What is signed (PAE): no payload with its type can be read as another's.
[[nodiscard]] std::string pre_authentication_encoding(std::string_view payload_type,
                                                      std::string_view payload);
[[nodiscard]] Status add_signature(Envelope& envelope, const SigningKey& key);

/// Which of the two things is wrong where a signature does not fit.
enum class SignatureFinding { fits, by_other_keys, does_not_fit };
/// A signature that names another key is not tried; one that names none is.
[[nodiscard]] SignatureFinding find_signature(const Envelope& envelope, const PublicKey& key);

/// Canonical JSON, no newline.
[[nodiscard]] Result<std::string> envelope_line(const Envelope& envelope);
/// bad_schema, with what is not as the specification has it.
[[nodiscard]] Result<Envelope> envelope_from(std::string_view line, std::string_view where);

[[nodiscard]] std::string to_base64(std::string_view bytes);
/// In the standard or the URL-safe alphabet. None: another spelling than to_base64's, or both
/// alphabets in one text.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

} // namespace hebe::evidence
