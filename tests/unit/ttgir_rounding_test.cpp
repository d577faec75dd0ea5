// Facts about number formats: every bit pattern, every midpoint, every overflow, against formats
// spelled out here from their definitions.
#include "interpreted_kernel.hpp"
#include "ttgir/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;

/// A format by its definition: sign, exponent, mantissa, bias, and what the top patterns mean.
struct Definition {
  Scalar scalar;
  const char* name;
  unsigned exponent_bits, mantissa_bits;
  int bias;
  enum { ieee, finite_nan, fnuz } special;
  [[nodiscard]] unsigned bits() const { return 1 + exponent_bits + mantissa_bits; }
};
constexpr Definition kDefinitions[] = {
    {Scalar::f16, "f16", 5, 10, 15, Definition::ieee},
    {Scalar::bf16, "bf16", 8, 7, 127, Definition::ieee},
    {Scalar::f8e5m2, "f8e5m2", 5, 2, 15, Definition::ieee},
    {Scalar::f8e4m3, "f8e4m3", 4, 3, 7, Definition::finite_nan},
    {Scalar::f8e4m3fnuz, "f8e4m3fnuz", 4, 3, 8, Definition::fnuz},
    {Scalar::f8e5m2fnuz, "f8e5m2fnuz", 5, 2, 16, Definition::fnuz},
    {Scalar::f8e4m3b11fnuz, "f8e4m3b11fnuz", 4, 3, 11, Definition::fnuz},
};

double value_by_definition(const Definition& d, std::uint32_t bits) {
  const bool negative = bits >> (d.bits() - 1) != 0;
  const std::uint32_t exponent = bits >> d.mantissa_bits & ((1U << d.exponent_bits) - 1);
  const std::uint32_t mantissa = bits & ((1U << d.mantissa_bits) - 1);
  const std::uint32_t top = (1U << d.exponent_bits) - 1;
  const double nan = std::nan("");
  if (d.special == Definition::ieee && exponent == top)
    return mantissa ? nan : negative ? -HUGE_VAL : HUGE_VAL;
  if (d.special == Definition::finite_nan && exponent == top &&
      mantissa == (1U << d.mantissa_bits) - 1)
    return nan;
  if (d.special == Definition::fnuz && bits == 1U << (d.bits() - 1)) return nan;
  const double magnitude =
      exponent == 0
          ? std::ldexp(mantissa, 1 - d.bias - static_cast<int>(d.mantissa_bits))
          : std::ldexp(mantissa + (1U << d.mantissa_bits),
                       static_cast<int>(exponent) - d.bias - static_cast<int>(d.mantissa_bits));
  return negative ? -magnitude : magnitude;
}

std::vector<std::byte> in_memory(std::uint32_t bits) {
  std::vector<std::byte> bytes(4);
  std::memcpy(bytes.data(), &bits, 4);
  return bytes;
}
float decoded(Scalar scalar, std::uint32_t bits) {
  float lane = 0;
  decoder(scalar)(in_memory(bits).data(), &lane, 1);
  return lane;
}
std::uint32_t encoded(Scalar scalar, float lane) {
  std::byte bytes[4] = {};
  encoder(scalar)(&lane, bytes, 1);
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes, 4);
  return bits;
}
float rounded(Scalar scalar, float value, Rounding how = Rounding::nearest_even) {
  rounding_to(scalar, how)(&value, 1);
  return value;
}

class EveryFormat : public testing::TestWithParam<Definition> {};
INSTANTIATE_TEST_SUITE_P(All, EveryFormat, testing::ValuesIn(kDefinitions),
                         [](const auto& i) { return i.param.name; });

TEST_P(EveryFormat, every_bit_pattern_has_the_value_of_the_definition_and_comes_back) {
  const Definition& d = GetParam();
  for (std::uint32_t bits = 0; bits < 1U << d.bits(); ++bits) {
    const double expected = value_by_definition(d, bits);
    const float lane = decoded(d.scalar, bits);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(lane)) << bits;
    else
      EXPECT_EQ(static_cast<double>(lane), expected) << bits;
    EXPECT_EQ(std::signbit(lane),
              !std::isnan(expected) && std::signbit(expected) ? true : std::signbit(lane))
        << bits;
    EXPECT_EQ(encoded(d.scalar, lane), bits) << d.name;
  }
}

