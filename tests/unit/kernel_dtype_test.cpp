// Facts about element types: names, sizes and rounding, bit by bit.
#include "kernel/dtype.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hebe::kernel {
namespace {

std::uint64_t bits_of(double value, DType type) {
  std::byte out[8]{};
  store(value, type, out);
  std::uint64_t bits = 0;
  std::memcpy(&bits, out, 8);
  return bits;
}

double back(std::uint64_t bits, DType type) {
  std::byte bytes[8];
  std::memcpy(bytes, &bits, 8);
  return element(bytes, type, 0);
}

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(DType, fp16_rounds_to_nearest_even_and_overflows_to_infinity) {
  const std::pair<double, std::uint64_t> table[] = {
      {0.0, 0x0000},
      {-0.0, 0x8000},
      {1.0, 0x3c00},
      {-2.0, 0xc000},
      {65504, 0x7bff},     // the largest
      {65519.999, 0x7bff}, // just below half a step above it
      {65520, 0x7c00},     // half a step: up, to infinity
      {-1e6, 0xfc00},
      {kInf, 0x7c00},
      {0x1p-14, 0x0400}, // smallest normal
      {0x1p-24, 0x0001}, // smallest subnormal
      {0x1p-25, 0x0000}, // tie with zero: even
      {0x1.0001p-25, 0x0001},
      {0x1.8p-24, 0x0002},   // tie: up to even
      {1 + 0x1p-11, 0x3c00}, // tie: down to even
      {1 + 0x3p-11, 0x3c02}, // tie: up to even
      {1 + 0x1p-11 + 0x1p-40,
       0x3c01}, // above the tie by less than fp32 sees: rounding twice would lose it
      {1 + 0x3p-11 - 0x1p-40, 0x3c01},
  };
  for (const auto& [value, bits] : table) EXPECT_EQ(bits_of(value, DType::fp16), bits) << value;
}

TEST(DType, bf16_rounds_to_nearest_even_and_overflows_to_infinity) {
  const std::pair<double, std::uint64_t> table[] = {
      {0.0, 0x0000},
      {-0.0, 0x8000},
      {1.0, 0x3f80},
      {-2.0, 0xc000},
      {0x1.fep127, 0x7f7f},            // the largest
      {0x1.fefffffffffffp127, 0x7f7f}, // just below half a step above it
      {0x1.ffp127, 0x7f80},            // half a step: up, to infinity
      {1e39, 0x7f80},
      {-1e300, 0xff80},
      {kInf, 0x7f80},
      {0x1p-133, 0x0001}, // smallest subnormal
      {0x1p-134, 0x0000}, // tie with zero: even
      {0x3p-134, 0x0002}, // tie: up to even
      {1e-300, 0x0000},
      {-1e-300, 0x8000},
      {1 + 0x1p-8, 0x3f80}, // tie: down to even
      {1 + 0x3p-8, 0x3f82}, // tie: up to even
      {1 + 0x1p-8 + 0x1p-40, 0x3f81},
      {1 + 0x3p-8 - 0x1p-40, 0x3f81},
      {-(1 + 0x1p-8 + 0x1p-40), 0xbf81},
  };
  for (const auto& [value, bits] : table) EXPECT_EQ(bits_of(value, DType::bf16), bits) << value;
}

TEST(DType, fp32_rounds_to_nearest_even_and_fp64_is_exact) {
  EXPECT_EQ(bits_of(1 + 0x1p-24, DType::fp32), 0x3f800000U);
  EXPECT_EQ(bits_of(1 + 0x3p-24, DType::fp32), 0x3f800002U);
  EXPECT_EQ(bits_of(1e39, DType::fp32), 0x7f800000U);
  EXPECT_EQ(back(bits_of(0.1, DType::fp64), DType::fp64), 0.1);
}

TEST(DType, nan_stays_nan_in_every_float_type) {
  for (const auto type : {DType::fp16, DType::bf16, DType::fp32, DType::fp64}) {
    EXPECT_TRUE(std::isnan(back(bits_of(std::nan(""), type), type))) << name_of(type);
    EXPECT_TRUE(std::isnan(back(bits_of(-std::nan("0x1"), type), type))) << name_of(type);
    EXPECT_TRUE(std::isnan(back(~std::uint64_t{0}, type))) << "0xFF bytes poison an output";
  }
}

TEST(DType, every_16_bit_float_comes_back_as_itself) {
  for (const auto type : {DType::fp16, DType::bf16})
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
      const double value = back(bits, type);
      if (std::isnan(value)) continue;
      ASSERT_EQ(bits_of(value, type), bits) << name_of(type);
    }
}

TEST(DType, integers_keep_their_whole_range_up_to_2_to_the_53) {
  const std::tuple<DType, double, double> table[] = {
      {DType::i1, 0, 1},           {DType::i8, -128, 127},
      {DType::u8, 0, 255},         {DType::i16, -32768, 32767},
      {DType::u16, 0, 65535},      {DType::i32, -2147483648.0, 2147483647},
      {DType::u32, 0, 4294967295}, {DType::i64, -0x1p53, 0x1p53},
      {DType::u64, 0, 0x1p53},
  };
  for (const auto& [type, low, high] : table)
    for (const double value : {low, high})
      EXPECT_EQ(back(bits_of(value, type), type), value) << name_of(type);
}

TEST(DType, elements_are_found_by_index) {
  std::vector<std::byte> bytes(8);
  store(1.5, DType::bf16, bytes.data() + 4);
  EXPECT_EQ(element(bytes, DType::bf16, 2), 1.5);
  EXPECT_EQ(element(bytes, DType::bf16, 1), 0);
}

TEST(DType, names_go_out_and_come_back_with_their_sizes) {
  const std::tuple<const char*, std::size_t, bool> table[] = {
      {"i1", 1, false},  {"i8", 1, false},  {"i16", 2, false}, {"i32", 4, false}, {"i64", 8, false},
      {"u8", 1, false},  {"u16", 2, false}, {"u32", 4, false}, {"u64", 8, false}, {"fp16", 2, true},
      {"bf16", 2, true}, {"fp32", 4, true}, {"fp64", 8, true},
  };
  for (const auto& [name, size, floating] : table) {
    const auto type = dtype_from(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(name_of(*type), name);
    EXPECT_EQ(size_of(*type), size) << name;
    EXPECT_EQ(is_float(*type), floating) << name;
  }
  EXPECT_EQ(dtype_from("u1").value(), DType::i1); // Triton's other name of it
}

TEST(DType, an_unknown_name_is_refused_with_the_known_ones) {
  const auto type = dtype_from("float32");
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, RefusalCode::bad_spec);
  EXPECT_NE(type.error().what.find("\"float32\""), std::string::npos);
  EXPECT_NE(type.error().next.find("bf16, fp32"), std::string::npos);
}

} // namespace
} // namespace hebe::kernel
