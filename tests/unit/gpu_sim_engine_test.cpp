#include "gpu/sim_engine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace hebe::gpu {
namespace {

// y = x + s, masked at n; 64 elements a program.
const std::string kAdd =
    "module {\n"
    "  tt.func public @add(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %s: f32, %n: i32) {\n"
    "    %c64 = arith.constant 64 : i32\n"
    "    %pid = tt.get_program_id x : i32\n"
    "    %first = arith.muli %pid, %c64 : i32\n"
    "    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
    "    %f = tt.splat %first : i32 -> tensor<64xi32>\n"
    "    %o = arith.addi %f, %r : tensor<64xi32>\n"
    "    %nn = tt.splat %n : i32 -> tensor<64xi32>\n"
    "    %m = arith.cmpi slt, %o, %nn : tensor<64xi32>\n"
    "    %xp = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
    "    %xq = tt.addptr %xp, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
    "    %v = tt.load %xq, %m : tensor<64x!tt.ptr<f32>>\n"
    "    %ss = tt.splat %s : f32 -> tensor<64xf32>\n"
    "    %w = arith.addf %v, %ss : tensor<64xf32>\n"
    "    %yp = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
    "    %yq = tt.addptr %yp, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
    "    tt.store %yq, %w, %m : tensor<64x!tt.ptr<f32>>\n"
    "    tt.return\n  }\n}\n";

kernel::LaunchSpec add(std::int64_t n) {
  kernel::LaunchSpec launch;
  launch.name = "add";
  launch.entry = "add";
  launch.grid = {static_cast<std::uint32_t>((n + 63) / 64), 1, 1};
  kernel::Argument x;
  x.name = "x";
  x.dtype = kernel::DType::fp32;
  x.is_buffer = true;
  x.shape = {n};
  kernel::Argument y = x;
  y.name = "y";
  y.role = kernel::Role::out;
  kernel::Argument s;
  s.name = "s";
  s.dtype = kernel::DType::fp32;
  s.value = 0.5;
  kernel::Argument count;
  count.name = "n";
  count.dtype = kernel::DType::i32;
  count.value = n;
  launch.arguments = {x, y, s, count};
  return launch;
}

TEST(SimEngine, computes_the_outputs_and_counts_the_work) {
  const auto launch = add(100);
  auto engine = SimEngine::make(launch, kAdd, FpFusion::on);
  ASSERT_TRUE(engine) << to_text(engine.error());
  std::vector<float> x(100), y(100, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  ASSERT_TRUE(
      (*engine)->run({std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y))}));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[i] + 0.5F);
  EXPECT_EQ((*engine)->counted()->bytes, 800)
      << "100 loads and 100 stores of 4 bytes: masked lanes move nothing";
  EXPECT_EQ((*engine)->counted()->operations, 128) << "the addition runs for masked lanes too";
}

TEST(SimEngine, a_text_for_another_launch_is_refused) {
  auto launch = add(64);
  launch.arguments.pop_back();
  auto engine = SimEngine::make(launch, kAdd, FpFusion::on);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, RefusalCode::abi_mismatch);
  launch = add(64);
  launch.arguments[3].dtype = kernel::DType::i64;
  engine = SimEngine::make(launch, kAdd, FpFusion::on);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().what, "argument \"n\" is i64 in the launch, i32 in the TTGIR");
}

TEST(SimEngine, an_operation_that_is_not_understood_is_refused_by_name_before_anything_runs) {
  auto text = kAdd;
  text.replace(text.find("arith.addf %v, %ss"), 18, "new.addf %v, %ss");
  const auto engine = SimEngine::make(add(64), text, FpFusion::on);
  ASSERT_FALSE(engine);
  EXPECT_NE(to_text(engine.error()).find("new.addf"), std::string::npos) << to_text(engine.error());
}

TEST(SimEngine, an_access_outside_a_buffer_is_refused) {
  auto launch = add(100);
  launch.arguments[3].value = 101;
  auto engine = SimEngine::make(launch, kAdd, FpFusion::on);
  ASSERT_TRUE(engine);
  std::vector<float> x(100), y(100);
  const auto run =
      (*engine)->run({std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y))});
  ASSERT_FALSE(run);
  EXPECT_NE(to_text(run.error()).find("of 'x'"), std::string::npos) << to_text(run.error());
}