/// The non-negative finite values of a format, in order, with their patterns.
std::vector<std::pair<double, std::uint32_t>> ladder(const Definition& d) {
  std::vector<std::pair<double, std::uint32_t>> values;
  for (std::uint32_t bits = 0; bits < 1U << (d.bits() - 1); ++bits)
    if (const double v = value_by_definition(d, bits); std::isfinite(v))
      values.emplace_back(v, bits);
  std::ranges::sort(values);
  return values;
}

TEST_P(EveryFormat, every_midpoint_goes_to_the_even_neighbour_and_what_is_beside_it_to_the_nearer) {
  const Definition& d = GetParam();
  const auto values = ladder(d);
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const double low = values[i].first, high = values[i + 1].first;
    const auto middle = static_cast<float>((low + high) / 2); // exact: one bit more than the format
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
    const double even = values[i].second % 2 == 0 ? low : high;
    for (const float sign : {1.0F, -1.0F}) {
      EXPECT_EQ(static_cast<double>(rounded(d.scalar, sign * middle)),
                static_cast<double>(sign) * even);
      EXPECT_EQ(static_cast<double>(rounded(d.scalar, sign * std::nextafter(middle, 0.0F))),
                static_cast<double>(sign) * low);
      EXPECT_EQ(static_cast<double>(rounded(d.scalar, sign * std::nextafter(middle, HUGE_VALF))),
                static_cast<double>(sign) * high);
      EXPECT_EQ(static_cast<double>(rounded(d.scalar, sign * middle, Rounding::toward_zero)),
                static_cast<double>(sign) * low);
      const float just_below = std::nextafter(static_cast<float>(high), 0.0F);
      EXPECT_EQ(static_cast<double>(rounded(d.scalar, sign * just_below, Rounding::toward_zero)),
                static_cast<double>(sign) * low);
      EXPECT_EQ(static_cast<double>(
                    rounded(d.scalar, sign * static_cast<float>(low), Rounding::saturate)),
                static_cast<double>(sign) * low);
    }
  }
}

TEST_P(EveryFormat, overflow_goes_where_the_rounding_says) {
  const Definition& d = GetParam();
  const double largest = ladder(d).back().first;
  const auto values = ladder(d);
  const double step = largest - values[values.size() - 2].first;
  const auto over = static_cast<float>(largest + step / 2), under = std::nextafter(over, 0.0F);
  const auto is_overflow = [&](float x) {
    return d.special == Definition::ieee ? std::isinf(x) : std::isnan(x);
  };
  // f8e4m3's largest is even and its successor is NaN; the tie stays there, as everywhere with an
  // even top.
  const bool even_top = values.back().second % 2 == 0;
  EXPECT_EQ(is_overflow(rounded(d.scalar, over)), !even_top) << rounded(d.scalar, over);
  EXPECT_TRUE(is_overflow(rounded(d.scalar, std::nextafter(over, HUGE_VALF))));
  EXPECT_EQ(static_cast<double>(rounded(d.scalar, under)), largest);
  EXPECT_TRUE(is_overflow(rounded(d.scalar, HUGE_VALF)));
  EXPECT_EQ(static_cast<double>(rounded(d.scalar, -HUGE_VALF, Rounding::saturate)), -largest);
  EXPECT_EQ(static_cast<double>(rounded(d.scalar, 3.4e38F, Rounding::saturate)), largest);
  EXPECT_EQ(static_cast<double>(rounded(d.scalar, over * 1.5F < 3e38F ? over * 1.5F : 3.4e38F,
                                        Rounding::toward_zero)),
            largest);
  EXPECT_TRUE(is_overflow(rounded(d.scalar, HUGE_VALF, Rounding::toward_zero)));
  for (const auto how : {Rounding::nearest_even, Rounding::saturate, Rounding::toward_zero})
    EXPECT_TRUE(std::isnan(rounded(d.scalar, std::nanf(""), how)));
}

TEST(Rounding, tf32_away_from_zero_and_truncated) {
  const float middle = 1 + 0x1p-11F; // between 1 and 1 + 2^-10
  EXPECT_EQ(rounded(Scalar::tf32, middle, Rounding::nearest_away), 1 + 0x1p-10F);
  EXPECT_EQ(rounded(Scalar::tf32, middle), 1.0F);
  EXPECT_EQ(rounded(Scalar::tf32, 1 + 0x1.8p-10F, Rounding::toward_zero), 1 + 0x1p-10F);
  EXPECT_EQ(rounded(Scalar::tf32, -middle, Rounding::nearest_away), -1 - 0x1p-10F);
}

