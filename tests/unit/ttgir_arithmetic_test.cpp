// Facts about arithmetic of single elements: what wraps, what saturates, what NaN and zeros do.
#include "interpreted_kernel.hpp"

#include <cmath>
#include <limits>

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min(),
                       kMax = std::numeric_limits<std::int32_t>::max();

template <class T> const char* name();
template <> const char* name<std::int8_t>() { return "i8"; }
template <> const char* name<std::int16_t>() { return "i16"; }
template <> const char* name<std::int32_t>() { return "i32"; }
template <> const char* name<std::int64_t>() { return "i64"; }
template <> const char* name<float>() { return "f32"; }
template <> const char* name<double>() { return "f64"; }

std::string typed(std::string op, std::size_t n, const std::string& element) {
  return "    %r = " + op + " : tensor<" + std::to_string(n) + "x" + element + ">\n";
}
/// `op` of x and y, element by element.
template <class T> std::vector<T> of(const std::string& op, std::vector<T> x, std::vector<T> y) {
  std::vector<T> r(x.size());
  run(by_element(x.size(), {name<T>(), name<T>()}, name<T>(),
                 typed(op + " %x, %y", x.size(), name<T>())),
      {buffer(x), buffer(y), buffer(r)});
  return r;
}
template <class A, class R> std::vector<R> cast(const std::string& op, std::vector<A> x) {
  std::vector<R> r(x.size());
  const auto n = std::to_string(x.size());
  run(by_element(x.size(), {name<A>()}, name<R>(),
                 "    %r = " + op + " %x : tensor<" + n + "x" + name<A>() + "> to tensor<" + n +
                     "x" + name<R>() + ">\n"),
      {buffer(x), buffer(r)});
  return r;
}
using I8 = std::vector<std::int8_t>;
using I16 = std::vector<std::int16_t>;
using I32 = std::vector<std::int32_t>;
using I64 = std::vector<std::int64_t>;
using F32 = std::vector<float>;

TEST(Arithmetic, integers_wrap) {
  EXPECT_EQ(of("arith.addi", I32{kMax, -1}, I32{1, 1}), (I32{kMin, 0}));
  EXPECT_EQ(of("arith.subi", I8{-128, 0}, I8{1, -128}), (I8{127, -128}));
  EXPECT_EQ(of("arith.muli", I16{300, -256}, I16{300, 256}), (I16{24464, 0}));
  EXPECT_EQ(of("arith.muli", I64{INT64_MIN, 3}, I64{-1, -4}), (I64{INT64_MIN, -12}));
}

TEST(Arithmetic, division_has_a_result_for_every_pair) {
  EXPECT_EQ(of("arith.divsi", I32{7, -7, 7, kMin, 5}, I32{2, 2, -2, -1, 0}),
            (I32{3, -3, -3, kMin, -1}));
  EXPECT_EQ(of("arith.remsi", I32{7, -7, 7, kMin, 5}, I32{2, 2, -2, -1, 0}), (I32{1, -1, 1, 0, 5}));
  EXPECT_EQ(of("arith.divui", I32{-1, 7, 7}, I32{2, 0, -1}), (I32{kMax, -1, 0}));
  EXPECT_EQ(of("arith.remui", I8{-1, 7}, I8{10, 0}), (I8{5, 7}));
  EXPECT_EQ(of("arith.ceildivsi", I32{7, -7, 7, -7, 6}, I32{2, 2, -2, -2, 3}),
            (I32{4, -3, -3, 4, 2}));
  EXPECT_EQ(of("arith.floordivsi", I32{7, -7, 7, -7, 6}, I32{2, 2, -2, -2, 3}),
            (I32{3, -4, -4, 3, 2}));
  EXPECT_EQ(of("arith.ceildivui", I32{7, -1, 0}, I32{2, 2, 5}), (I32{4, kMin, 0}));
}

TEST(Arithmetic, a_shift_by_the_width_or_more_leaves_zero_or_the_sign) {
  EXPECT_EQ(of("arith.shli", I32{1, 1, 1, -1}, I32{31, 32, -1, 4}), (I32{kMin, 0, 0, -16}));
  EXPECT_EQ(of("arith.shrui", I32{-1, -1, -1}, I32{31, 32, 200}), (I32{1, 0, 0}));
  EXPECT_EQ(of("arith.shrsi", I32{-8, -8, 8}, I32{1, 99, 99}), (I32{-4, -1, 0}));
  EXPECT_EQ(of("arith.shli", I8{1, 1}, I8{7, 8}), (I8{-128, 0}));
  EXPECT_EQ(of("arith.shrsi", I64{-1, INT64_MIN}, I64{64, 63}), (I64{-1, -1}));
}