// y = %w, which `body` makes of %v, x's elements, and %ss, the scalar s.
std::string by_element(const std::string& body, const std::string& function = {}) {
  return "module attributes {ttg.target = \"cuda:90\"} {\n"
         "  tt.func public @add(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %s: f32, %n: i32) {\n"
         "    %zero = arith.constant 0 : i32\n"
         "    %one = arith.constant 1 : i32\n"
         "    %o = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
         "    %xp = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
         "    %xq = tt.addptr %xp, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
         "    %v = tt.load %xq : tensor<64x!tt.ptr<f32>>\n"
         "    %ss = tt.splat %s : f32 -> tensor<64xf32>\n" +
         body +
         "    %yp = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
         "    %yq = tt.addptr %yp, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
         "    tt.store %yq, %w : tensor<64x!tt.ptr<f32>>\n"
         "    tt.return\n  }\n" +
         function + "}\n";
}

constexpr float kX = 1 + 0x1p-12F;            // its square needs 24 bits behind the point
constexpr float kRounded = 0x1p-11F;          // x² - 1 with x² rounded first
constexpr float kFused = 0x1p-11F + 0x1p-24F; // and rounded once

float first_of(const std::string& text, FpFusion fusion, float s = -1) {
  auto launch = add(64);
  launch.arguments[2].value = s;
  launch.arguments[3].value = 1;
  auto engine = SimEngine::make(launch, text, fusion);
  EXPECT_TRUE(engine) << to_text(engine.error());
  std::vector<float> x(64, kX), y(64);
  const auto run =
      (*engine)->run({std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y))});
  EXPECT_TRUE(run) << to_text(run.error());
  return y[0];
}

const std::string kStraight = "    %m = arith.mulf %v, %v : tensor<64xf32>\n"
                              "    %w = arith.addf %m, %ss : tensor<64xf32>\n";

TEST(SimEngine, a_product_and_its_sum_are_rounded_once_as_compiled_code_does) {
  EXPECT_EQ(first_of(by_element(kStraight), FpFusion::on), kFused);
}

TEST(SimEngine, a_kernel_compiled_without_fp_fusion_rounds_the_product_and_the_sum) {
  EXPECT_EQ(first_of(by_element(kStraight), FpFusion::off), kRounded);
}

TEST(SimEngine, every_kind_of_block_is_contracted) {
  const std::string body = "      %m = arith.mulf %v, %u : tensor<64xf32>\n"
                           "      %t = arith.addf %m, %ss : tensor<64xf32>\n";
  const std::pair<const char*, std::string> table[] = {
      {"the body of a loop",
       "    %w = scf.for %i = %zero to %n step %one iter_args(%u = %v) -> (tensor<64xf32>)  : i32 "
       "{\n" +
           body + "      scf.yield %t : tensor<64xf32>\n    }\n"},
      {"a branch", "    %c = arith.cmpi eq, %n, %one : i32\n"
                   "    %w = scf.if %c -> (tensor<64xf32>) {\n"
                   "      %m = arith.mulf %v, %v : tensor<64xf32>\n"
                   "      %t = arith.addf %m, %ss : tensor<64xf32>\n"
                   "      scf.yield %t : tensor<64xf32>\n    } else {\n"
                   "      scf.yield %v : tensor<64xf32>\n    }\n"},
      {"a while loop",
       "    %k:2 = scf.while (%i = %zero, %u = %v) : (i32, tensor<64xf32>) -> (i32, "
       "tensor<64xf32>) {\n"
       "      %c = arith.cmpi slt, %i, %n : i32\n"
       "      scf.condition(%c) %i, %u : i32, tensor<64xf32>\n    } do {\n"
       "    ^bb0(%i: i32, %u: tensor<64xf32>):\n" +
           body +
           "      %j = arith.addi %i, %one : i32\n"
           "      scf.yield %j, %t : i32, tensor<64xf32>\n    }\n"
           "    %w = arith.maxnumf %k#1, %k#1 : tensor<64xf32>\n"},
      {"what a reduction combines with",
       "    %e = tt.expand_dims %v {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>\n"
       "    %d = tt.broadcast %e : tensor<64x1xf32> -> tensor<64x2xf32>\n"
       "    %w = \"tt.reduce\"(%d) <{axis = 1 : i32}> ({\n"
       "    ^bb0(%a: f32, %b: f32):\n"
       "      %c = arith.constant -1.000000e+00 : f32\n"
       "      %m = arith.mulf %a, %b : f32\n"
       "      %t = arith.addf %m, %c : f32\n"
       "      tt.reduce.return %t : f32\n"
       "    }) : (tensor<64x2xf32>) -> tensor<64xf32>\n"},
  };
  for (const auto& [where, text] : table) {
    SCOPED_TRACE(where);
    EXPECT_EQ(first_of(by_element(text), FpFusion::on), kFused);
    EXPECT_EQ(first_of(by_element(text), FpFusion::off), kRounded);
  }
  const auto called = by_element(
      "    %w = tt.call @other(%v, %ss) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>\n",
      "  tt.func private @other(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> "
      "attributes "
      "{noinline = true} {\n"
      "    %m = arith.mulf %a, %a : tensor<64xf32>\n"
      "    %r = arith.addf %m, %b : tensor<64xf32>\n"
      "    tt.return %r : tensor<64xf32>\n  }\n");
  EXPECT_EQ(first_of(called, FpFusion::on), kFused) << "a function that is called";
}