TEST(Rounding, an_odd_float_rounds_as_the_double_would_have) {
  // Just above a tie of f16 by less than a float sees: rounding twice would go down.
  const double above = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(rounded(Scalar::f16, static_cast<float>(above)), 1.0F);
  EXPECT_EQ(rounded(Scalar::f16, to_odd(above)), 1 + 0x1p-10F);
  EXPECT_EQ(rounded(Scalar::f16, to_odd(1 + 0x3p-11 - 0x1p-40)), 1 + 0x1p-10F);
  EXPECT_EQ(to_odd(0.5), 0.5F);
  EXPECT_EQ(to_odd(1e300), 0x1.fffffep127F);
  EXPECT_TRUE(std::isnan(to_odd(std::nan(""))));
}

/// The nearest value of a format to an exact one, ties to even: by search among all values.
class Nearest {
public:
  explicit Nearest(const Definition& d) : values_(ladder(d)) {}
  [[nodiscard]] double operator()(long double exact) const {
    if (std::isnan(exact)) return std::nan("");
    const long double a = std::abs(exact);
    const long double sign = std::signbit(exact) ? -1 : 1;
    const long double largest = values_.back().first,
                      step = largest - values_[values_.size() - 2].first;
    if (a >= largest + step / 2)
      return static_cast<double>(sign * static_cast<long double>(HUGE_VAL));
    const auto above = std::ranges::lower_bound(values_, static_cast<double>(a), {},
                                                [](const auto& v) { return v.first; });
    auto high = above == values_.end() ? values_.end() - 1 : above;
    if (static_cast<long double>(high->first) < a && high + 1 != values_.end()) ++high;
    const auto low = high == values_.begin() ? high : high - 1;
    const long double down = a - static_cast<long double>(low->first),
                      up = static_cast<long double>(high->first) - a;
    const double best =
        down < up || (down == up && low->second % 2 == 0) ? low->first : high->first;
    return static_cast<double>(sign * static_cast<long double>(best));
  }

private:
  std::vector<std::pair<double, std::uint32_t>> values_;
};

struct Arithmetic {
  const char* name;
  const char* op;
  unsigned operands;
  long double (*exact)(long double, long double, long double);
};
/// The product is exact; of the two values around a sum that is not, the one with an odd last bit.
long double product_and_sum(long double a, long double b, long double c) {
  const long double p = a * b, sum = p + c, part = sum - p;
  const long double lost = (p - (sum - part)) + (c - part);
  std::uint64_t mantissa = 0;
  std::memcpy(&mantissa, &sum, sizeof mantissa); // the low half of an 80-bit float
  if (!(lost > 0 || lost < 0) || mantissa % 2 != 0) return sum;
  return std::nextafter(sum, lost > 0 ? static_cast<long double>(HUGE_VAL)
                                      : -static_cast<long double>(HUGE_VAL));
}
const Arithmetic kArithmetic[] = {
    {"add", "arith.addf %x, %y", 2,
     [](long double a, long double b, long double) { return a + b; }},
    {"subtract", "arith.subf %x, %y", 2,
     [](long double a, long double b, long double) { return a - b; }},
    {"multiply", "arith.mulf %x, %y", 2,
     [](long double a, long double b, long double) { return a * b; }},
    {"divide", "arith.divf %x, %y", 2,
     [](long double a, long double b, long double) { return a / b; }},
    {"sqrt", "math.sqrt %x", 1,
     [](long double a, long double, long double) { return std::sqrt(a); }},
    {"fma", "math.fma %x, %y, %z", 3, &product_and_sum},
};
class OneRounding : public testing::TestWithParam<std::tuple<Definition, Arithmetic>> {};
INSTANTIATE_TEST_SUITE_P(All, OneRounding,
                         testing::Combine(testing::Values(kDefinitions[0], kDefinitions[1]),
                                          testing::ValuesIn(kArithmetic)),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param).name) + "_" +
                                  std::get<1>(i.param).name;
                         });

