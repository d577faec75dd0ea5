// Facts about SHA-256, against the vectors of FIPS 180-4.
#include "core/sha256.hpp"

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe {
namespace {

TEST(Sha256, agrees_with_the_published_vectors) {
  const std::pair<std::string, const char*> table[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [text, digest] : table) EXPECT_EQ(sha256_hex(text), digest);
}

TEST(Sha256, pieces_and_files_give_the_digest_of_the_whole) {
  const std::string text = std::string(700'001, 'x') + std::string(1, '\0') + "end";
  Sha256 sha;
  for (std::size_t at = 0; at < text.size(); at += 1009)
    sha.update(std::string_view(text).substr(at, 1009));
  EXPECT_EQ(sha.hex(), sha256_hex(text));
  const test::ScratchFolder folder;
  test::overwrite(folder / "blob", text);
  EXPECT_EQ(sha256_of_file(folder / "blob").value(), sha256_hex(text));
}

TEST(Sha256, a_file_that_cannot_be_read_has_no_digest) {
  const test::ScratchFolder folder;
  EXPECT_FALSE(sha256_of_file(folder / "absent"));
  EXPECT_FALSE(sha256_of_file(folder.path())); // opens, but does not read
}

} // namespace
} // namespace hebe
