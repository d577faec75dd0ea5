// Facts about the random generator, against Random123's known answers.
#include "core/philox.hpp"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hebe {
namespace {

TEST(Philox, agrees_with_the_known_answers_of_random123) {
  // kat_vectors: philox4x32 10 rounds; zeros, ones, digits of pi.
  struct Row {
    std::array<std::uint32_t, 4> counter;
    std::array<std::uint32_t, 2> key;
    std::array<std::uint32_t, 4> answer;
  };
  const Row table[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& row : table) EXPECT_EQ(philox4x32(row.counter, row.key), row.answer);
}

TEST(Philox, a_stream_is_the_blocks_in_order_with_its_number_in_the_counter) {
  Philox random(0x1122334455667788, 0x99aabbccddeeff00);
  for (std::uint32_t block = 0; block < 3; ++block)
    for (const auto word : philox4x32({block, 0, 0xddeeff00, 0x99aabbcc}, {0x55667788, 0x11223344}))
      EXPECT_EQ(random.next_u32(), word);
}

TEST(Philox, seeds_and_streams_are_different_numbers) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (std::uint64_t stream = 0; stream < 20; ++stream)
      first.insert(Philox(seed, stream).next_u32());
  EXPECT_EQ(first.size(), 400U);
}

TEST(Philox, uniform_stays_in_its_half_open_range_and_is_level) {
  Philox random(1);
  double sum = 0, squares = 0;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 4 / std::sqrt(12.0 * kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.003);
}

TEST(Philox, below_gives_every_value_about_equally_often_and_no_other) {
  Philox random(2);
  std::vector<int> seen(6);
  for (int i = 0; i < 60'000; ++i) ++seen.at(random.below(6));
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 400); // 4 sigma
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
}

TEST(Philox, below_has_no_modulo_bias) {
  // 3 * 2^30: a remainder of 32 bits would give the lower third twice as often as each of the
  // others.
  Philox random(3);
  int lower = 0;
  for (int i = 0; i < 30'000; ++i) lower += random.below(3U << 30) < (1U << 30);
  EXPECT_NEAR(lower, 10'000, 350);
}

TEST(Philox, normal_has_mean_0_sd_1_and_the_right_tails) {
  Philox random(4);
  constexpr int kCount = 100'000;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    beyond_two += std::abs(x) > 2;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.0127);
  EXPECT_NEAR(squares / kCount, 1, 0.018);
  EXPECT_NEAR(beyond_two, 4550, 270);
}

} // namespace
} // namespace hebe