// 80-bit floats hold sums, products and quotients of these formats closely enough: a sum of two f16
// is exact, and where it is not (bf16) only values far apart are concerned, which round to the
// larger.
TEST_P(OneRounding, of_the_exact_result) {
  const auto& [d, a] = GetParam();
  constexpr std::size_t n = 1 << 16;
  std::mt19937 random(7);
  std::vector<std::uint16_t> x(n), y(n), z(n), r(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = static_cast<std::uint16_t>(i); // every value there is
    y[i] = static_cast<std::uint16_t>(random());
    z[i] = static_cast<std::uint16_t>(random());
    if (i % 3 == 0)
      y[i] = static_cast<std::uint16_t>((x[i] & 0x7f00) | (random() & 0xff)); // of like size
    if (i % 5 == 0) z[i] = static_cast<std::uint16_t>(random() & 0x83ff);     // small
  }
  const std::string element = d.name, type = " : tensor<65536x" + element + ">\n";
  std::vector<std::string> inputs(a.operands, element);
  std::vector<LaunchArgument> arguments{buffer(x)};
  if (a.operands > 1) arguments.emplace_back(buffer(y));
  if (a.operands > 2) arguments.emplace_back(buffer(z));
  arguments.emplace_back(buffer(r));
  run(by_element(n, inputs, element, std::string("    %r = ") + a.op + type), arguments);
  const Nearest nearest(d);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = [&](std::uint16_t bits) {
      return static_cast<long double>(value_by_definition(d, bits));
    };
    const double expected = nearest(a.exact(value(x[i]), value(y[i]), value(z[i])));
    const double found = value_by_definition(d, r[i]);
    const bool same =
        std::isnan(expected)
            ? std::isnan(found)
            : found == expected && (found != 0 || std::signbit(found) == std::signbit(expected));
    if (!same && wrong++ < 3)
      ADD_FAILURE() << a.name << " of " << value(x[i]) << ", " << value(y[i]) << ", " << value(z[i])
                    << ": " << found << ", not " << expected;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(Rounding, an_fma_of_bf16_sees_an_addend_far_below_a_tie) {
  const auto text = by_element(4, {"bf16", "bf16", "bf16"}, "bf16",
                               "    %r = math.fma %x, %y, %z : tensor<4xbf16>\n");
  // (1 + 2^-7) * 1.5 lies halfway between 1.5078125 and 1.515625; the addends: 0, 2^-100,
  // -2^-100, 4.
  std::vector<std::uint16_t> x(4, 0x3f81), y(4, 0x3fc0), z{0x0000, 0x0d80, 0x8d80, 0x4080}, r(4);
  run(text, {buffer(x), buffer(y), buffer(z), buffer(r)});
  EXPECT_EQ(r, (std::vector<std::uint16_t>{0x3fc2, 0x3fc2, 0x3fc1, 0x40b0}));
}

TEST(Rounding, conversions_to_f8_saturate_and_towards_zero_they_do_not_grow) {
  std::vector<float> x{500, -500, 1e9F, HUGE_VALF, std::nanf(""), 0x1.1p-9F, 464, 0x1p-10F};
  std::vector<std::uint8_t> r(8);
  run(by_element(
          8, {"f32"}, "f8E4M3FN",
          "    %r = tt.fp_to_fp %x, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FN>\n"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (std::vector<std::uint8_t>{0x7e, 0xfe, 0x7e, 0x7e, 0x7f, 0x01, 0x7e, 0x00}));
  std::vector<float> y{57344, 61440, -1e9F, HUGE_VALF, 1.24F, -1.24F, 0x1.8p-17F, 1.25F};
  run(by_element(8, {"f32"}, "f8E5M2",
                 "    %r = tt.fp_to_fp %x, rounding = rtz : tensor<8xf32> -> tensor<8xf8E5M2>\n"),
      {buffer(y), buffer(r)});
  EXPECT_EQ(r, (std::vector<std::uint8_t>{0x7b, 0x7b, 0xfb, 0x7c, 0x3c, 0xbc, 0x00, 0x3d}));
}

TEST(Rounding, f64_goes_to_f16_in_one_step) {
  std::vector<double> x{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 65519.999999, 65520, -1e300, 0x1p-25,
                        0x1.0000001p-25,       HUGE_VAL};
  std::vector<std::uint16_t> r(8);
  run(by_element(8, {"f64"}, "f16", "    %r = arith.truncf %x : tensor<8xf64> to tensor<8xf16>\n"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (std::vector<std::uint16_t>{0x3c01, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0x0000, 0x0001,
                                           0x7c00}));
}

} // namespace
} // namespace hebe::ttgir
