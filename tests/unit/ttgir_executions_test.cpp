#include "ttgir/executions.hpp"
#include "ttgir/floor.hpp"
#include "ttgir/reader.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>

namespace hebe::ttgir {
namespace {

std::unique_ptr<Module> read(const std::string& body) {
  auto module = read_module("module {\n  tt.func public @f(%p: !tt.ptr<f32>, %n: i32, %x: f32) {\n "
                            "   %zero = arith.constant 0 : i32\n"
                            "    %one = arith.constant 1 : i32\n    %pid = tt.get_program_id x : "
                            "i32\n    %np = tt.get_num_programs x : i32\n" +
                            body + "    tt.return\n  }\n}\n");
  EXPECT_TRUE(module) << to_text(module.error());
  return module ? *std::move(module) : nullptr;
}

/// Executions of all operations named `name`, and the number of doubts.
std::pair<double, std::size_t> count(const Module& module, Op code, const ScalarLaunch& launch) {
  const auto found = executions_of(module, *module.function(), launch);
  EXPECT_TRUE(found) << to_text(found.error());
  double total = 0;
  walk(module.top(), [&](Operation& op) { total += op.is(code) ? found->count(op) : 0; });
  return {total, found->doubts.size()};
}

using Pair = std::pair<double, std::size_t>;

TEST(Executions, a_loop_runs_as_often_as_its_bounds_say) {
  const auto module = read("    scf.for %i = %zero to %n step %one  : i32 {\n      tt.store %p, %x "
                           ": !tt.ptr<f32>\n    }\n");
  EXPECT_EQ(count(*module, Op::tt_store, {.grid = {3, 2, 1}, .scalars = {{"n", 5}}}), Pair(30, 0));
  EXPECT_EQ(count(*module, Op::tt_store, {.grid = {3, 2, 1}, .scalars = {{"n", 0}}}), Pair(0, 0));
  EXPECT_EQ(count(*module, Op::tt_store, {.grid = {3, 2, 1}, .scalars = {{"n", -7}}}), Pair(0, 0));
  EXPECT_EQ(count(*module, Op::tt_store, {.grid = {3, 2, 1}}), Pair(6, 1))
      << "counted once, and said";
}

TEST(Executions, a_persistent_loop_depends_on_the_program) {
  const auto module = read("    scf.for %i = %pid to %n step %np  : i32 {\n      tt.store %p, %x : "
                           "!tt.ptr<f32>\n    }\n");
  EXPECT_EQ(count(*module, Op::tt_store, {.grid = {132, 1, 1}, .scalars = {{"n", 1000}}}),
            Pair(1000, 0));
}

TEST(Executions, a_triangular_loop_is_summed) {
  const auto module = read("    scf.for %i = %zero to %n step %one  : i32 {\n      scf.for %j = "
                           "%zero to %i step %one  : i32 {\n"
                           "        tt.store %p, %x : !tt.ptr<f32>\n      }\n    }\n");
  EXPECT_EQ(count(*module, Op::tt_store, {.scalars = {{"n", 100}}}), Pair(4950, 0));
}

TEST(Executions, a_carried_value_decides_a_branch) {
  const auto module =
      read("    %r = scf.for %i = %zero to %n step %one iter_args(%k = %zero) -> (i32)  : i32 {\n"
           "      %even = arith.cmpi eq, %k, %zero : i32\n      scf.if %even {\n        tt.store "
           "%p, %x : !tt.ptr<f32>\n      }\n"
           "      %next = arith.subi %one, %k : i32\n      scf.yield %next : i32\n    }\n");
  EXPECT_EQ(count(*module, Op::tt_store, {.scalars = {{"n", 9}}}), Pair(5, 0));
}

TEST(Executions, a_branch_on_data_counts_both_ways_and_says_so) {
  const auto module = read("    %v = tt.load %p : !tt.ptr<f32>\n    %c = arith.cmpf olt, %v, %x : "
                           "f32\n    scf.if %c {\n      tt.store %p, %x : !tt.ptr<f32>\n"
                           "    } else {\n      tt.store %p, %v : !tt.ptr<f32>\n    }\n");
  EXPECT_EQ(count(*module, Op::tt_store, {}), Pair(2, 1));
}

TEST(Executions, an_early_return_is_followed) {
  const auto module = read("    %done = arith.cmpi sge, %pid, %n : i32\n    cf.cond_br %done, "
                           "^bb1, ^bb2\n  ^bb1:\n    tt.return\n  ^bb2:\n"
                           "    tt.store %p, %x : !tt.ptr<f32>\n");
  EXPECT_EQ(count(*module, Op::tt_store, {.grid = {10, 1, 1}, .scalars = {{"n", 4}}}), Pair(4, 0));
}

TEST(Executions, a_budget_bounds_the_work_and_says_so) {
  const auto module = read("    scf.for %i = %zero to %n step %one  : i32 {\n      scf.for %j = "
                           "%zero to %n step %one  : i32 {\n"
                           "        scf.for %k = %zero to %n step %one  : i32 {\n          "
                           "tt.store %p, %x : !tt.ptr<f32>\n        }\n      }\n    }\n");
  const auto [times, doubts] =
      count(*module, Op::tt_store, {.scalars = {{"n", 100000}}, .budget = 10000});
  EXPECT_GE(doubts, 1U);
  EXPECT_DOUBLE_EQ(times, 1e15) << "every iteration is like the one before here";
}

TEST(Executions, integers_wrap_as_the_machine_has_them) {
  const auto module =
      read("    %big = arith.constant 2147483647 : i32\n    %over = arith.addi %big, %one : i32\n"
           "    scf.for %i = %over to %zero step %big  : i32 {\n      tt.store %p, %x : "
           "!tt.ptr<f32>\n    }\n");
  EXPECT_EQ(count(*module, Op::tt_store, {}), Pair(2, 0));
}

TEST(Executions, a_scalar_that_is_none_is_refused_by_name) {
  const auto module = read("");
  for (const char* name : {"m", "x", "p"}) {
    const auto found = executions_of(*module, *module->function(), {.scalars = {{name, 1}}});
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, RefusalCode::bad_spec);
    EXPECT_EQ(found.error().next, "its integer arguments: n");
  }
}

TEST(Executions, of_a_real_kernel_are_its_rows) {
  auto text = read_file(HEBE_TEST_DATA "/ttgir/ln_fwd.ttgir");
  const auto module = *read_module(*std::move(text));
  EXPECT_EQ(count(*module, Op::tt_load, {.grid = {2048, 1, 1}, .scalars = {{"N", 8192}}}),
            Pair(5 * 2048, 0));
  EXPECT_EQ(count(*module, Op::tt_load, {.grid = {2048, 1, 1}, .scalars = {{"N", 8193}}}),
            Pair(10 * 2048, 0));
}

TEST(Floor, is_the_slowest_of_what_must_be_done) {
  const auto* board = *board_named("NVIDIA H200");
  const auto copy = floor_of({.unique_loaded = 4.8e9,
                              .unique_stored = 4.8e9,
                              .moved = 9.6e9,
                              .products = {},
                              .operations = {{"f32", 1e9}}},
                             *board);
  EXPECT_NEAR(copy.cold.value(), 2e-3, 1e-12);
  EXPECT_EQ(copy.limit, "DRAM");
  EXPECT_DOUBLE_EQ(copy.redundancy, 1);
  const double n = 8192;
  const auto product = floor_of({.unique_loaded = 2 * n * n * 2,
                                 .unique_stored = n * n * 2,
                                 .moved = 0,
                                 .products = {{"bf16", n * n * n}},
                                 .operations = {}},
                                *board);
  EXPECT_EQ(product.limit, "products of bf16");
  EXPECT_LT(product.cold_j->value(), 0.551) << "zeros took 551 mJ on the board";
  EXPECT_GT(product.cold_j->value(), 0.45);
}

TEST(Floor, what_fits_the_cache_need_not_come_from_memory) {
  const auto* board = *board_named("H200");
  const auto floor = floor_of(
      {.unique_loaded = 3e7, .unique_stored = 3e7, .moved = 6e7, .products = {}, .operations = {}},
      *board);
  EXPECT_GT(floor.cold.value(), 1e-5);
  EXPECT_EQ(floor.warm.value(), 0);
}

TEST(Floor, of_a_board_without_measured_energies_has_no_joules) {
  const auto floor = floor_of({.unique_loaded = 1e9,
                               .unique_stored = 0,
                               .moved = 1e9,
                               .products = {{"f4E2M1FN", 1e9}},
                               .operations = {}},
                              **board_named("NVIDIA A100-SXM4-80GB"));
  EXPECT_FALSE(floor.cold_j || floor.warm_j);
  EXPECT_EQ(floor.left_out, std::vector<std::string>{"products of f4E2M1FN"});
  EXPECT_TRUE(to_json(floor, **board_named("NVIDIA A100-SXM4-80GB"))["energy_cold_j"].is_null());
  const auto unknown = board_named("Voodoo 3");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().next.find("H200"), std::string::npos);
}

} // namespace
} // namespace hebe::ttgir
