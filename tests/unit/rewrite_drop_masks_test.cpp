#include "rewritten_kernel.hpp"

namespace hebe::rewrite {
namespace {
using namespace testing_passes;

constexpr const char* kParameters = "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %l: !tt.ptr<i32>, %n: "
                                    "i32, %k: i32";
const std::string kMask =
    "    %c = arith.constant dense<0.000000e+00> : tensor<64xf32>\n"
    "    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
    "    %s = tt.splat %n : i32 -> tensor<64xi32>\n"
    "    %m = arith.cmpi slt, %r, %s : tensor<64xi32>\n"
    "    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
    "    %pp = tt.addptr %ps, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
    "    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
    "    %qp = tt.addptr %qs, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n";
const std::string kCopy = function(
    kParameters, kMask + "    %x = tt.load %pp, %m, %c cacheModifier = cg evictionPolicy = "
                         "evict_first {isVolatile = true} : tensor<64x!tt.ptr<f32>>\n"
                         "    tt.store %qp, %x, %m evictionPolicy = evict_last : "
                         "tensor<64x!tt.ptr<f32>>\n");
constexpr const char* kPass = R"(["drop-masks"])";

TEST(DropMasks, a_mask_that_is_all_true_goes_with_its_other) {
  const auto made = rewritten(kCopy, kPass, facts_of({{"n", 64}}));
  EXPECT_EQ(count(made.ttgir, "%x = tt.load %pp cacheModifier = cg evictionPolicy = evict_first "
                              "{isVolatile = true} : tensor<64x!tt.ptr<f32>>\n"),
            1U)
      << made.ttgir;
  EXPECT_EQ(count(made.ttgir, "tt.store %qp, %x evictionPolicy = evict_last : "), 1U);
  EXPECT_EQ(made.account.changes.size(), 2U);
  EXPECT_EQ(made.account.changes[0].line, 11U) << "it stands for the line that it was";
  ASSERT_EQ(made.account.contracts.size(), 1U);
  EXPECT_EQ(made.account.contracts[0].argument, "n");
  EXPECT_EQ(made.account.contracts[0].value, 64);
  EXPECT_EQ(made.account.exactness, Exactness::exact);
}

TEST(DropMasks, a_mask_that_cuts_one_lane_stays) {
  const auto made = rewritten(kCopy, kPass, facts_of({{"n", 63}}));
  EXPECT_EQ(made.ttgir, kCopy);
  EXPECT_EQ(made.account.refused.size(), 2U);
  EXPECT_EQ(why(made), "its mask %m may be false in a lane");
  EXPECT_TRUE(made.account.contracts.empty()) << "nothing rests on n";
}

TEST(DropMasks, a_mask_of_an_argument_without_a_fact_stays_and_the_argument_is_named) {
  const auto made = rewritten(kCopy, kPass, facts_of({{"k", 64}}));
  EXPECT_EQ(made.ttgir, kCopy);
  EXPECT_EQ(why(made), "its mask %m is not known: no fact says %n");
}

TEST(DropMasks, a_mask_that_is_loaded_stays) {
  const auto text =
      function("%p: !tt.ptr<f32>, %b: !tt.ptr<i1>", "    %m = tt.load %b : !tt.ptr<i1>\n"
                                                    "    %x = tt.load %p, %m : !tt.ptr<f32>\n"
                                                    "    tt.store %p, %x : !tt.ptr<f32>\n");
  const auto made = rewritten(text, kPass);
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "its mask %m is not known: no fact says what is loaded");
}

TEST(DropMasks, a_mask_that_is_all_false_stays) {
  const auto made = rewritten(kCopy, kPass, facts_of({{"n", 0}}));
  EXPECT_EQ(made.ttgir, kCopy);
  EXPECT_EQ(why(made), "its mask is all false, so it does nothing");
}

/// Rows of 64 in blocks of 64: the last block of a loop is whole, or is not.
const std::string kLoop = function(
    kParameters, "    %z = arith.constant 0 : i32\n    %b = arith.constant 64 : i32\n" + kMask +
                     "    scf.for %i = %z to %n step %b  : i32 {\n"
                     "      %is = tt.splat %i : i32 -> tensor<64xi32>\n"
                     "      %o = arith.addi %is, %r : tensor<64xi32>\n"
                     "      %im = arith.cmpi slt, %o, %s : tensor<64xi32>\n"
                     "      %a = tt.addptr %ps, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
                     "      %x = tt.load %a, %im, %c : tensor<64x!tt.ptr<f32>>\n"
                     "      %d = tt.addptr %qs, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
                     "      tt.store %d, %x, %im : tensor<64x!tt.ptr<f32>>\n"
                     "    }\n");

TEST(DropMasks, in_a_loop_the_mask_goes_where_every_trip_is_whole) {
  EXPECT_EQ(rewritten(kLoop, kPass, facts_of({{"n", 256}})).account.changes.size(), 2U);
  for (const auto n : {1, 63, 65, 255, 257}) {
    const auto made = rewritten(kLoop, kPass, facts_of({{"n", n}}));
    EXPECT_EQ(made.ttgir, kLoop) << n;
    EXPECT_EQ(made.account.refused.size(), 2U) << n;
  }
}

TEST(DropMasks, a_mask_of_the_programs_number_rests_on_the_grid) {
  const auto text =
      function("%p: !tt.ptr<f32>, %n: i32", "    %i = tt.get_program_id x : i32\n"
                                            "    %m = arith.cmpi slt, %i, %n : i32\n"
                                            "    %x = tt.load %p, %m : !tt.ptr<f32>\n"
                                            "    tt.store %p, %x, %m : !tt.ptr<f32>\n");
  EXPECT_EQ(why(rewritten(text, kPass, facts_of({{"n", 4}}))),
            "its mask %m is not known: no fact says the grid");
  EXPECT_EQ(rewritten(text, kPass, facts_of({{"n", 4}}, {5, 1, 1})).ttgir, text);
  const auto made = rewritten(text, kPass, facts_of({{"n", 4}}, {4, 1, 1}));
  EXPECT_EQ(made.account.changes.size(), 2U);
  ASSERT_EQ(made.account.contracts.size(), 2U);
  EXPECT_EQ(made.account.contracts[1].kind, Contract::Kind::grid_equals);
}

TEST(DropMasks, an_atomics_mask_goes_and_its_result_stays) {
  const auto text = function(
      kParameters,
      kMask + "    %ls = tt.splat %l : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"
              "    %lp = tt.addptr %ls, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n"
              "    %old = tt.atomic_rmw add, acq_rel, gpu, %lp, %r, %m : "
              "(tensor<64x!tt.ptr<i32>>, tensor<64xi32>, tensor<64xi1>) -> tensor<64xi32>\n"
              "    tt.store %lp, %old : tensor<64x!tt.ptr<i32>>\n");
  EXPECT_EQ(count(rewritten(text, kPass, facts_of({{"n", 64}})).ttgir,
                  "%old = tt.atomic_rmw add, acq_rel, gpu, %lp, %r : (tensor<64x!tt.ptr<i32>>, "
                  "tensor<64xi32>) -> tensor<64xi32>\n"),
            1U);
  EXPECT_EQ(rewritten(text, kPass, facts_of({{"n", 63}})).ttgir, text);
}

TEST(DropMasks, a_conjunction_becomes_the_side_that_decides) {
  const auto text =
      function(kParameters, kMask + "    %t = tt.splat %k : i32 -> tensor<64xi32>\n"
                                    "    %m2 = arith.cmpi slt, %r, %t : tensor<64xi32>\n"
                                    "    %both = arith.andi %m, %m2 : tensor<64xi1>\n"
                                    "    %x = tt.load %pp, %both, %c : tensor<64x!tt.ptr<f32>>\n"
                                    "    tt.store %qp, %x : tensor<64x!tt.ptr<f32>>\n");
  for (const auto& [known, left] : {std::pair{"n", "%m2"}, {"k", "%m"}}) {
    const auto made = rewritten(text, kPass, facts_of({{known, 64}}));
    EXPECT_EQ(count(made.ttgir, std::string("tt.load %pp, ") + left + ", %c"), 1U) << made.ttgir;
    EXPECT_EQ(count(made.ttgir, "arith.andi"), 0U);
  }
  for (const auto n : {0, 63}) // a side that is all false decides too, and is not the other side
    EXPECT_EQ(rewritten(text, kPass, facts_of({{"n", n}})).ttgir, text) << n;
}

TEST(DropMasks, a_conjunction_of_wide_integers_is_no_mask) {
  const auto text = function("%l: !tt.ptr<i32>, %n: i32", "    %one = arith.constant 1 : i32\n"
                                                          "    %a = arith.andi %n, %one : i32\n"
                                                          "    tt.store %l, %a : !tt.ptr<i32>\n");
  EXPECT_EQ(rewritten(text, kPass).ttgir, text);
}

std::string select_kernel(const std::string& value) {
  return function(kParameters, kMask + value +
                                   "    %y = arith.select %m, %v, %c : tensor<64xi1>, "
                                   "tensor<64xf32>\n"
                                   "    %z = arith.addf %y, %c : tensor<64xf32>\n"
                                   "    tt.store %qp, %z : tensor<64x!tt.ptr<f32>>\n");
}

TEST(DropMasks, a_select_becomes_the_side_that_it_always_gives) {
  const auto text = select_kernel("    %v = tt.load %pp, %m, %c : tensor<64x!tt.ptr<f32>>\n");
  const auto taken = rewritten(text, kPass, facts_of({{"n", 64}}));
  EXPECT_EQ(count(taken.ttgir, "arith.addf %v, %c"), 1U) << taken.ttgir;
  EXPECT_EQ(taken.account.exactness, Exactness::exact);
  const auto left = rewritten(text, kPass, facts_of({{"n", 0}}));
  EXPECT_EQ(count(left.ttgir, "arith.addf %c, %c"), 1U);
  const auto cut = rewritten(text, kPass, facts_of({{"n", 1}}));
  EXPECT_EQ(cut.ttgir, text);
}

TEST(DropMasks, a_select_between_a_product_and_its_sum_is_exact_in_the_ir_only) {
  const auto text = select_kernel("    %x = tt.load %pp, %m, %c : tensor<64x!tt.ptr<f32>>\n"
                                  "    %v = arith.mulf %x, %x : tensor<64xf32>\n");
  EXPECT_EQ(rewritten(text, kPass, facts_of({{"n", 64}})).account.exactness,
            Exactness::exact_in_ir);
  EXPECT_EQ(rewritten(text, kPass, facts_of({{"n", 63}})).account.exactness, Exactness::exact);
  const auto negated = select_kernel("    %x = tt.load %pp, %m, %c : tensor<64x!tt.ptr<f32>>\n"
                                     "    %w = arith.mulf %x, %x : tensor<64xf32>\n"
                                     "    %v = arith.negf %w : tensor<64xf32>\n");
  EXPECT_EQ(rewritten(negated, kPass, facts_of({{"n", 64}})).account.exactness,
            Exactness::exact_in_ir);
}

TEST(DropMasks, a_product_that_loses_a_use_may_be_contracted_below) {
  const std::string product = "    %x = tt.load %pp, %m, %c : tensor<64x!tt.ptr<f32>>\n"
                              "    %w = arith.mulf %x, %x : tensor<64xf32>\n";
  const auto side = function(kParameters, kMask + product +
                                              "    %y = arith.select %m, %x, %w : tensor<64xi1>, "
                                              "tensor<64xf32>\n"
                                              "    %z = arith.addf %w, %y : tensor<64xf32>\n"
                                              "    tt.store %qp, %z : tensor<64x!tt.ptr<f32>>\n");
  const auto other =
      function(kParameters, kMask + product +
                                "    %y = tt.load %qp, %m, %w : tensor<64x!tt.ptr<f32>>\n"
                                "    %z = arith.addf %w, %y : tensor<64xf32>\n"
                                "    tt.store %qp, %z : tensor<64x!tt.ptr<f32>>\n");
  for (const auto& text : {side, other})
    EXPECT_EQ(rewritten(text, kPass, facts_of({{"n", 64}})).account.exactness,
              Exactness::exact_in_ir);
}

TEST(DropMasks, a_pipelined_copys_mask_goes) {
  const auto text = dump("softmax.ttgir");
  const auto made = rewritten(text, kPass, facts_of({{"n_rows", 8}, {"n_cols", 1024}}, {4, 1, 1}));
  EXPECT_LT(count(made.ttgir, "mask %"), count(text, "mask %"));
}

TEST(DropMasks, layer_norm_loses_every_mask_at_a_whole_block_and_none_at_one_less) {
  const auto text = dump("ln_fwd.ttgir");
  EXPECT_EQ(rewritten(text, kPass, facts_of({{"N", 8192}})).account.changes.size(), 7U);
  EXPECT_EQ(rewritten(text, kPass, facts_of({{"N", 8191}})).ttgir, text);
  EXPECT_EQ(rewritten(text, kPass, facts_of({{"N", 8193}})).ttgir, text);
}

TEST(DropMasks, facts_go_by_the_launchs_arguments_not_by_the_texts_names) {
  // Triton calls an argument after the last variable that held it: the text's %n is the launch's m.
  const std::string text =
      "module {\n  tt.func public @f(%p: !tt.ptr<f32>, %n: i32, %n_0: i32) {\n"
      "    %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
      "    %s = tt.splat %n : i32 -> tensor<16xi32>\n"
      "    %m = arith.cmpi slt, %r, %s : tensor<16xi32>\n"
      "    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>\n"
      "    %a = tt.addptr %ps, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>\n"
      "    %x = tt.load %a, %m : tensor<16x!tt.ptr<f32>>\n"
      "    tt.store %a, %x, %m : tensor<16x!tt.ptr<f32>>\n    tt.return\n  }\n}\n";
  const auto requests = requests_from(Json::array({"drop-masks"}), "test").value();
  LaunchFacts facts;
  facts.arguments = {"p", "m", "n"};
  facts.scalars = {{"m", 10}, {"n", 16}};
  const auto kept = apply(text, requests, facts).value();
  EXPECT_EQ(kept.ttgir, text);
  facts.scalars["m"] = 16;
  const auto dropped = apply(text, requests, facts).value();
  EXPECT_NE(dropped.ttgir.find("tt.load %a :"), std::string::npos) << dropped.ttgir;
  ASSERT_EQ(dropped.account.contracts.size(), 1U);
  EXPECT_EQ(dropped.account.contracts[0].argument, "m");
  facts.arguments = {"p", "m"};
  EXPECT_EQ(apply(text, requests, facts).error().code, RefusalCode::abi_mismatch);
}

} // namespace
} // namespace hebe::rewrite
