// Facts about the artifact store: blobs are what their names say, or are not handed out.
#include "kernel/artifact_store.hpp"

#include "core/sha256.hpp"

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::kernel {
namespace {
namespace fs = std::filesystem;

TEST(ArtifactStore, gives_back_what_was_put_under_its_digest) {
  const test::ScratchFolder folder;
  const ArtifactStore store(folder.path());
  const std::string blob("\x7f"
                         "ELF\0cubin",
                         10);
  const auto digest = store.put(blob).value();
  EXPECT_EQ(digest, sha256_hex(blob));
  EXPECT_EQ(store.get(digest).value(), blob);
  EXPECT_TRUE(store.has(digest));
  EXPECT_EQ(store.path_of(digest), folder.path() / "artifacts" / digest.substr(0, 2) / digest);
}

TEST(ArtifactStore, storing_twice_is_storing_once) {
  const test::ScratchFolder folder;
  const ArtifactStore store(folder.path());
  const auto digest = store.put("blob").value();
  const auto written = fs::last_write_time(store.path_of(digest));
  EXPECT_EQ(store.put("blob").value(), digest);
  EXPECT_EQ(fs::last_write_time(store.path_of(digest)), written);
}

TEST(ArtifactStore, the_empty_blob_is_a_blob) {
  const test::ScratchFolder folder;
  const ArtifactStore store(folder.path());
  EXPECT_EQ(store.get(store.put("").value()).value(), "");
}

TEST(ArtifactStore, a_damaged_blob_is_refused_with_both_digests) {
  const test::ScratchFolder folder;
  const ArtifactStore store(folder.path());
  const auto digest = store.put("good").value();
  test::overwrite(store.path_of(digest), "bad");
  const auto blob = store.get(digest);
  ASSERT_FALSE(blob);
  EXPECT_EQ(blob.error().code, RefusalCode::digest_mismatch);
  EXPECT_EQ(blob.error().what, "required sha256 " + digest + ", found " + sha256_hex("bad"));
  EXPECT_EQ(blob.error().where, store.path_of(digest).string());
}

TEST(ArtifactStore, putting_again_replaces_a_damaged_or_cut_blob) {
  const test::ScratchFolder folder;
  const ArtifactStore store(folder.path());
  const auto digest = store.put("good").value();
  for (const char* damage : {"bad!", "goo", ""}) {
    test::overwrite(store.path_of(digest), damage);
    EXPECT_EQ(store.put("good").value(), digest);
    EXPECT_EQ(store.get(digest).value(), "good");
  }
}

TEST(ArtifactStore, a_blob_that_was_never_put_is_not_there) {
  const test::ScratchFolder folder;
  const ArtifactStore store(folder.path());
  EXPECT_FALSE(store.has(sha256_hex("other")));
  EXPECT_FALSE(store.get(sha256_hex("other")));
}

} // namespace
} // namespace hebe::kernel
