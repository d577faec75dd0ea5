#include "gpu/sim_engine.hpp"

#include <gtest/gtest.h>

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
  auto engine = SimEngine::make(launch, kAdd);
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
  auto engine = SimEngine::make(launch, kAdd);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, RefusalCode::abi_mismatch);
  launch = add(64);
  launch.arguments[3].dtype = kernel::DType::i64;
  engine = SimEngine::make(launch, kAdd);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().what, "argument \"n\" is i64 in the launch, i32 in the TTGIR");
}

TEST(SimEngine, an_operation_that_is_not_understood_is_refused_by_name_before_anything_runs) {
  auto text = kAdd;
  text.replace(text.find("arith.addf %v, %ss"), 18, "new.addf %v, %ss");
  const auto engine = SimEngine::make(add(64), text);
  ASSERT_FALSE(engine);
  EXPECT_NE(to_text(engine.error()).find("new.addf"), std::string::npos) << to_text(engine.error());
}

TEST(SimEngine, an_access_outside_a_buffer_is_refused) {
  auto launch = add(100);
  launch.arguments[3].value = 101;
  auto engine = SimEngine::make(launch, kAdd);
  ASSERT_TRUE(engine);
  std::vector<float> x(100), y(100);
  const auto run =
      (*engine)->run({std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y))});
  ASSERT_FALSE(run);
  EXPECT_NE(to_text(run.error()).find("of 'x'"), std::string::npos) << to_text(run.error());
}

} // namespace
} // namespace hebe::gpu
