// Facts about refusals: one list, documented row by row.
#include "core/result.hpp"

#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe {
namespace {

constexpr RefusalCode kAll[] = {
#define X(name, exit, meaning) RefusalCode::name,
    HEBE_REFUSALS(X)
#undef X
};

// The rows "| `name` | exit | meaning |" of docs/refusals.md.
std::map<std::string, int> documented() {
  std::map<std::string, int> rows;
  std::istringstream text(test::bytes_of(HEBE_SOURCE_DIR "/docs/refusals.md"));
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("| `")) continue;
    const auto name_end = line.find('`', 3);
    const auto digit = line.find_first_of("0123456789", line.find('|', name_end));
    if (name_end == std::string::npos || digit == std::string::npos) continue;
    rows[line.substr(3, name_end - 3)] = std::stoi(line.substr(digit));
  }
  return rows;
}

TEST(Refusals, every_code_has_a_row_in_the_docs_and_every_row_a_code) {
  std::set<std::string> in_code, in_docs;
  for (const auto code : kAll) in_code.emplace(name_of(code));
  for (const auto& [name, exit] : documented()) in_docs.insert(name);
  EXPECT_EQ(in_code, in_docs);
}

TEST(Refusals, the_docs_give_the_exit_code_that_the_program_gives) {
  const auto rows = documented();
  for (const auto code : kAll) {
    const auto row = rows.find(std::string(name_of(code)));
    if (row == rows.end()) continue; // the test above names it
    EXPECT_EQ(row->second, static_cast<int>(exit_code_of(code))) << row->first;
  }
}

TEST(Refusals, names_are_distinct_and_meanings_are_sentences_without_a_full_stop) {
  std::set<std::string_view> names;
  for (const auto code : kAll) {
    EXPECT_TRUE(names.insert(name_of(code)).second) << name_of(code);
    EXPECT_FALSE(meaning_of(code).empty());
    EXPECT_NE(meaning_of(code).back(), '.');
    EXPECT_NE(exit_code_of(code), ExitCode::done) << name_of(code);
  }
}

TEST(Refusals, a_text_has_what_where_next_and_what_was_not_written_and_no_empty_lines) {
  const Refusal full{RefusalCode::no_space, "write failed: No space left on device", "runs/x",
                     "free space", "runs/x/plan.json"};
  EXPECT_EQ(to_text(full), "refused (no_space): write failed: No space left on device\n"
                           "  where: runs/x\n"
                           "  not written: runs/x/plan.json\n"
                           "  next: free space");
  EXPECT_EQ(to_text({RefusalCode::bad_spec, "\x1b[2J\x7f\tπ\n", {}, {}, {}}),
            "refused (bad_spec): \\x1b[2J\\x7f\tπ\n")
      << "a terminal must not obey a quoted name";
  EXPECT_EQ(to_text({RefusalCode::interrupted, "stopped", {}, {}, {}}),
            "refused (interrupted): stopped");
}

Result<int> half(int x) {
  if (x % 2 != 0) return refuse(RefusalCode::bad_argument, "odd");
  return x / 2;
}
Result<int> quarter(int x) {
  HEBE_TRY(const int once, half(x));
  HEBE_TRY(const int twice, half(once));
  return twice;
}
Status check_both(int x, int y) {
  HEBE_CHECK(half(x));
  HEBE_CHECK(half(y));
  return {};
}

TEST(Refusals, try_and_check_hand_on_the_first_refusal) {
  EXPECT_EQ(quarter(12).value(), 3);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().what, "odd");
  EXPECT_TRUE(check_both(2, 4));
  EXPECT_EQ(check_both(2, 3).error().code, RefusalCode::bad_argument);
}

} // namespace
} // namespace hebe
