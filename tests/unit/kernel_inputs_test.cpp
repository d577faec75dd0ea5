// Facts about input bytes: the same everywhere, in any piece, with the distribution that was asked
// for.
#include "kernel/inputs.hpp"

#include "core/sha256.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace hebe::kernel {
namespace {

using Kind = Initialiser::Kind;

std::vector<std::byte> made(const Initialiser& init, DType type, std::size_t count,
                            std::size_t first = 0) {
  std::vector<std::byte> bytes(count * size_of(type), std::byte{0xEE});
  generate(init, type, first, bytes);
  return bytes;
}

std::string digest(const std::vector<std::byte>& bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.hex();
}

TEST(Inputs, any_range_has_the_bytes_that_the_whole_has_there) {
  for (const auto type : {DType::fp32, DType::fp16, DType::i8, DType::i64})
    for (const auto kind : {Kind::uniform, Kind::normal}) {
      if (kind == Kind::normal && !is_float(type)) continue;
      const Initialiser init{kind, -3, 7, 42};
      const auto whole = made(init, type, 103);
      for (const std::size_t first : {0U, 4U, 40U, 100U})
        for (const std::size_t count : {1U, 2U, 3U}) {
          const auto piece = made(init, type, count, first);
          EXPECT_TRUE(
              std::equal(piece.begin(), piece.end(),
                         whole.begin() + static_cast<std::ptrdiff_t>(first * size_of(type))))
              << name_of(type) << " from " << first;
        }
    }
}

TEST(Inputs, chunks_join_to_the_whole_also_behind_a_million_elements) {
  Argument a;
  a.dtype = DType::fp16;
  a.is_buffer = true;
  a.shape = {3, 700'001};
  a.init = Initialiser{Kind::uniform, 0, 1, 9};
  std::vector<std::byte> joined;
  std::size_t expected_offset = 0;
  ASSERT_TRUE(
      for_each_chunk(a, [&](std::size_t offset, std::span<const std::byte> bytes) -> Status {
        EXPECT_EQ(offset, expected_offset);
        expected_offset += bytes.size();
        joined.insert(joined.end(), bytes.begin(), bytes.end());
        return {};
      }));
  EXPECT_EQ(joined.size(), a.bytes().count);
  EXPECT_EQ(joined, made(*a.init, a.dtype, a.elements()));
}

TEST(Inputs, chunks_stop_at_the_first_refusal) {
  Argument a;
  a.dtype = DType::fp32;
  a.shape = {3 << 20};
  a.init = Initialiser{};
  int calls = 0;
  const auto status = for_each_chunk(a, [&](std::size_t, std::span<const std::byte>) -> Status {
    return ++calls == 2 ? Status(refuse(RefusalCode::io_failed, "second")) : Status{};
  });
  EXPECT_EQ(status.error().what, "second");
  EXPECT_EQ(calls, 2);
}

TEST(Inputs, are_the_same_bytes_on_every_machine) {
  // These digests are part of every plan: if one changes, plans of old records cannot be made
  // again.
  const std::tuple<Initialiser, DType, const char*> table[] = {
      {{Kind::uniform, -1, 1, 1},
       DType::fp32,
       "99517b63e4bfee10bce4b0ab288b26668394ade59ae5f67a281979fed936b6f6"},
      {{Kind::normal, 0, 1, 2},
       DType::bf16,
       "e612e9635b1ab2d5a3dccd6290ab9a97abdb055e6e090e053e7210944ee4f2f6"},
      {{Kind::uniform, -100, 100, 3},
       DType::i32,
       "dc502df2834d34d2047257ab57a05f08a9d3a048c6f6b89cf7bb7a26cb3781af"},
  };
  for (const auto& [init, type, expected] : table)
    EXPECT_EQ(digest(made(init, type, 1000)), expected);
}

TEST(Inputs, uniform_values_lie_within_their_bounds_and_are_level) {
  // The bounds are half-open before rounding; a narrow type may round the last ones up to `high`.
  for (const auto type : {DType::fp64, DType::fp32, DType::fp16, DType::bf16}) {
    const auto bytes = made({Kind::uniform, -2, 6, 5}, type, 40'000);
    double sum = 0;
    for (std::size_t i = 0; i < 40'000; ++i) {
      const double v = element(bytes, type, i);
      ASSERT_GE(v, -2);
      ASSERT_LE(v, 6);
      ASSERT_TRUE(type != DType::fp64 || v < 6);
      sum += v;
    }
    EXPECT_NEAR(sum / 40'000, 2, 0.05) << name_of(type);
  }
}

TEST(Inputs, uniform_integers_take_every_value_but_the_upper_bound) {
  const auto bytes = made({Kind::uniform, -2, 3, 6}, DType::i8, 5000);
  std::vector<int> seen(5);
  for (std::size_t i = 0; i < 5000; ++i)
    ++seen.at(static_cast<std::size_t>(element(bytes, DType::i8, i) + 2));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 120);
}

TEST(Inputs, normal_values_have_the_asked_mean_and_deviation) {
  const auto bytes = made({Kind::normal, 3, 0.5, 7}, DType::fp64, 40'000);
  double sum = 0, squares = 0, cubes = 0;
  int beyond = 0;
  for (std::size_t i = 0; i < 40'000; ++i) {
    const double z = (element(bytes, DType::fp64, i) - 3) / 0.5;
    ASSERT_TRUE(std::isfinite(z));
    sum += z;
    squares += z * z;
    cubes += z * z * z;
    beyond += std::abs(z) > 3;
  }
  EXPECT_NEAR(sum / 40'000, 0, 0.02);
  EXPECT_NEAR(squares / 40'000, 1, 0.03);
  EXPECT_NEAR(cubes / 40'000, 0, 0.06);
  EXPECT_NEAR(beyond, 108, 42); // 0.27 %: the tails are there
}

TEST(Inputs, seeds_give_different_bytes_in_all_their_64_bits) {
  const Initialiser base{Kind::uniform, 0, 1, 1};
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{2}, (std::uint64_t{1} << 32) + 1, std::uint64_t{1} << 63}) {
    auto other = base;
    other.seed = seed;
    EXPECT_NE(made(other, DType::fp32, 16), made(base, DType::fp32, 16)) << seed;
  }
}

TEST(Inputs, zeros_are_zero_bytes) {
  EXPECT_EQ(made({}, DType::fp64, 5), std::vector<std::byte>(40));
}

} // namespace
} // namespace hebe::kernel
