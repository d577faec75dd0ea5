// Facts about reductions, scans, products and shapes.
#include "interpreted_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;
using F32 = std::vector<float>;
using I32 = std::vector<std::int32_t>;

/// A kernel that loads %x (shape, element), runs `body` and stores %r of `count` elements,
/// flattened.
std::string shaped(const std::string& shape, std::size_t n, const std::string& element,
                   const std::string& result_shape, std::size_t count, const std::string& result,
                   const std::string& body) {
  const auto ns = std::to_string(n), cs = std::to_string(count);
  return function(
      "%xp: !tt.ptr<" + element + ">, %rp: !tt.ptr<" + result + ">",
      "    %i = tt.make_range {end = " + ns + " : i32, start = 0 : i32} : tensor<" + ns +
          "xi32>\n    %xs = tt.splat %xp : !tt.ptr<" + element + "> -> tensor<" + ns + "x!tt.ptr<" +
          element + ">>\n    %xa = tt.addptr %xs, %i : tensor<" + ns + "x!tt.ptr<" + element +
          ">>, tensor<" + ns + "xi32>\n    %xf = tt.load %xa : tensor<" + ns + "x!tt.ptr<" +
          element + ">>\n    %x = tt.reshape %xf : tensor<" + ns + "x" + element + "> -> tensor<" +
          shape + "x" + element + ">\n" + body + "    %rf = tt.reshape %r : tensor<" +
          result_shape + "x" + result + "> -> tensor<" + cs + "x" + result +
          ">\n    %j = tt.make_range {end = " + cs + " : i32, start = 0 : i32} : tensor<" + cs +
          "xi32>\n    %rs = tt.splat %rp : !tt.ptr<" + result + "> -> tensor<" + cs + "x!tt.ptr<" +
          result + ">>\n    %ra = tt.addptr %rs, %j : tensor<" + cs + "x!tt.ptr<" + result +
          ">>, tensor<" + cs + "xi32>\n    tt.store %ra, %rf : tensor<" + cs + "x!tt.ptr<" +
          result + ">>\n");
}
std::string reduce(const std::string& op, const std::string& axis, const std::string& element,
                   const std::string& from, const std::string& to) {
  return "    %r = \"tt.reduce\"(%x) <{axis = " + axis + " : i32}> ({\n    ^bb0(%a: " + element +
         ", %b: " + element + "):\n      %s = " + op + " %a, %b : " + element +
         "\n      tt.reduce.return %s : " + element + "\n    }) : (tensor<" + from + "x" + element +
         ">) -> tensor<" + to + "x" + element + ">\n";
}

TEST(Tensors, a_reduction_runs_along_its_axis) {
  I32 x(24), r(24);
  std::iota(x.begin(), x.end(), 0);
  run(shaped("2x3x4", 24, "i32", "2x3", 6, "i32", reduce("arith.addi", "2", "i32", "2x3x4", "2x3")),
      {buffer(x), buffer(r)});
  EXPECT_EQ((I32{r.begin(), r.begin() + 6}), (I32{6, 22, 38, 54, 70, 86}));
  run(shaped("2x3x4", 24, "i32", "2x4", 8, "i32", reduce("arith.addi", "1", "i32", "2x3x4", "2x4")),
      {buffer(x), buffer(r)});
  EXPECT_EQ((I32{r.begin(), r.begin() + 8}), (I32{12, 15, 18, 21, 48, 51, 54, 57}));
  run(shaped("2x3x4", 24, "i32", "3x4", 12, "i32",
             reduce("arith.maxsi", "0", "i32", "2x3x4", "3x4")),
      {buffer(x), buffer(r)});
  EXPECT_EQ((I32{r.begin(), r.begin() + 12}),
            (I32{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}));
}

TEST(Tensors, a_sum_adds_element_i_and_i_plus_half) {
  // (1e8 + 1) + (-1e8 + 1) would be 0 + 0; halves: (1e8 + -1e8) + (1 + 1).
  F32 x{1e8F, 1, -1e8F, 1}, r(1);
  run(shaped("1x4", 4, "f32", "1", 1, "f32", reduce("arith.addf", "1", "f32", "1x4", "1")),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[0], 2);
  // Seven elements: the middle one waits: i + 4 for i < 3, then of four.
  F32 y{1, 2, 3, 4, 5, 6, 7}, s(1);
  run(shaped("1x7", 7, "f32", "1", 1, "f32", reduce("arith.addf", "1", "f32", "1x7", "1")),
      {buffer(y), buffer(s)});
  EXPECT_EQ(s[0], 28);
}

