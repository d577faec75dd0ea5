// Facts about mathematical functions, libdevice calls and inline PTX.
#include "interpreted_kernel.hpp"

#include <cmath>
#include <random>

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;
using F32 = std::vector<float>;
using I32 = std::vector<std::int32_t>;

std::string call(const std::string& symbol, const std::string& arguments, const std::string& types,
                 const std::string& result) {
  return "    %r = tt.extern_elementwise " + arguments +
         " {libname = \"\", libpath = \"\", pure = true, symbol = \"" + symbol + "\"} : (" + types +
         ") -> " + result + "\n";
}

struct Function {
  const char* op;
  long double (*exact)(long double);
  float low, high;
};
class CorrectlyRounded : public testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(
    All, CorrectlyRounded,
    testing::Values(
        Function{"exp", std::exp, -104, 89}, Function{"exp2", std::exp2, -150, 129},
        Function{"log", std::log, 1e-40F, 3e38F}, Function{"log2", std::log2, 1e-40F, 3e38F},
        Function{"sin", std::sin, -1e4F, 1e4F}, Function{"cos", std::cos, -1e4F, 1e4F},
        Function{"tanh", std::tanh, -10, 10}, Function{"erf", std::erf, -4, 4},
        Function{"sqrt", std::sqrt, 0, 3e38F}, Function{"log1p", std::log1p, -0.99F, 100},
        Function{"expm1", std::expm1, -20, 88},
        Function{"rsqrt", [](long double x) { return 1 / std::sqrt(x); }, 1e-40F, 3e38F}),
    [](const auto& i) { return i.param.op; });

TEST_P(CorrectlyRounded, to_f32) {
  const Function& f = GetParam();
  constexpr std::size_t n = 1 << 16;
  F32 x(n), r(n);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> spread(f.low, f.high);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = spread(random);
    if (f.low > 0 && i % 2)
      x[i] = std::exp2(std::uniform_real_distribution<float>(-130, 127)(random));
    if (i % 7 == 0)
      x[i] = std::clamp(static_cast<float>(static_cast<int>(i % 64)) - 32, f.low, f.high);
  }
  run(by_element(n, {"f32"}, "f32",
                 std::string("    %r = math.") + f.op + " %x : tensor<65536xf32>\n"),
      {buffer(x), buffer(r)});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto expected = static_cast<float>(f.exact(static_cast<long double>(x[i])));
    if (r[i] != expected && wrong++ < 3)
      ADD_FAILURE() << f.op << "(" << x[i] << ") = " << r[i] << ", not " << expected;
  }
}

TEST(Functions, ends_are_as_in_the_standard) {
  const float inf = HUGE_VALF, nan = std::nanf("");
  F32 x{inf, -inf, nan, 0, -0.0F, -1, 200, -200}, r(8);
  const auto of = [&](const std::string& op) {
    run(by_element(8, {"f32"}, "f32", "    %r = math." + op + " %x : tensor<8xf32>\n"),
        {buffer(x), buffer(r)});
    return r;
  };
  auto e = of("exp");
  EXPECT_EQ(e[0], inf);
  EXPECT_EQ(e[1], 0);
  EXPECT_TRUE(std::isnan(e[2]));
  EXPECT_EQ(e[3], 1);
  EXPECT_EQ(e[6], inf);
  EXPECT_EQ(e[7], 0);
  e = of("log");
  EXPECT_EQ(e[0], inf);
  EXPECT_TRUE(std::isnan(e[1]) && std::isnan(e[2]) && std::isnan(e[5]));
  EXPECT_EQ(e[3], -inf);
  EXPECT_EQ(e[4], -inf);
  e = of("exp2");
  EXPECT_EQ(e[6], inf);
  EXPECT_EQ(e[7], 0);
  e = of("rsqrt");
  EXPECT_EQ(e[3], inf);
  EXPECT_EQ(e[0], 0);
  e = of("floor");
  EXPECT_TRUE(std::signbit(e[4]));
}

TEST(Functions, f64_is_the_library_s) {
  std::vector<double> x{0.1, 1.5, -2, 30}, r(4);
  run(by_element(4, {"f64"}, "f64", "    %r = math.exp %x : tensor<4xf64>\n"),
      {buffer(x), buffer(r)});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(r[i], std::exp(x[i]));
}

TEST(Functions, bits_are_counted) {
  I32 x{0, 1, -1, 0x00f0}, r(4);
  const auto of = [&](const std::string& op) {
    run(by_element(4, {"i32"}, "i32", "    %r = math." + op + " %x : tensor<4xi32>\n"),
        {buffer(x), buffer(r)});
    return r;
  };
  EXPECT_EQ(of("ctpop"), (I32{0, 1, 32, 4}));
  EXPECT_EQ(of("ctlz"), (I32{32, 31, 0, 24}));
  EXPECT_EQ(of("cttz"), (I32{32, 0, 0, 4}));
  EXPECT_EQ(of("absi"), (I32{0, 1, 1, 0x00f0}));
}

