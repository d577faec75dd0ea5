// Facts about files: whole or absent, durable, and refusals that name the path.
#include "core/files.hpp"

#include "core/sha256.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe {
namespace {
namespace fs = std::filesystem;

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Files, every_errno_of_a_full_or_forbidden_disk_has_its_refusal) {
  const std::tuple<int, RefusalCode, bool> table[] = {
      {ENOSPC, RefusalCode::no_space, true},      {EDQUOT, RefusalCode::no_space, true},
      {EACCES, RefusalCode::no_permission, true}, {EPERM, RefusalCode::no_permission, true},
      {EROFS, RefusalCode::no_permission, true},  {EIO, RefusalCode::io_failed, false},
      {ENOENT, RefusalCode::io_failed, false},
  };
  for (const auto& [error, code, has_advice] : table) {
    const auto r = io_refusal(error, "write", "runs/plan.json");
    EXPECT_EQ(r.code, code) << std::strerror(error);
    EXPECT_EQ(r.where, "runs/plan.json");
    EXPECT_EQ(r.what, std::string("write failed: ") + std::strerror(error));
    EXPECT_EQ(!r.next.empty(), has_advice);
  }
}

TEST(Files, a_whole_file_is_read_only_and_leaves_nothing_beside_it) {
  const test::ScratchFolder folder;
  const std::string bytes("line\n\0bytes", 11);
  ASSERT_TRUE(write_file_whole(folder / "record", bytes));
  EXPECT_EQ(read_file(folder / "record").value(), bytes);
  EXPECT_EQ(entries_in(folder.path()), 1U);
  struct stat info {};
  ASSERT_EQ(::stat((folder / "record").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0444U);
}

TEST(Files, a_whole_file_replaces_the_one_before) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file_whole(folder / "record", "old"));
  ASSERT_TRUE(write_file_whole(folder / "record", "new and longer"));
  EXPECT_EQ(read_file(folder / "record").value(), "new and longer");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(Files, a_whole_file_replaces_nothing_but_a_file) {
  const test::ScratchFolder folder;
  test::overwrite(folder / "behind", "kept");
  fs::create_symlink("behind", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const auto* name : {"link", "dangling", "folder", "pipe"}) {
    const auto before = fs::symlink_status(folder / name).type();
    for (const auto& status :
         {write_file_whole(folder / name, "x"), can_be_written(folder / name)}) {
      ASSERT_FALSE(status) << name;
      EXPECT_EQ(status.error().code, RefusalCode::already_exists);
      EXPECT_EQ(status.error().not_written, (folder / name).string());
    }
    EXPECT_EQ(fs::symlink_status(folder / name).type(), before);
  }
  EXPECT_EQ(read_file(folder / "behind").value(), "kept");
  EXPECT_EQ(entries_in(folder.path()), 5U);
  EXPECT_TRUE(can_be_written(folder / "behind"));
  EXPECT_TRUE(can_be_written(folder / "new"));
  EXPECT_EQ(can_be_written(folder / "none" / "new").error().code, RefusalCode::bad_argument);
}

TEST(Files, a_whole_file_may_have_a_bare_name) {
  const test::ScratchFolder folder;
  EXPECT_EQ(test::exit_code_in_child([&] {
              fs::current_path(folder.path());
              const auto written = write_file_whole("record", "bytes");
              return written && read_file("record").value() == "bytes" ? 0 : 1;
            }),
            0);
}