TEST(Tensors, a_sum_of_f16_rounds_at_every_step) {
  std::vector<std::uint16_t> x(4096, 0x3c00), r(1); // ones: exact in a tree
  x[0] = 0x6800;                                    // 2048: 1 is half a step
  run(shaped("1x4096", 4096, "f16", "1", 1, "f16", reduce("arith.addf", "1", "f16", "1x4096", "1")),
      {buffer(x), buffer(r)});
  // 2048 + 1 is a tie, to 2048; then + 2 + 4 … + 1024 = 4094; + 2048 = 6142 is a tie of steps of 4,
  // to 6144.
  EXPECT_EQ(r[0], 0x6e00);
}

const char* kArgmax = R"(
    %k = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %k2 = tt.expand_dims %k {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
    %kk = tt.broadcast %k2 : tensor<1x8xi32> -> tensor<2x8xi32>
    %m:2 = "tt.reduce"(%x, %kk) <{axis = 1 : i32}> ({
    ^bb0(%v: f32, %i1: i32, %w: f32, %i2: i32):
      %equal = arith.cmpf oeq, %v, %w : f32
      %first = arith.cmpi slt, %i1, %i2 : i32
      %tie = arith.andi %equal, %first : i1
      %more = arith.cmpf ogt, %v, %w : f32
      %take = arith.ori %more, %tie : i1
      %bv = arith.select %take, %v, %w : f32
      %bi = arith.select %take, %i1, %i2 : i32
      tt.reduce.return %bv, %bi : f32, i32
    }) : (tensor<2x8xf32>, tensor<2x8xi32>) -> (tensor<2xf32>, tensor<2xi32>)
    %r = arith.addi %m#1, %zero : tensor<2xi32>
)";

TEST(Tensors, argmax_takes_the_first_of_equals) {
  F32 x{1, 5, 2, 5, 5, 0, 3, 5, -1, -1, -1, -1, -1, -1, -1, -1};
  I32 r(2);
  run(shaped("2x8", 16, "f32", "2", 2, "i32",
             std::string("    %zero = arith.constant dense<0> : tensor<2xi32>\n") + kArgmax),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (I32{1, 0}));
}

TEST(Tensors, a_region_that_branches_combines_one_pair_at_a_time) {
  F32 x{4, -1, 3, -2, 0, 7, -9, 1}, r(1);
  run(shaped("1x8", 8, "f32", "1", 1, "f32", R"(
    %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.cmpf ogt, %a, %b : f32
      %s = scf.if %c -> (f32) {
        scf.yield %a : f32
      } else {
        scf.yield %b : f32
      }
      tt.reduce.return %s : f32
    }) : (tensor<1x8xf32>) -> tensor<1xf32>
)"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[0], 7);
}

std::string scan(const std::string& op, const std::string& axis, bool reverse,
                 const std::string& type, const std::string& element) {
  return "    %r = \"tt.scan\"(%x) <{axis = " + axis +
         " : i32, reverse = " + (reverse ? "true" : "false") + "}> ({\n    ^bb0(%a: " + element +
         ", %b: " + element + "):\n      %s = " + op + " %a, %b : " + element +
         "\n      tt.scan.return %s : " + element + "\n    }) : (" + type + ") -> " + type + "\n";
}

TEST(Tensors, scans_go_either_way_along_any_axis) {
  I32 x{1, 2, 3, 4, 5, 6}, r(6);
  const std::string t = "tensor<2x3xi32>";
  run(shaped("2x3", 6, "i32", "2x3", 6, "i32", scan("arith.addi", "1", false, t, "i32")),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (I32{1, 3, 6, 4, 9, 15}));
  run(shaped("2x3", 6, "i32", "2x3", 6, "i32", scan("arith.addi", "1", true, t, "i32")),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (I32{6, 5, 3, 15, 11, 6}));
  run(shaped("2x3", 6, "i32", "2x3", 6, "i32", scan("arith.muli", "0", false, t, "i32")),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (I32{1, 2, 3, 4, 10, 18}));
}

TEST(Tensors,
     a_scan_with_several_values) { // first-order recurrence: (a, b) then (c, d) is (a c, b c + d)
  F32 x{2, 3, 0.5F, 1}, r(4);
  run(shaped("4", 4, "f32", "4", 4, "f32", R"(
    %one = arith.constant dense<1.0> : tensor<4xf32>
    %p:2 = "tt.scan"(%x, %one) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
      %ac = arith.mulf %a, %c : f32
      %bc = arith.mulf %b, %c : f32
      %s = arith.addf %bc, %d : f32
      tt.scan.return %ac, %s : f32, f32
    }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %r = arith.addf %p#1, %p#0 : tensor<4xf32>
)"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (F32{1 + 2, 4 + 6, 3 + 3, 4 + 3}));
}