TEST(Arithmetic, minima_and_maxima_of_integers_know_their_sign) {
  EXPECT_EQ(of("arith.minsi", I32{-1, 2}, I32{1, 1}), (I32{-1, 1}));
  EXPECT_EQ(of("arith.minui", I32{-1, 2}, I32{1, 1}), (I32{1, 1}));
  EXPECT_EQ(of("arith.maxsi", I16{-1, 2}, I16{1, 1}), (I16{1, 2}));
  EXPECT_EQ(of("arith.maxui", I16{-1, 2}, I16{1, 1}), (I16{-1, 2}));
  EXPECT_EQ(of("tt.mulhiui", I32{-1, 0x10000}, I32{-1, 0x10000}), (I32{-2, 1}));
  EXPECT_EQ(of("tt.mulhiui", I64{-1}, I64{-1}), (I64{-2}));
}

TEST(Arithmetic, products_and_sums_with_a_second_result) {
  I32 x{kMin, -1, 7}, y{kMin, -1, -3}, low(3), high(3);
  const auto both = [&](const std::string& op) {
    const auto text =
        by_element(3, {"i32", "i32"}, "i32", "    %low, %r = " + op + " %x, %y : tensor<3xi32>\n");
    run(text, {buffer(x), buffer(y), buffer(high)});
  };
  both("arith.mulsi_extended");
  EXPECT_EQ(high, (I32{0x40000000, 0, -1}));
  both("arith.mului_extended");
  EXPECT_EQ(high, (I32{0x40000000, -2, 6}));
  std::vector<std::uint8_t> carry(3);
  run(by_element(3, {"i32", "i32"}, "i1",
                 "    %s, %r = arith.addui_extended %x, %y : tensor<3xi32>, tensor<3xi1>\n"),
      {buffer(x), buffer(y), buffer(carry)});
  EXPECT_EQ(carry, (std::vector<std::uint8_t>{1, 1, 1}));
}

TEST(Arithmetic, numbers_win_over_nan_in_maxnum_and_lose_in_maximum) {
  const F32 x{kNan, 1, -0.0F, 0.0F, 2}, y{1, kNan, 0.0F, -0.0F, 3};
  const auto number = of("arith.maxnumf", x, y), all = of("arith.maximumf", x, y);
  EXPECT_EQ(number[0], 1);
  EXPECT_EQ(number[1], 1);
  EXPECT_TRUE(std::isnan(all[0]) && std::isnan(all[1]));
  for (const auto& r : {number, all}) {
    EXPECT_FALSE(std::signbit(r[2]));
    EXPECT_FALSE(std::signbit(r[3]));
    EXPECT_EQ(r[4], 3);
  }
  const auto least = of("arith.minnumf", x, y), least_all = of("arith.minimumf", x, y);
  EXPECT_EQ(least[0], 1);
  EXPECT_TRUE(std::isnan(least_all[1]));
  for (const auto& r : {least, least_all}) {
    EXPECT_TRUE(std::signbit(r[2]));
    EXPECT_TRUE(std::signbit(r[3]));
    EXPECT_EQ(r[4], 2);
  }
}

TEST(Arithmetic, clamp_passes_nan_or_takes_the_lower_bound) {
  F32 x{kNan, -5, 5, 0.5F}, low(4, -1), high(4, 1), r(4);
  for (const char* propagate : {"all", "none"}) {
    run(by_element(4, {"f32", "f32", "f32"}, "f32",
                   std::string("    %r = tt.clampf %x, %y, %z, propagateNan = ") + propagate +
                       " : tensor<4xf32>\n"),
        {buffer(x), buffer(low), buffer(high), buffer(r)});
    EXPECT_EQ(std::isnan(r[0]), std::string(propagate) == "all");
    EXPECT_TRUE(std::isnan(r[0]) || r[0] == -1);
    EXPECT_EQ(r[1], -1);
    EXPECT_EQ(r[2], 1);
    EXPECT_EQ(r[3], 0.5F);
  }
}

TEST(Arithmetic, a_remainder_has_the_sign_of_the_dividend) {
  const auto r = of("arith.remf", F32{5.5F, -5.5F, 5.5F, 1}, F32{2, 2, -2, kInf});
  EXPECT_EQ(r, (F32{1.5F, -1.5F, 1.5F, 1}));
}

