// Facts about keys and envelopes: the standards' own examples, one spelling, and who can read a
// key.
#include "core/json.hpp"
#include "core/key_file.hpp"
#include "evidence/dsse.hpp"

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

SigningKey key_of(char digit) { return SigningKey::from_raw(std::string(32, digit)).value(); }

Envelope signed_envelope(const SigningKey& key) {
  Envelope e{"application/vnd.in-toto+json", R"({"a":1})", {}};
  (void)add_signature(e, key);
  return e;
}

struct Vector {
  const char *secret, *half, *message, *signature;
};
// RFC 8032, 7.1: TEST 1, 2 and 3.
constexpr Vector kVectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b"
     "46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11"
     "d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc"
     "6594a7c15e9716ed28dc027beceea1ec40a"}};

TEST(SigningKey, gives_the_signatures_of_rfc_8032) {
  for (const auto& v : kVectors) {
    const auto key = SigningKey::from_raw(from_hex(v.secret)).value();
    const auto half = PublicKey::from_raw(from_hex(v.half)).value();
    EXPECT_EQ(key.public_key().id(), half.id());
    EXPECT_EQ(key.sign(from_hex(v.message)).value(), from_hex(v.signature));
    EXPECT_TRUE(half.fits(from_hex(v.signature), from_hex(v.message)));
    EXPECT_FALSE(half.fits(from_hex(v.signature), from_hex(v.message) + "x"));
    EXPECT_FALSE(half.fits(from_hex(v.signature).substr(1), from_hex(v.message)));
  }
}

TEST(SigningKey, both_halves_survive_their_pem) {
  const auto key = SigningKey::made().value();
  const auto again = SigningKey::from_pem(key.pem().view(), "k").value();
  const auto half = PublicKey::from_pem(key.public_key().pem(), "k.pub").value();
  EXPECT_EQ(again.public_key().id(), key.public_key().id());
  EXPECT_EQ(half.id(), key.public_key().id());
  EXPECT_EQ(half.id().size(), 64U);
  EXPECT_NE(half.id(), SigningKey::made().value().public_key().id());
}

