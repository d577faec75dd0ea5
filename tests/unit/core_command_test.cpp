// Facts about running another program: what it is given, what comes back, and when it is refused.
#include "core/command.hpp"

#include <gtest/gtest.h>

namespace hebe {
namespace {

TEST(Command, exit_code_and_both_streams_come_back) {
  const auto done = run_command({"/bin/sh", "-c", "echo out; echo err >&2; exit 7"});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(done->exit, 7);
  EXPECT_EQ(done->out, "out\n");
  EXPECT_EQ(done->err, "err\n");
}

TEST(Command, no_shell_touches_the_arguments) {
  const auto done = run_command({"printf", "<%s>", "$HOME", "a b", "*", "", "it's", "\n"});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(done->out, "<$HOME><a b><*><><it's><\n>");
}

TEST(Command, standard_input_is_empty) {
  const auto done = run_command({"cat"});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(done->out, "");
}

TEST(Command, much_output_on_both_streams_does_not_block) {
  const auto done =
      run_command({"/bin/sh", "-c", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(done->out.size(), 1'000'000U);
  EXPECT_EQ(done->err.size(), 1'000'000U);
}

TEST(Command, a_signal_is_128_and_its_number) {
  const auto done = run_command({"/bin/sh", "-c", "kill -9 $$"});
  ASSERT_TRUE(done) << done.error().what;
  EXPECT_EQ(done->exit, 137);
}

TEST(Command, a_program_that_does_not_exist_is_refused_by_name) {
  const auto done = run_command({"no-such-program-of-hebe"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, RefusalCode::not_found);
  EXPECT_NE(done.error().what.find("no-such-program-of-hebe"), std::string::npos);
}

TEST(Command, a_program_that_does_not_end_is_killed_with_its_children) {
  for (const char* script : {"echo last words >&2; sleep 1000 & sleep 1000",
                             "echo last words >&2; exec sleep 1000 >&- 2>&-"}) {
    const auto done = run_command({"/bin/sh", "-c", script}, Seconds(0.3));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, RefusalCode::io_failed);
    EXPECT_NE(done.error().what.find("last words"), std::string::npos) << done.error().what;
  }
}

} // namespace
} // namespace hebe
