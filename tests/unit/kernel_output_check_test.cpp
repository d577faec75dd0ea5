// Facts about the check of outputs: what passes, what does not, and what is said about it.
#include "kernel/output_check.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hebe::kernel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::byte> bytes_of(const std::vector<double>& values, DType type = DType::fp64) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i)
    store(values[i], type, bytes.data() + i * size_of(type));
  return bytes;
}

OutputCheck checked(const std::vector<double>& found, const std::vector<double>& expected,
                    double atol = 0, double rtol = 0) {
  return check_output(bytes_of(found), DType::fp64, bytes_of(expected), DType::fp64, atol, rtol);
}

TEST(OutputCheck, one_element_against_the_oracle) {
  struct Row {
    const char* name;
    double found, expected, atol, rtol;
    bool passes;
  };
  const Row table[] = {
      {"equal", 1.5, 1.5, 0, 0, true},
      {"zeros of both signs", -0.0, 0.0, 0, 0, true},
      {"absolute, at the limit", 1.5, 1.0, 0.5, 0, true},
      {"absolute, beyond", 1.5000001, 1.0, 0.5, 0, false},
      {"relative, at the limit", 5.0, 4.0, 0, 0.25, true},
      {"relative, beyond", 5.0001, 4.0, 0, 0.25, false},
      {"relative is of the expected one", 4.0, 5.0, 0, 0.2, true},
      {"relative of zero is nothing", 1e-30, 0, 0, 0.5, false},
      {"both together", -4.6, -4.0, 0.2, 0.1, true},
      {"NaN where the oracle says NaN", kNan, kNan, 0, 0, true},
      {"NaN where it does not", kNan, 1, 1e300, 1e300, false},
      {"a number where it says NaN", 1, kNan, 1e300, 1e300, false},
      {"infinity where it says so", kInf, kInf, 0, 0.5, true},
      {"infinity where it does not", kInf, 1, 1e300, 1e300, false},
      {"a number where it says infinity", 1, kInf, 0, 0, false},
      {"a number where it says infinity, with a relative tolerance", 1, kInf, 0, 1e-3, false},
      {"the other infinity, with a relative tolerance", -kInf, kInf, 0, 1e-3, false},
  };
  for (const auto& row : table)
    EXPECT_EQ(checked({row.found}, {row.expected}, row.atol, row.rtol).passed(), row.passes)
        << row.name;
}

TEST(OutputCheck, counts_the_wrong_ones_and_keeps_the_first_and_the_worst) {
  const auto c = checked({0, 2, 2.5, kNan}, {0, 1, 2, 3}, 0.5, 0);
  EXPECT_FALSE(c.passed());
  EXPECT_EQ(c.elements, 4U);
  EXPECT_EQ(c.wrong, 2U);
  EXPECT_EQ(c.first_wrong, 1U);
  EXPECT_EQ(c.found, 2);
  EXPECT_EQ(c.expected, 1);
  EXPECT_EQ(c.worst_abs, 1); // NaN has no error to speak of
  EXPECT_EQ(c.worst_rel, 1);
  EXPECT_EQ(describe(c), "2 of 4 elements are wrong; first at 1: found 2, expected 1");
}

TEST(OutputCheck, an_element_that_was_never_written_is_seen_by_its_poison) {
  for (const auto type : {DType::fp16, DType::bf16, DType::fp32, DType::fp64}) {
    auto found = bytes_of({1, 1, 1}, type);
    std::fill(found.end() - static_cast<std::ptrdiff_t>(size_of(type)), found.end(),
              std::byte{0xFF});
    const auto c = check_output(found, type, bytes_of({1, 1, 1}, type), type, 1e30, 1e30);
    EXPECT_EQ(c.wrong, 1U) << name_of(type);
    EXPECT_EQ(c.first_wrong, 2U) << name_of(type);
  }
}

TEST(OutputCheck, a_wrong_size_is_all_wrong) {
  for (const auto& found :
       {std::vector<double>{1}, std::vector<double>{1, 2, 3}, std::vector<double>{}}) {
    const auto c = checked(found, {1, 2}, kInf, kInf);
    EXPECT_FALSE(c.passed());
    EXPECT_EQ(c.wrong, 2U);
  }
}

TEST(OutputCheck, nothing_checked_is_not_passed) { EXPECT_FALSE(checked({}, {}).passed()); }

TEST(OutputCheck, the_oracle_may_be_in_a_wider_type) {
  const auto c = check_output(bytes_of({0.1}, DType::fp16), DType::fp16, bytes_of({0.1}),
                              DType::fp64, 0, 0x1p-11);
  EXPECT_TRUE(c.passed());
  EXPECT_GT(c.worst_rel, 0);
}

TEST(OutputCheck, stretches_join_with_the_first_wrong_one_counted_from_the_start) {
  const auto good = checked({1, 2}, {1, 2}), bad = checked({1, 9, 9}, {1, 2, 3}),
             close = checked({1.25}, {1}, 1, 0);
  const auto late = joined(joined(good, close), bad);
  EXPECT_EQ(late.elements, 6U);
  EXPECT_EQ(late.wrong, 2U);
  EXPECT_EQ(late.first_wrong, 4U);
  EXPECT_EQ(late.found, 9);
  EXPECT_EQ(late.worst_abs, 7);
  const auto early = joined(bad, good);
  EXPECT_EQ(early.first_wrong, 1U);
  EXPECT_EQ(joined(bad, bad).first_wrong, 1U);
  EXPECT_TRUE(joined(OutputCheck{}, good).passed());
}

} // namespace
} // namespace hebe::kernel
