// Facts about SQLite as we use it: values come back as they went in, and what the disk refuses is
// refused in our words, with everything as it was.
#include "evidence/sqlite_database.hpp"

#include <array>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

class SqliteDatabaseTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  fs::path file = folder / "file.sqlite";

  Database opened() {
    if (!fs::exists(file)) test::overwrite(file, "");
    return Database::open(file, Database::Access::shared).value();
  }
};

TEST_F(SqliteDatabaseTest, values_come_back_as_they_went_in) {
  auto database = opened();
  ASSERT_TRUE(database.execute("CREATE TABLE t (n INTEGER, v)"));
  const std::array<SqlValue, 6> values = {SqlValue(), std::int64_t{-1},       std::int64_t{1} << 62,
                                          0.1,        std::string("a\0b", 3), std::string()};
  auto insert = database.prepare("INSERT INTO t VALUES (?, ?)").value();
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(insert.run(std::array<SqlValue, 2>{static_cast<std::int64_t>(i), values[i]}));
  auto query = database.prepare("SELECT v FROM t ORDER BY n").value();
  for (const auto& value : values) {
    ASSERT_TRUE(query.row().value());
    EXPECT_EQ(query.cell(0), value);
  }
  EXPECT_FALSE(query.row().value());
}

TEST_F(SqliteDatabaseTest, a_transaction_that_is_not_committed_never_was) {
  auto database = opened();
  ASSERT_TRUE(database.execute("CREATE TABLE t (n)"));
  {
    auto transaction = Transaction::begin(database).value();
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES (1)"));
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM t").value(), 0);
  auto transaction = Transaction::begin(database).value();
  ASSERT_TRUE(database.execute("INSERT INTO t VALUES (1)"));
  ASSERT_TRUE(transaction.commit());
  EXPECT_EQ(database.number("SELECT count(*) FROM t").value(), 1);
}

TEST_F(SqliteDatabaseTest, a_full_database_is_no_space_and_as_it_was) {
  auto database = opened();
  ASSERT_TRUE(database.execute("CREATE TABLE t (n); INSERT INTO t VALUES (1)"));
  ASSERT_TRUE(database.execute("PRAGMA max_page_count=10"));
  {
    auto transaction = Transaction::begin(database).value();
    const auto put = database.execute("INSERT INTO t VALUES (randomblob(100000))");
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, RefusalCode::no_space);
    EXPECT_EQ(put.error().where, file.string());
  }
  EXPECT_EQ(database.number("SELECT count(*) FROM t").value(), 1);
}

TEST_F(SqliteDatabaseTest, a_file_that_is_no_database_is_bad_data) {
  test::overwrite(file, std::string(4096, 'x'));
  const auto database = Database::open(file, Database::Access::shared);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, RefusalCode::bad_schema);
}

TEST_F(SqliteDatabaseTest, a_file_that_is_not_there_is_not_made) {
  EXPECT_FALSE(Database::open(file, Database::Access::shared));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(SqliteDatabaseTest, what_may_not_be_written_is_no_permission) {
  ASSERT_TRUE(opened().execute("CREATE TABLE t (n)"));
  fs::permissions(folder.path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(file, fs::perms::owner_read | fs::perms::others_read);
  const int code = test::exit_code_in_child([&] {
    if (!test::become_ordinary_user()) return 77;
    auto database = Database::open(file, Database::Access::shared);
    if (!database || database->number("SELECT count(*) FROM t").value() != 0) return 1;
    const auto put = database->execute("INSERT INTO t VALUES (1)");
    return !put && put.error().code == RefusalCode::no_permission ? 0 : 2;
  });
  if (code == 77) GTEST_SKIP() << "root that cannot become an ordinary user";
  EXPECT_EQ(code, 0);
}

} // namespace
} // namespace hebe::evidence