// Two loops that run once; what `inner` makes as %t leaves both.
std::string in_two_loops(const std::string& inner) {
  return by_element(
      "    %w = scf.for %i = %zero to %n step %one iter_args(%p = %v) -> (tensor<64xf32>)  : i32 "
      "{\n"
      "      %u = arith.addf %p, %p : tensor<64xf32>\n"
      "      %q = scf.for %j = %zero to %n step %one iter_args(%k = %v) -> (tensor<64xf32>)  : i32 "
      "{\n"
      "        %m = arith.mulf %v, %v : tensor<64xf32>\n" +
      inner +
      "        scf.yield %t : tensor<64xf32>\n      }\n"
      "      scf.yield %q : tensor<64xf32>\n    }\n");
}

TEST(SimEngine, what_no_trip_changes_is_contracted_where_the_compiler_moves_it) {
  // Both leave both loops, as LLVM has it; the product alone; neither leaves what changes.
  EXPECT_EQ(
      first_of(in_two_loops("        %t = arith.addf %m, %ss : tensor<64xf32>\n"), FpFusion::on),
      kFused);
  EXPECT_EQ(
      first_of(in_two_loops("        %t = arith.subf %m, %k : tensor<64xf32>\n"), FpFusion::on),
      0x1p-12F);
  EXPECT_EQ(
      first_of(in_two_loops("        %t = arith.subf %m, %u : tensor<64xf32>\n"), FpFusion::on),
      -1.0F)
      << "the sum leaves one loop, the product two";
}

TEST(SimEngine, a_product_that_is_pinned_to_its_own_rounding_stays_so) {
  const auto pinned = by_element(
      "    %m = tt.elementwise_inline_asm \"mul.rn.f32 $0, $1, $2;\" {constraints = \"=f,f,f\", "
      "packed_element = 1 : i32, pure = true} %v, %v : tensor<64xf32>, tensor<64xf32> -> "
      "tensor<64xf32>\n"
      "    %w = arith.addf %m, %ss : tensor<64xf32>\n");
  EXPECT_EQ(first_of(pinned, FpFusion::on), kRounded);
}

TEST(SimEngine, a_contraction_that_is_written_down_costs_and_gives_what_the_compilers_own_does) {
  const auto launch = add(64);
  const auto written = by_element("    %w = math.fma %v, %v, %ss : tensor<64xf32>\n");
  EXPECT_EQ(first_of(written, FpFusion::on), kFused);
  EXPECT_EQ(first_of(written, FpFusion::off), kFused);
  std::array<double, 2> operations{};
  for (std::size_t i = 0; i < 2; ++i) {
    auto engine =
        SimEngine::make(launch, i == 0 ? written : by_element(kStraight), FpFusion::on).value();
    std::vector<float> x(64), y(64);
    ASSERT_TRUE(
        engine->run({std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y))}));
    operations[i] = engine->counted()->operations;
  }
  EXPECT_EQ(operations[0], operations[1]);
}

} // namespace
} // namespace hebe::gpu