TEST(Tensors, shapes_change_without_losing_elements) {
  I32 x(24), r(24);
  std::iota(x.begin(), x.end(), 0);
  run(shaped("2x3x4", 24, "i32", "4x2x3", 24, "i32",
             "    %r = tt.trans %x {order = array<i32: 2, 0, 1>} : tensor<2x3x4xi32> -> "
             "tensor<4x2x3xi32>\n"),
      {buffer(x), buffer(r)});
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 2; ++j)
      for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(r[(i * 2 + j) * 3 + k], x[(j * 3 + k) * 4 + i]);
  I32 wide(1024), turned(1024);
  std::iota(wide.begin(), wide.end(), 0);
  run(shaped("16x64", 1024, "i32", "64x16", 1024, "i32",
             "    %r = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x64xi32> -> "
             "tensor<64x16xi32>\n"),
      {buffer(wide), buffer(turned)});
  for (std::size_t i = 0; i < 1024; ++i) EXPECT_EQ(turned[i], wide[i % 16 * 64 + i / 16]);
}

TEST(Tensors, join_split_cat_gather_histogram) {
  I32 x{0, 1, 2, 3, 4, 5, 6, 7}, r(16);
  run(shaped("4x2", 8, "i32", "8", 8, "i32", R"(
    %even, %odd = tt.split %x : tensor<4x2xi32> -> tensor<4xi32>
    %back = tt.join %odd, %even : tensor<4xi32> -> tensor<4x2xi32>
    %r = tt.reshape %back : tensor<4x2xi32> -> tensor<8xi32>
)"),
      {buffer(x), buffer(r)});
  EXPECT_EQ((I32{r.begin(), r.begin() + 8}), (I32{1, 0, 3, 2, 5, 4, 7, 6}));
  run(shaped("8", 8, "i32", "16", 16, "i32",
             "    %r = tt.cat %x, %x : tensor<8xi32> -> tensor<16xi32>\n"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[9], 1);
  run(shaped("2x4", 8, "i32", "2x4", 8, "i32", R"(
    %k = arith.constant dense<[[3, 0, 0, 1], [2, 2, 3, 0]]> : tensor<2x4xi32>
    %r = tt.gather %x[%k] {axis = 1 : i32} : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi32>
)"),
      {buffer(x), buffer(r)});
  EXPECT_EQ((I32{r.begin(), r.begin() + 8}), (I32{3, 0, 0, 1, 6, 6, 7, 4}));
  EXPECT_EQ(refusal(shaped("2x4", 8, "i32", "2x4", 8, "i32", R"(
    %k = arith.constant dense<[[3, 0, 0, 1], [2, 4, 3, 0]]> : tensor<2x4xi32>
    %r = tt.gather %x[%k] {axis = 1 : i32} : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi32>
)"),
                    {buffer(x), buffer(r)}),
            "out_of_bounds: tt.gather (line 10, %r) of program (0, 0, 0), element 5, takes index 4 "
            "of 4 along axis 1");
  I32 y{0, 3, 3, 1, 3, 0, 2, 3};
  run(shaped("8", 8, "i32", "4", 4, "i32",
             "    %r = tt.histogram %x : tensor<8xi32> -> tensor<4xi32>\n"),
      {buffer(y), buffer(r)});
  EXPECT_EQ((I32{r.begin(), r.begin() + 4}), (I32{2, 1, 1, 4}));
}

/// a (m × k) and b (k × n) in their types, c added; through `dot`, a line that makes %r from %x,
/// %y, %c.
template <class A, class R>
std::vector<R> product(std::size_t m, std::size_t n, std::size_t k, const std::string& in,
                       const std::string& out, std::vector<A> a, std::vector<A> b, std::vector<R> c,
                       const std::string& dot) {
  const auto load = [](const std::string& name, std::size_t rows, std::size_t columns,
                       const std::string& t) {
    const auto flat = std::to_string(rows * columns),
               shape = std::to_string(rows) + "x" + std::to_string(columns);
    return "    %" + name + "i = tt.make_range {end = " + flat +
           " : i32, start = 0 : i32} : tensor<" + flat + "xi32>\n    %" + name + "s = tt.splat %" +
           name + "p : !tt.ptr<" + t + "> -> tensor<" + flat + "x!tt.ptr<" + t + ">>\n    %" +
           name + "a = tt.addptr %" + name + "s, %" + name + "i : tensor<" + flat + "x!tt.ptr<" +
           t + ">>, tensor<" + flat + "xi32>\n    %" + name + "f = tt.load %" + name +
           "a : tensor<" + flat + "x!tt.ptr<" + t + ">>\n    %" + name + " = tt.reshape %" + name +
           "f : tensor<" + flat + "x" + t + "> -> tensor<" + shape + "x" + t + ">\n";
  };
  const auto flat = std::to_string(m * n), mn = std::to_string(m) + "x" + std::to_string(n);
  std::vector<R> r(m * n);
  run(function("%xp: !tt.ptr<" + in + ">, %yp: !tt.ptr<" + in + ">, %cp: !tt.ptr<" + out +
                   ">, %rp: !tt.ptr<" + out + ">",
               load("x", m, k, in) + load("y", k, n, in) + load("c", m, n, out) + dot +
                   "    %rf = tt.reshape %r : tensor<" + mn + "x" + out + "> -> tensor<" + flat +
                   "x" + out + ">\n    %rs = tt.splat %rp : !tt.ptr<" + out + "> -> tensor<" +
                   flat + "x!tt.ptr<" + out + ">>\n    %ra = tt.addptr %rs, %ci : tensor<" + flat +
                   "x!tt.ptr<" + out + ">>, tensor<" + flat +
                   "xi32>\n    tt.store %ra, %rf : tensor<" + flat + "x!tt.ptr<" + out + ">>\n"),
      {buffer(a), buffer(b), buffer(c), buffer(r)});
  return r;
}
std::string dot_line(std::size_t m, std::size_t n, std::size_t k, const std::string& in,
                     const std::string& out, const std::string& precision = "") {
  const auto shape = [](std::size_t a, std::size_t b, const std::string& t) {
    return "tensor<" + std::to_string(a) + "x" + std::to_string(b) + "x" + t + ">";
  };
  return "    %r = tt.dot %x, %y, %c" +
         (precision.empty() ? "" : ", inputPrecision = " + precision) + " : " + shape(m, k, in) +
         " * " + shape(k, n, in) + " -> " + shape(m, n, out) + "\n";
}

F32 random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  F32 x(n);
  for (float& v : x) v = normal(random);
  return x;
}
float cut(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, 4);
  bits &= 0xffffe000U;
  std::memcpy(&x, &bits, 4);
  return x;
}