TEST(Arithmetic, comparisons_of_integers) {
  I32 x{-1, 1, 2, 2}, y{1, -1, 2, 3};
  const auto compare = [&](const std::string& predicate) {
    std::vector<std::uint8_t> r(4);
    run(by_element(4, {"i32", "i32"}, "i1",
                   "    %r = arith.cmpi " + predicate + ", %x, %y : tensor<4xi32>\n"),
        {buffer(x), buffer(y), buffer(r)});
    return r[0] * 1000 + r[1] * 100 + r[2] * 10 + r[3];
  };
  EXPECT_EQ(compare("eq"), 10);
  EXPECT_EQ(compare("ne"), 1101);
  EXPECT_EQ(compare("slt"), 1001);
  EXPECT_EQ(compare("sle"), 1011);
  EXPECT_EQ(compare("sgt"), 100);
  EXPECT_EQ(compare("sge"), 110);
  EXPECT_EQ(compare("ult"), 101);
  EXPECT_EQ(compare("ule"), 111);
  EXPECT_EQ(compare("ugt"), 1000);
  EXPECT_EQ(compare("uge"), 1010);
}

TEST(Arithmetic, comparisons_of_floats_order_nan_as_their_name_says) {
  F32 x{1, 2, 2, kNan}, y{2, 1, 2, 1};
  const std::pair<const char*, int> table[] = {
      {"false", 0},  {"oeq", 10},   {"ogt", 100}, {"oge", 110},  {"olt", 1000}, {"ole", 1010},
      {"one", 1100}, {"ord", 1110}, {"ueq", 11},  {"ugt", 101},  {"uge", 111},  {"ult", 1001},
      {"ule", 1011}, {"une", 1101}, {"uno", 1},   {"true", 1111}};
  for (const auto& [predicate, expected] : table) {
    std::vector<std::uint8_t> r(4);
    run(by_element(4, {"f32", "f32"}, "i1",
                   std::string("    %r = arith.cmpf ") + predicate + ", %x, %y : tensor<4xf32>\n"),
        {buffer(x), buffer(y), buffer(r)});
    EXPECT_EQ(r[0] * 1000 + r[1] * 100 + r[2] * 10 + r[3], expected) << predicate;
  }
}

TEST(Arithmetic, true_is_minus_one_to_signed_operations) {
  I32 r(4);
  std::vector<std::uint8_t> x{0, 0, 1, 1}, y{0, 1, 0, 1};
  run(by_element(4, {"i1", "i1"}, "i32",
                 "    %less = arith.cmpi slt, %x, %y : tensor<4xi1>\n    %wide = arith.extsi %x : "
                 "tensor<4xi1> to tensor<4xi32>\n"
                 "    %one = arith.extui %less : tensor<4xi1> to tensor<4xi32>\n    %c = "
                 "arith.constant dense<10> : tensor<4xi32>\n"
                 "    %ten = arith.muli %wide, %c : tensor<4xi32>\n    %r = arith.addi %ten, %one "
                 ": tensor<4xi32>\n"),
      {buffer(x), buffer(y), buffer(r)});
  EXPECT_EQ(r, (I32{0, 0, -9, -10})); // -1 < 0 only in the third
}

TEST(Arithmetic, floats_convert_to_integers_with_saturation_and_nan_to_zero) {
  const F32 x{1.9F, -1.9F, 3e9F, -3e9F, kNan, kInf, 2147483520.0F, -2147483648.0F};
  EXPECT_EQ((cast<float, std::int32_t>("arith.fptosi", x)),
            (I32{1, -1, kMax, kMin, 0, kMax, 2147483520, kMin}));
  EXPECT_EQ((cast<float, std::int32_t>("arith.fptoui", x)),
            (I32{1, 0, static_cast<std::int32_t>(3000000000U), 0, 0, -1, 2147483520, 0}));
  EXPECT_EQ((cast<float, std::int64_t>("arith.fptosi", {1e19F, -1e19F, kNan})),
            (I64{INT64_MAX, INT64_MIN, 0}));
  EXPECT_EQ((cast<double, std::int32_t>("arith.fptosi", {2147483647.5, -2147483648.5})),
            (I32{kMax, kMin}));
  EXPECT_EQ((cast<float, std::int8_t>("arith.fptosi", {127, 128, 300, 1e9F})),
            (I8{127, -128, 44, -1})); // by way of 16 bits
}