struct Symbol {
  const char* name;
  float x, y, expected;
};
class Libdevice : public testing::TestWithParam<Symbol> {};
INSTANTIATE_TEST_SUITE_P(
    All, Libdevice,
    testing::Values(
        Symbol{"__nv_expf", 1, 0, 2.7182817F}, Symbol{"__nv_fast_expf", 0, 0, 1},
        Symbol{"__nv_tanhf", 0.5F, 0, 0.46211717F}, Symbol{"__nv_rsqrtf", 4, 0, 0.5F},
        Symbol{"__nv_powf", 2, 10, 1024}, Symbol{"__nv_atan2f", 1, -1, 2.3561945F},
        Symbol{"__nv_fmodf", 7.5F, 2, 1.5F}, Symbol{"__nv_truncf", -1.7F, 0, -1},
        Symbol{"__nv_rintf", 2.5F, 0, 2}, Symbol{"__nv_roundf", 2.5F, 0, 3},
        Symbol{"__nv_erfinvf", 0.5F, 0, 0.47693628F}, Symbol{"__nv_normcdff", 0, 0, 0.5F},
        Symbol{"__nv_normcdfinvf", 0.975F, 0, 1.9599639F},
        Symbol{"__nv_erfcxf", 30, 0, 0.018795888F}, Symbol{"__nv_erfcinvf", 1e-10F, 0, 4.572825F},
        Symbol{"__nv_sinpif", 1.5F, 0, -1}, Symbol{"__nv_cospif", 0.5F, 0, 0},
        Symbol{"__nv_fdiv_rn", 1, 3, 0.33333334F}, Symbol{"__nv_fdiv_rz", 1, 3, 0.3333333F},
        Symbol{"__nv_fdiv_ru", 1, 3, 0.33333334F}, Symbol{"__nv_fadd_rd", 1, 1e-10F, 1},
        Symbol{"__nv_fadd_ru", 1, 1e-10F, 1.0000001F}, Symbol{"__nv_fmul_rz", 1.1F, 1.1F, 1.21F},
        Symbol{"__nv_fsqrt_rz", 2, 0, 1.4142135F}, Symbol{"__nv_frcp_rd", 3, 0, 0.3333333F},
        Symbol{"__nv_saturatef", 1.5F, 0, 1}, Symbol{"__nv_copysignf", 2, -1, -2},
        Symbol{"__nv_nextafterf", 1, 2, 1.0000001F}, Symbol{"__nv_hypotf", 3, 4, 5},
        Symbol{"__nv_cbrtf", 27, 0, 3}, Symbol{"__nv_tgammaf", 5, 0, 24},
        Symbol{"__nv_cyl_bessel_i0f", 1, 0, 1.2660658F}),
    [](const auto& i) { return std::string(i.param.name).substr(5); });

TEST_P(Libdevice, computes_what_its_name_says) {
  const Symbol& s = GetParam();
  F32 x{s.x}, y{s.y}, r(1);
  const bool two = std::string("__nv_powf __nv_atan2f __nv_fmodf __nv_fdiv_rn __nv_fdiv_rz "
                               "__nv_fdiv_ru __nv_fadd_rd __nv_fadd_ru __nv_fmul_rz "
                               "__nv_copysignf __nv_nextafterf __nv_hypotf")
                       .find(s.name) != std::string::npos;
  const std::string t = "tensor<1xf32>";
  if (two)
    run(by_element(1, {"f32", "f32"}, "f32", call(s.name, "%x, %y", t + ", " + t, t)),
        {buffer(x), buffer(y), buffer(r)});
  else
    run(by_element(1, {"f32"}, "f32", call(s.name, "%x", t, t)), {buffer(x), buffer(r)});
  EXPECT_FLOAT_EQ(r[0], s.expected);
  const std::string name = s.name;
  if (name.ends_with("_rz") || name.ends_with("_rd") || name.ends_with("_ru")) {
    EXPECT_EQ(r[0], s.expected) << "directed rounding is exact";
  }
}

TEST(Functions, libdevice_knows_integers_and_classes) {
  I32 r(3);
  F32 x{HUGE_VALF, std::nanf(""), 1};
  const auto of_float = [&](const std::string& symbol) {
    run(by_element(3, {"f32"}, "i32", call(symbol, "%x", "tensor<3xf32>", "tensor<3xi32>")),
        {buffer(x), buffer(r)});
    return r;
  };
  EXPECT_EQ(of_float("__nv_isinff"), (I32{1, 0, 0}));
  EXPECT_EQ(of_float("__nv_isnanf"), (I32{0, 1, 0}));
  EXPECT_EQ(of_float("__nv_finitef"), (I32{0, 0, 1}));
  EXPECT_EQ(of_float("__nv_float_as_int"), (I32{0x7f800000, 0x7fc00000, 0x3f800000}));
  x = {1.5F, 2.5F, -1.5F};
  EXPECT_EQ(of_float("__nv_float2int_rn"), (I32{2, 2, -2}));
  EXPECT_EQ(of_float("__nv_float2int_rd"), (I32{1, 2, -2}));
  EXPECT_EQ(of_float("__nv_float2int_ru"), (I32{2, 3, -1}));
  I32 y{1, 0x00f0, -1};
  const auto of_int = [&](const std::string& symbol) {
    run(by_element(3, {"i32"}, "i32", call(symbol, "%x", "tensor<3xi32>", "tensor<3xi32>")),
        {buffer(y), buffer(r)});
    return r;
  };
  EXPECT_EQ(of_int("__nv_ffs"), (I32{1, 5, 1}));
  EXPECT_EQ(of_int("__nv_clz"), (I32{31, 24, 0}));
  EXPECT_EQ(of_int("__nv_popc"), (I32{1, 4, 32}));
  EXPECT_EQ(of_int("__nv_brev"), (I32{std::numeric_limits<std::int32_t>::min(), 0x0f000000, -1}));
  EXPECT_EQ(of_int("__nv_abs"), (I32{1, 0x00f0, 1}));
}