TEST(Dsse, encodes_before_it_signs_as_the_specification_says) {
  EXPECT_EQ(pre_authentication_encoding("http://example.com/HelloWorld", "hello world"),
            "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  EXPECT_EQ(pre_authentication_encoding("", ""), "DSSEv1 0  0 ");
  // Lengths are of bytes, not of characters.
  EXPECT_EQ(pre_authentication_encoding("\xc3\xa9", "\xe2\x82\xac"),
            "DSSEv1 2 \xc3\xa9 3 \xe2\x82\xac");
  EXPECT_NE(pre_authentication_encoding("a 1 b", "c"), pre_authentication_encoding("a", "1 b c"));
}

TEST(Dsse, base64_has_one_spelling_in_each_alphabet) {
  for (const auto* text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"})
    EXPECT_EQ(from_base64(to_base64(text)), text);
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("\xfb\xff"), "+/8=");
  for (const auto* wrong : {"Zm8", "Zm9=", "Zm8= ", " Zm8=", "Zm8=\n", "-/8=", "+_8=", "-_9=",
                            "====", "Z===", "Zm==", "Zm8=Zm8=", "Zm\n8", "Z*8="})
    EXPECT_FALSE(from_base64(wrong)) << wrong;
  EXPECT_EQ(from_base64("-_8="), "\xfb\xff");
}

TEST(Dsse, an_envelope_is_read_as_it_was_written) {
  const auto key = key_of('a');
  const auto envelope = signed_envelope(key);
  const auto line = envelope_line(envelope).value();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = envelope_from(line, "line").value();
  EXPECT_EQ(back.payload, envelope.payload);
  EXPECT_EQ(back.payload_type, envelope.payload_type);
  EXPECT_EQ(find_signature(back, key.public_key()), SignatureFinding::fits);
  EXPECT_EQ(envelope_line(back).value(), line);
}

// But for the name "keyid": without it a signature is anybody's, and fits all the same.
TEST(Dsse, every_flipped_bit_of_an_envelope_is_refused) {
  const auto key = key_of('a');
  const auto half = key.public_key();
  const auto line = envelope_line(signed_envelope(key)).value();
  const auto hint = line.find("keyid");
  int refused = 0, other_key = 0, no_fit = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (at >= hint && at < hint + std::string_view("keyid").size()) continue;
    for (const int flip : {1, 2, 4, 8, 16, 32, 64, 128}) {
      auto changed = line;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto envelope = envelope_from(changed, "line");
      if (!envelope) {
        ++refused;
        continue;
      }
      const auto finding = find_signature(*envelope, half);
      ASSERT_NE(finding, SignatureFinding::fits) << "byte " << at << " as " << changed[at];
      ++(finding == SignatureFinding::by_other_keys ? other_key : no_fit);
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(other_key, 0);
  EXPECT_GT(no_fit, 0);
}

TEST(Dsse, other_peoples_signatures_do_not_matter) {
  const auto mine = key_of('a'), other = key_of('b');
  auto envelope = signed_envelope(other);
  EXPECT_EQ(find_signature(envelope, mine.public_key()), SignatureFinding::by_other_keys);
  envelope.signatures.push_back({"no key of ours", "no signature"});
  (void)add_signature(envelope, mine);
  EXPECT_EQ(find_signature(envelope, mine.public_key()), SignatureFinding::fits);
  EXPECT_EQ(find_signature(envelope, other.public_key()), SignatureFinding::fits);
  // A signature that names no key may be anybody's.
  envelope.signatures.back().key_id.clear();
  EXPECT_EQ(find_signature(envelope, mine.public_key()), SignatureFinding::fits);
  envelope.payload += " ";
  EXPECT_EQ(find_signature(envelope, mine.public_key()), SignatureFinding::does_not_fit);
}

TEST(Dsse, what_is_no_envelope_is_named) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "begin with {"},
      {"[]", "begin with {"},
      {" {}", "begin with {"},
      {"{}", "no \"payload\""},
      {R"({"payload":1})", "to be a string"},
      {R"({"payload":"Zm9","payloadType":"t","signatures":[{"sig":"Zm9v"}]})", "base64"},
      {R"({"payload":"Zm9v","signatures":[{"sig":"Zm9v"}]})", "no \"payloadType\""},
      {R"({"payload":"Zm9v","payloadType":"t"})", "1 to 64 signatures"},
      {R"({"payload":"Zm9v","payloadType":"t","signatures":[]})", "1 to 64 signatures"},
      {R"({"payload":"Zm9v","payloadType":"t","signatures":{"sig":"Zm9v"}})", "signatures"},
      {R"({"payload":"Zm9v","payloadType":"t","signatures":["Zm9v"]})", "required an object"},
      {R"({"payload":"Zm9v","payloadType":"t","signatures":[{"keyid":"k"}]})", "no \"sig\""},
      {R"({"payload":"Zm9v","payloadtype":"t","signatures":[{"sig":"Zm9v"}]})",
       "no \"payloadType\""},
      {R"({"payload":"Zm9v","payloadType":"t","signatures":[{"keyid":1,"sig":"Zm9v"}]})",
       "to be a string"},
      {R"({"payload":"Zm9v","payloadType":"t","signatures":[{"sig":"Zm9v","sig":"Zm9v"}]})",
       "twice"},
      {R"({"payload":"Zm9v","payloadType":"t","more":1,"more":1,"signatures":[]})", "twice"},
      {R"({"payload":"Zm9v","payload":"Zm9v","payloadType":"t","signatures":[]})", "payload"}};
  for (const auto& [text, what] : cases) {
    const auto envelope = envelope_from(text, "here");
    ASSERT_FALSE(envelope) << text;
    EXPECT_EQ(envelope.error().code, RefusalCode::bad_schema);
    EXPECT_EQ(envelope.error().where, "here");
    EXPECT_THAT(envelope.error().what, HasSubstr(what)) << text;
  }
}

TEST(Dsse, members_that_the_specification_does_not_name_are_passed_over) {
  const auto key = key_of('a');
  auto json = parse_json(envelope_line(signed_envelope(key)).value(), "line").value();
  json["more"] = {{"payload", 1}};
  json["signatures"][0]["cert"] = "x";
  auto envelope = envelope_from(json.dump(), "line").value();
  EXPECT_EQ(find_signature(envelope, key.public_key()), SignatureFinding::fits);
  json["signatures"][0]["keyie"] = json["signatures"][0]["keyid"];
  json["signatures"][0].erase("keyid");
  envelope = envelope_from(json.dump(), "line").value();
  EXPECT_TRUE(envelope.signatures[0].key_id.empty());
  EXPECT_EQ(find_signature(envelope, key.public_key()), SignatureFinding::fits);
}

