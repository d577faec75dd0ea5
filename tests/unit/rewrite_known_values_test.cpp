#include "rewrite/known_values.hpp"

#include "ttgir/reader.hpp"

#include <gtest/gtest.h>

namespace hebe::rewrite {
namespace {

struct Kernel {
  std::unique_ptr<ttgir::Module> module;
  ttgir::Operation& at(std::size_t i) {
    return *module->function()->regions[0]->front().operations[i];
  }
};

Kernel kernel(const std::string& body) {
  auto module = ttgir::read_module("module {\n  tt.func public @f(%p: !tt.ptr<f32>, %n: i32) {\n" +
                                   body + "    tt.return\n  }\n}\n");
  EXPECT_TRUE(module) << to_text(module.error());
  return {*std::move(module)};
}

constexpr const char* kRange =
    "    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
    "    %s = tt.splat %n : i32 -> tensor<64xi32>\n"
    "    %m = arith.cmpi slt, %r, %s : tensor<64xi32>\n";

TEST(KnownValues, a_mask_is_all_true_where_the_launch_says_so) {
  auto k = kernel(kRange);
  LaunchFacts facts;
  facts.scalars["n"] = 64;
  KnownValues known(facts);
  const auto mask = known.constant(k.at(2).result());
  ASSERT_TRUE(mask);
  EXPECT_EQ(mask->low, 1);
  EXPECT_EQ(mask->arguments, (std::set<std::string>{"n"}));
}

TEST(KnownValues, a_mask_that_cuts_one_lane_is_not_known) {
  auto k = kernel(kRange);
  LaunchFacts facts;
  facts.scalars["n"] = 63;
  KnownValues known(facts);
  EXPECT_FALSE(known.constant(k.at(2).result()));
}

TEST(KnownValues, an_argument_without_a_fact_is_not_known) {
  auto k = kernel(kRange);
  LaunchFacts facts;
  KnownValues known(facts);
  EXPECT_FALSE(known.interval(k.at(1).result()));
  EXPECT_FALSE(known.interval(k.at(2).result()));
  EXPECT_EQ(known.interval(k.at(0).result())->high, 63);
}

TEST(KnownValues, arithmetic_that_may_wrap_gives_nothing) {
  auto k = kernel("    %a = arith.muli %n, %n : i32\n    %b = arith.addi %n, %n : i32\n");
  LaunchFacts facts;
  facts.scalars["n"] = 50'000;
  KnownValues known(facts);
  EXPECT_FALSE(known.interval(k.at(0).result())); // 2.5e9
  EXPECT_EQ(known.constant(k.at(1).result())->low, 100'000);
}

TEST(KnownValues, programs_are_known_with_the_grid_only) {
  auto k = kernel("    %i = tt.get_program_id x : i32\n");
  LaunchFacts facts;
  EXPECT_FALSE(KnownValues(facts).interval(k.at(0).result()));
  facts.grid = {12, 1, 1};
  const auto found = KnownValues(facts).interval(k.at(0).result());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->high, 11);
  EXPECT_TRUE(found->grid);
}

TEST(KnownValues, unsigned_comparison_of_what_may_be_negative_is_not_known) {
  auto k = kernel("    %c = arith.constant -1 : i32\n    %m = arith.cmpi ult, %c, %n : i32\n");
  LaunchFacts facts;
  facts.scalars["n"] = 5;
  KnownValues known(facts);
  EXPECT_FALSE(known.constant(k.at(1).result()));
}

TEST(KnownValues, trips_of_a_loop) {
  auto k = kernel("    %zero = arith.constant 0 : i32\n    %step = arith.constant 32 : i32\n"
                  "    scf.for %i = %zero to %n step %step  : i32 {\n"
                  "      %x = arith.addi %i, %i : i32\n    }\n");
  for (const auto& [n, trips, last] : {std::tuple{0, 0, 0}, {32, 1, 0}, {33, 2, 32}, {64, 2, 32}}) {
    LaunchFacts facts;
    facts.scalars["n"] = n;
    KnownValues known(facts);
    const auto found = known.trips(k.at(2));
    ASSERT_TRUE(found && found->single()) << n;
    EXPECT_EQ(found->low, trips) << n;
    if (trips > 0) {
      const auto& induction = k.at(2).regions[0]->front().arguments[0];
      EXPECT_EQ(known.interval(induction)->high, last) << n;
    }
  }
  EXPECT_FALSE(KnownValues(LaunchFacts{}).trips(k.at(2)));
}

TEST(KnownValues, a_signed_operation_on_i1_is_not_known) {
  auto k = kernel("    %t = arith.constant true\n    %f = arith.constant false\n"
                  "    %e = arith.extsi %t : i1 to i32\n"  // -1
                  "    %c = arith.cmpi sgt, %t, %f : i1\n" // false
                  "    %m = arith.maxsi %t, %f : i1\n"     // false
                  "    %u = arith.cmpi ugt, %t, %f : i1\n");
  LaunchFacts facts;
  KnownValues known(facts);
  for (const std::size_t i : {2U, 3U, 4U}) EXPECT_FALSE(known.interval(k.at(i).result())) << i;
  EXPECT_EQ(known.constant(k.at(5).result())->low, 1);
}

TEST(KnownValues, an_unsigned_loop_to_a_negative_bound_runs_to_a_large_one) {
  auto k = kernel("    %zero = arith.constant 0 : i32\n    %end = arith.constant -1 : i32\n"
                  "    %step = arith.constant 32 : i32\n"
                  "    scf.for unsigned %i = %zero to %end step %step  : i32 {\n"
                  "      %x = arith.addi %i, %i : i32\n    }\n");
  LaunchFacts facts;
  EXPECT_FALSE(KnownValues(facts).interval(k.at(3).regions[0]->front().arguments[0]));
}

} // namespace
} // namespace hebe::rewrite