TEST(Files, a_write_that_fails_leaves_the_old_file_and_no_other) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file_whole(folder / "record", "old"));
  // A limit on the size of files is a disk that fills up half-way.
  const int code = test::exit_code_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = write_file_whole(folder / "record", std::string(100'000, 'x'));
    if (written) return 1;
    if (written.error().code != RefusalCode::io_failed) return 2;
    return written.error().not_written == (folder / "record").string() ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(read_file(folder / "record").value(), "old");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(Files, a_full_device_is_no_space) {
  const int fd = ::open("/dev/full", O_WRONLY);
  if (fd < 0) GTEST_SKIP() << "no /dev/full here";
  ASSERT_LT(::write(fd, "x", 1), 0);
  EXPECT_EQ(io_refusal(errno, "write", "/dev/full").code, RefusalCode::no_space);
  ::close(fd);
}

TEST(Files, a_forbidden_folder_is_no_permission_and_names_the_path) {
  const test::ScratchFolder folder;
  const auto locked = folder / "locked";
  fs::create_directory(locked);
  fs::permissions(folder.path(),
                  fs::perms::owner_all | fs::perms::others_exec | fs::perms::others_read);
  fs::permissions(locked, fs::perms::owner_exec | fs::perms::owner_read | fs::perms::others_exec);
  const int code = test::exit_code_in_child([&] {
    if (!test::become_ordinary_user()) return 77;
    const auto whole = write_file_whole(locked / "record", "x");
    const auto fresh = write_new_file(locked / "record", "x");
    const auto nested = make_directories(locked / "a" / "b");
    const auto asked = can_be_written(locked / "record");
    if (whole || fresh || nested || asked) return 1;
    for (const auto* r : {&whole.error(), &fresh.error(), &nested.error(), &asked.error()})
      if (r->code != RefusalCode::no_permission || !r->where.starts_with(locked.string())) return 2;
    return whole.error().not_written == (locked / "record").string() ? 0 : 3;
  });
  fs::permissions(locked, fs::perms::owner_all);
  if (code == 77) GTEST_SKIP() << "root that cannot become an ordinary user";
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(fs::is_empty(locked));
}

TEST(Files, a_new_file_never_replaces_one_that_exists) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_new_file(folder / "plan.json", "first"));
  EXPECT_FALSE(write_new_file(folder / "plan.json", "second"));
  EXPECT_EQ(read_file(folder / "plan.json").value(), "first");
}

TEST(Files, reading_what_is_not_there_or_not_a_file_is_refused_with_its_path) {
  const test::ScratchFolder folder;
  for (const auto& path : {folder / "absent", folder.path()}) {
    const auto read = read_file(path);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, RefusalCode::io_failed);
    EXPECT_EQ(read.error().where, path.string());
  }
}

TEST(Files, files_of_unknown_size_are_read_to_their_end) {
  EXPECT_GT(read_file("/proc/self/status").value().size(), 100U); // stat says 0
}

TEST(Files, making_folders_twice_is_making_them_once) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(make_directories(folder.path() / "2026" / "01"));
  EXPECT_TRUE(make_directories(folder.path() / "2026" / "01"));
  ASSERT_TRUE(write_new_file(folder / "file", ""));
  EXPECT_FALSE(make_directories(folder.path() / "file" / "below"));
}

TEST(FileDescriptor, closes_once_and_moves) {
  int number = -1;
  {
    FileDescriptor a(::open("/dev/null", O_RDONLY));
    ASSERT_TRUE(a);
    number = a.get();
    FileDescriptor b(std::move(a));
    EXPECT_FALSE(a); // NOLINT(bugprone-use-after-move): empty by contract
    FileDescriptor c;
    c = std::move(b);
    EXPECT_EQ(c.get(), number);
    EXPECT_NE(::fcntl(number, F_GETFD), -1);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(Files, a_record_is_read_and_hashed_whole_whatever_its_size) {
  const test::ScratchFolder folder;
  const auto path = folder / "record";
  for (const std::size_t size : {0UL, 1UL, 4095UL, 4096UL, 4097UL, kHashingPiece - 1, kHashingPiece,
                                 kHashingPiece + 1, 3 * kHashingPiece + 7}) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
    test::overwrite(path, bytes);
    const auto read = read_record(path, size);
    ASSERT_TRUE(read) << size;
    EXPECT_EQ(read->bytes, bytes);
    EXPECT_EQ(read->sha256, sha256_hex(bytes));
    EXPECT_EQ(sha256_of_file(path).value(), sha256_hex(bytes));
    EXPECT_EQ(read_file(path).value(), bytes);
  }
}

TEST(Files, a_record_longer_than_can_be_right_is_not_read) {
  const test::ScratchFolder folder;
  const auto path = folder / "record";
  test::overwrite(path, "12345");
  EXPECT_TRUE(read_record(path, 5));
  fs::resize_file(path, std::uintmax_t{1} << 40); // sparse: reading it would take all memory
  const auto read = read_record(path, 5);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().what.find("1099511627776 bytes"), std::string::npos);
}

TEST(Files, only_a_regular_file_under_its_own_name_is_a_record) {
  const test::ScratchFolder folder;
  test::overwrite(folder / "record", "bytes");
  fs::create_symlink("record", folder / "link");
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(open_record(folder / "record"));
  for (const char* name : {"link", "folder", "pipe", "absent"}) {
    const auto opened = open_record(folder / name);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().where, (folder / name).string());
  }
  EXPECT_NE(open_record(folder / "link").error().what.find("symbolic link"), std::string::npos);
}

} // namespace
} // namespace hebe