TEST(KeyFile, is_made_private_and_never_written_over) {
  const test::ScratchFolder folder;
  const auto half = make_key_files(folder / "k").value();
  struct stat info {};
  ASSERT_EQ(::stat((folder / "k").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(read_signing_key(folder / "k").value().public_key().id(), half.id());
  EXPECT_EQ(read_public_key(folder / "k.pub").value().id(), half.id());
  const auto before = test::bytes_of(folder / "k");
  EXPECT_EQ(make_key_files(folder / "k").error().code, RefusalCode::already_exists);
  fs::remove(folder / "k.pub");
  EXPECT_EQ(make_key_files(folder / "k").error().code, RefusalCode::already_exists);
  EXPECT_FALSE(fs::exists(folder / "k.pub")); // of no key
  EXPECT_EQ(test::bytes_of(folder / "k"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(KeyFile, that_others_can_reach_is_refused_with_its_mode) {
  const test::ScratchFolder folder;
  const auto file = folder / "k";
  (void)make_key_files(file).value();
  for (const ::mode_t mode : {0604U, 0602U, 0601U, 0640U, 0620U, 0610U, 0666U, 0444U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    const auto key = read_signing_key(file);
    ASSERT_FALSE(key) << mode;
    EXPECT_EQ(key.error().code, RefusalCode::no_permission);
    EXPECT_THAT(key.error().what,
                HasSubstr("0" + std::to_string(mode / 64) + std::to_string(mode / 8 % 8) +
                          std::to_string(mode % 8)));
    EXPECT_THAT(key.error().next, HasSubstr("chmod 600 " + file.string()));
  }
  for (const ::mode_t mode : {0600U, 0400U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_TRUE(read_signing_key(file));
  }
  EXPECT_THAT(read_signing_key(folder / "k.pub").error().what, HasSubstr("it is a public key"));
}

TEST(KeyFile, of_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  const test::ScratchFolder folder;
  (void)make_key_files(folder / "k").value();
  ASSERT_EQ(::chown((folder / "k").c_str(), 4242, 4242), 0);
  const auto key = read_signing_key(folder / "k");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, RefusalCode::no_permission);
  EXPECT_THAT(key.error().what, HasSubstr("user 4242"));
}

TEST(KeyFile, is_a_file_of_its_own_and_of_a_keys_size) {
  const test::ScratchFolder folder;
  (void)make_key_files(folder / "k").value();
  fs::create_symlink(folder / "k", folder / "link");
  EXPECT_THAT(read_signing_key(folder / "link").error().what, HasSubstr("symbolic link"));
  fs::create_directory(folder / "d");
  EXPECT_FALSE(read_signing_key(folder / "d"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_signing_key(folder / "pipe").error().what, HasSubstr("regular file"));
  EXPECT_EQ(read_signing_key(folder / "none").error().code, RefusalCode::not_found);
  test::overwrite(folder / "large", std::string(20'000, 'x'));
  ::chmod((folder / "large").c_str(), 0600);
  EXPECT_THAT(read_signing_key(folder / "large").error().what, HasSubstr("more than"));
}

TEST(KeyFile, of_another_kind_is_named_and_never_shown) {
  const auto key = key_of('a');
  const std::string secret(key.pem().view()), half = key.public_key().pem();
  const std::string rsa = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n";
  const std::string locked =
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
  // PKCS#8 of an X25519 key: the same curve, for another purpose.
  const std::string x25519 = "-----BEGIN PRIVATE KEY-----\n"
                             "MC4CAQAwBQYDK2VuBCIEIHBgL0F6xXJbnB8aVu3hMwpA6q3pqZ7B0Fq0c2wJ2mVf\n"
                             "-----END PRIVATE KEY-----\n";
  const auto private_error = [](const std::string& pem) {
    const auto read = SigningKey::from_pem(pem, "k");
    EXPECT_FALSE(read);
    return read ? Refusal{} : read.error();
  };
  EXPECT_THAT(private_error(half).what, HasSubstr("public key, a private one is needed"));
  EXPECT_THAT(private_error(rsa).what, HasSubstr("RSA PRIVATE KEY"));
  EXPECT_THAT(private_error(locked).what, HasSubstr("ENCRYPTED PRIVATE KEY"));
  EXPECT_THAT(private_error(x25519).what, HasSubstr("X25519"));
  EXPECT_THAT(private_error(secret + secret).what, HasSubstr("more than one"));
  EXPECT_THAT(private_error("hello").what, HasSubstr("no PEM"));
  EXPECT_THAT(private_error(secret.substr(0, 50)).what, HasSubstr("cannot be read"));
  EXPECT_THAT(PublicKey::from_pem(secret, "k").error().what, HasSubstr("public one is needed"));
  for (const auto& pem : {half, rsa, locked, secret + secret, secret.substr(0, 50)}) {
    const auto refusal = private_error(pem);
    EXPECT_EQ(refusal.code, RefusalCode::bad_argument);
    EXPECT_EQ(to_text(refusal).find(secret.substr(30, 20)), std::string::npos);
  }
}

} // namespace
} // namespace hebe::evidence