TEST(Arithmetic, integers_convert_to_floats_with_one_rounding) {
  EXPECT_EQ((cast<std::int32_t, float>("arith.sitofp", {16777217, -16777219, kMin})),
            (F32{16777216, -16777220, -2147483648.0F}));
  EXPECT_EQ((cast<std::int32_t, float>("arith.uitofp", {-1})), (F32{4294967296.0F}));
  EXPECT_EQ((cast<std::int64_t, float>("arith.uitofp", {-1})), (F32{18446744073709551616.0F}));
  // 2^30 + 2^22 is a tie of bf16; one more is not, and 24 bits would not see it.
  I32 x{(1 << 30) + (1 << 22), (1 << 30) + (1 << 22) + 1, 65520, 65519};
  std::vector<std::uint16_t> r(4);
  run(by_element(4, {"i32"}, "bf16",
                 "    %r = arith.sitofp %x : tensor<4xi32> to tensor<4xbf16>\n"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[0], 0x4e80);
  EXPECT_EQ(r[1], 0x4e81);
  run(by_element(4, {"i32"}, "f16", "    %r = arith.sitofp %x : tensor<4xi32> to tensor<4xf16>\n"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[2], 0x7c00);
  EXPECT_EQ(r[3], 0x7bff);
  I64 y{(std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1, INT64_MIN, -5, 0};
  run(by_element(4, {"i64"}, "bf16",
                 "    %r = arith.sitofp %x : tensor<4xi64> to tensor<4xbf16>\n"),
      {buffer(y), buffer(r)});
  EXPECT_EQ(r, (std::vector<std::uint16_t>{0x5e81, 0xdf00, 0xc0a0, 0}));
}

TEST(Arithmetic, integers_widen_and_narrow) {
  EXPECT_EQ((cast<std::int8_t, std::int32_t>("arith.extsi", {-1, 5})), (I32{-1, 5}));
  EXPECT_EQ((cast<std::int8_t, std::int32_t>("arith.extui", {-1, 5})), (I32{255, 5}));
  EXPECT_EQ((cast<std::int64_t, std::int16_t>("arith.trunci", {0x12345678, -1})),
            (I16{0x5678, -1}));
}

TEST(Arithmetic, a_bitcast_keeps_the_bits_of_every_nan) {
  std::vector<std::uint16_t> x(65536), r(65536);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
  for (const char* element : {"f16", "bf16"}) {
    const auto text = by_element(
        65536, {"i16"}, "i16",
        std::string("    %f = tt.bitcast %x : tensor<65536xi16> -> tensor<65536x") + element +
            ">\n    %r = tt.bitcast %f : tensor<65536x" + element + "> -> tensor<65536xi16>\n");
    run(text, {buffer(x), buffer(r)});
    EXPECT_EQ(r, x);
    // And a copy without arithmetic keeps them too.
    run(by_element(65536, {element}, element,
                   std::string("    %r = tt.reshape %x : tensor<65536x") + element +
                       "> -> tensor<65536x" + element + ">\n"),
        {buffer(x), buffer(r)});
    EXPECT_EQ(r, x);
  }
}

TEST(Arithmetic, select_takes_elements_or_one_side_whole) {
  I32 x{1, 2, 3, 4}, y{5, 6, 7, 8}, r(4);
  const auto text = by_element(4, {"i32", "i32"}, "i32",
                               "    %c = arith.cmpi slt, %x, %two : tensor<4xi32>\n    %a = "
                               "arith.select %c, %x, %y : tensor<4xi1>, tensor<4xi32>\n"
                               "    %r = arith.select %yes, %a, %x : tensor<4xi32>\n");
  auto full = text;
  full.insert(
      full.find("    %i ="),
      "    %two = arith.constant dense<2> : tensor<4xi32>\n    %yes = arith.constant true\n");
  run(full, {buffer(x), buffer(y), buffer(r)});
  EXPECT_EQ(r, (I32{1, 6, 7, 8}));
}

TEST(Arithmetic, constants_of_every_kind) {
  F32 r(4);
  const auto constant = [&](const std::string& value) {
    run(function("%rp: !tt.ptr<f32>", "    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : "
                                      "tensor<4xi32>\n    %c = arith.constant dense<" +
                                          value +
                                          "> : tensor<4xf32>\n    %s = tt.splat %rp : !tt.ptr<f32> "
                                          "-> tensor<4x!tt.ptr<f32>>\n    %a = tt.addptr %s, %i : "
                                          "tensor<4x!tt.ptr<f32>>, tensor<4xi32>\n    tt.store %a, "
                                          "%c : tensor<4x!tt.ptr<f32>>\n"),
        {buffer(r)});
    return r;
  };
  EXPECT_EQ(constant("1.500000e+00"), F32(4, 1.5F));
  EXPECT_EQ(constant("0xFF800000"), F32(4, -kInf));
  EXPECT_EQ(constant("[1.0, -2.0, 3.0, 0x7F800000]"), (F32{1, -2, 3, kInf}));
  EXPECT_EQ(constant("\"0x0000803F000000400000404000008040\""), (F32{1, 2, 3, 4}));
}

} // namespace
} // namespace hebe::ttgir