TEST(Tensors, a_product_of_floats_is_a_chain_of_fused_multiply_adds) {
  for (const auto& [m, n, k] : {std::tuple<std::size_t, std::size_t, std::size_t>{16, 16, 16},
                                {32, 64, 16},
                                {7, 19, 5},
                                {1, 33, 3}}) {
    const F32 a = random_floats(m * k, 1), b = random_floats(k * n, 2), c = random_floats(m * n, 3);
    const auto ieee = product<float, float>(m, n, k, "f32", "f32", a, b, c,
                                            dot_line(m, n, k, "f32", "f32", "ieee"));
    const auto tf32 = product<float, float>(m, n, k, "f32", "f32", a, b, c,
                                            dot_line(m, n, k, "f32", "f32", "tf32"));
    const auto x3 = product<float, float>(m, n, k, "f32", "f32", a, b, c,
                                          dot_line(m, n, k, "f32", "f32", "tf32x3"));
    const auto b3 = product<float, float>(m, n, k, "f32", "f32", a, b, c,
                                          dot_line(m, n, k, "f32", "f32", "bf16x3"));
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        float exact = c[i * n + j], short_ones = exact;
        double reference = static_cast<double>(exact);
        for (std::size_t l = 0; l < k; ++l) {
          exact = std::fma(a[i * k + l], b[l * n + j], exact);
          short_ones = std::fma(cut(a[i * k + l]), cut(b[l * n + j]), short_ones);
          reference += static_cast<double>(a[i * k + l]) * static_cast<double>(b[l * n + j]);
        }
        EXPECT_EQ(ieee[i * n + j], exact);
        EXPECT_EQ(tf32[i * n + j], short_ones);
        EXPECT_NEAR(static_cast<double>(x3[i * n + j]), reference, 1e-5);
        EXPECT_NEAR(static_cast<double>(b3[i * n + j]), reference, 3e-4);
      }
  }
}