TEST(Functions, an_unknown_symbol_is_refused_by_its_name) {
  F32 x(1), r(1);
  EXPECT_EQ(refusal(by_element(1, {"f32"}, "f32",
                               call("__nv_future", "%x", "tensor<1xf32>", "tensor<1xf32>")),
                    {buffer(x), buffer(r)}),
            "unsupported: tt.extern_elementwise cannot be interpreted: the function __nv_future is "
            "not known");
}

std::string assembly(const std::string& text, const std::string& constraints, int packed,
                     const std::string& from, const std::string& to) {
  return "    %r = tt.elementwise_inline_asm \"" + text + "\" {constraints = \"" + constraints +
         "\", packed_element = " + std::to_string(packed) + " : i32, pure = true} %x : " + from +
         " -> " + to + "\n";
}

TEST(Functions, ptx_with_predicates) { // softplus, as flash-linear-attention writes it
  F32 x{0, 1, 20, -3}, r(4);
  run(by_element(4, {"f32"}, "f32",
                 assembly("{ .reg .pred p; setp.gt.f32 p, $1, 15.; @p mov.f32 $0, $1; @!p "
                          "ex2.approx.ftz.f32 $0, $1; @!p add.f32 $0, $0, 1.0; @!p "
                          "lg2.approx.ftz.f32 $0, $0; }",
                          "=r,r", 1, "tensor<4xf32>", "tensor<4xf32>")),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[0], 1);
  EXPECT_FLOAT_EQ(r[1], std::log2(3.0F));
  EXPECT_EQ(r[2], 20);
  EXPECT_FLOAT_EQ(r[3], std::log2(1.125F));
}

TEST(Functions, ptx_on_packed_bytes) { // Triton's own fp8e4b15 to f16, four at a time
  std::vector<std::uint8_t> x(256);
  std::vector<std::uint16_t> r(256);
  for (std::size_t i = 0; i < 256; ++i) x[i] = static_cast<std::uint8_t>(i);
  run(by_element(256, {"i8"}, "f16",
                 assembly("{ \\0A.reg .b32 a<2>, b<2>; \\0Aprmt.b32 a0, 0, $2, 0x5746; \\0Aand.b32 "
                          "b0, a0, 0x7f007f00; \\0Aand.b32 b1, a0, 0x00ff00ff; "
                          "\\0Aand.b32 a1, a0, 0x00800080; \\0Ashr.b32  b0, b0, 1; \\0Aadd.u32 b1, "
                          "b1, a1; \\0Alop3.b32 $0, b0, 0x80008000, a0, 0xf8; "
                          "\\0Ashl.b32 $1, b1, 7; \\0A} \\0A",
                          "=r,=r,r", 4, "tensor<256xi8>", "tensor<256xf16>")),
      {buffer(x), buffer(r)});
  for (std::size_t i = 0; i < 256; ++i) // sign, 4 exponent bits with f16's bias, 3 mantissa bits
    EXPECT_EQ(r[i], (i & 0x80) << 8 | (i & 0x7f) << 7) << i;
}

TEST(Functions, ptx_that_is_not_known_is_refused_at_its_instruction) {
  F32 x(1), r(1);
  const auto said = refusal(
      by_element(1, {"f32"}, "f32",
                 assembly("mov.u32 $0, %smid;", "=r,r", 1, "tensor<1xf32>", "tensor<1xf32>")),
      {buffer(x), buffer(r)});
  EXPECT_EQ(said, "unsupported: tt.elementwise_inline_asm cannot be interpreted: the assembly "
                  "\"mov.u32 $0, %smid;\" is not known, at \"%smid\"");
  EXPECT_NE(
      refusal(by_element(1, {"f32"}, "f32",
                         assembly("foo.f32 $0, $1;", "=r,r", 1, "tensor<1xf32>", "tensor<1xf32>")),
              {buffer(x), buffer(r)})
          .find("at \"foo.f32 $0, $1\""),
      std::string::npos);
}

} // namespace
} // namespace hebe::ttgir