TEST(Tensors, products_of_every_type) {
  std::vector<std::uint16_t> ones(256, 0x3c00), none(256), halves = ones;
  for (std::size_t i = 0; i < 256; ++i)
    halves[i] = static_cast<std::uint16_t>(0x3c00 + i); // 1 … 1.249
  F32 zero(256);
  const auto f16 = product<std::uint16_t, float>(16, 16, 16, "f16", "f32", ones, halves, zero,
                                                 dot_line(16, 16, 16, "f16", "f32"));
  EXPECT_EQ(f16[0], 16 + (0 + 240.0F * 16 / 2) / 1024);
  const auto rounded_once = product<std::uint16_t, std::uint16_t>(
      16, 16, 16, "f16", "f16", ones, halves, none, dot_line(16, 16, 16, "f16", "f16"));
  EXPECT_EQ(rounded_once[0], 0x4c78); // 17.875
  std::vector<std::int8_t> bytes(256, -3), more(256, 5);
  const auto i8 = product<std::int8_t, std::int32_t>(
      16, 16, 16, "i8", "i32", bytes, more, I32(256, 7), dot_line(16, 16, 16, "i8", "i32"));
  EXPECT_EQ(i8, I32(256, -233));
  std::vector<double> x(256, 0.1), y(256, 3);
  const auto f64 = product<double, double>(16, 16, 16, "f64", "f64", x, y, std::vector<double>(256),
                                           dot_line(16, 16, 16, "f64", "f64"));
  EXPECT_NEAR(f64[5], 4.8, 1e-15);
  std::vector<std::uint8_t> f8(256, 0x38); // 1.0
  const auto from_f8 = product<std::uint8_t, float>(16, 16, 16, "f8E4M3FN", "f32", f8, f8, zero,
                                                    dot_line(16, 16, 16, "f8E4M3FN", "f32"));
  EXPECT_EQ(from_f8, F32(256, 16));
}

TEST(Tensors, a_scaled_product_unpacks_and_scales) {
  // a: 16 × 32 of e2m1 (two to a byte), scale 2^1 for its one group of 32; b: 32 × 16 of e4m3 ones.
  std::vector<std::uint8_t> a(256, 0x23); // low 1.5, high 1
  std::vector<std::uint8_t> b(512, 0x38), sa(16, 128);
  F32 r(256);
  const auto text =
      function("%ap: !tt.ptr<i8>, %bp: !tt.ptr<i8>, %sp: !tt.ptr<i8>, %rp: !tt.ptr<f32>", R"(
    %i256 = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %i512 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %i16 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %as = tt.splat %ap : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>>
    %aa = tt.addptr %as, %i256 : tensor<256x!tt.ptr<i8>>, tensor<256xi32>
    %af = tt.load %aa : tensor<256x!tt.ptr<i8>>
    %a = tt.reshape %af : tensor<256xi8> -> tensor<16x16xi8>
    %bs = tt.splat %bp : !tt.ptr<i8> -> tensor<512x!tt.ptr<i8>>
    %ba = tt.addptr %bs, %i512 : tensor<512x!tt.ptr<i8>>, tensor<512xi32>
    %bf = tt.load %ba : tensor<512x!tt.ptr<i8>>
    %bi = tt.reshape %bf : tensor<512xi8> -> tensor<32x16xi8>
    %b = tt.bitcast %bi : tensor<32x16xi8> -> tensor<32x16xf8E4M3FN>
    %ss = tt.splat %sp : !tt.ptr<i8> -> tensor<16x!tt.ptr<i8>>
    %sa = tt.addptr %ss, %i16 : tensor<16x!tt.ptr<i8>>, tensor<16xi32>
    %sf = tt.load %sa : tensor<16x!tt.ptr<i8>>
    %s = tt.reshape %sf : tensor<16xi8> -> tensor<16x1xi8>
    %c = arith.constant dense<1.0> : tensor<16x16xf32>
    %r = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<16x16xi8>, tensor<16x1xi8> * tensor<32x16xf8E4M3FN> -> tensor<16x16xf32>
    %rf = tt.reshape %r : tensor<16x16xf32> -> tensor<256xf32>
    %rs = tt.splat %rp : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %ra = tt.addptr %rs, %i256 : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    tt.store %ra, %rf : tensor<256x!tt.ptr<f32>>
)");
  run(text, {buffer(a), buffer(b), buffer(sa), buffer(r)});
  EXPECT_EQ(r, F32(256, 1 + 2 * 16 * 2.5F));
}

} // namespace
} // namespace hebe::ttgir
