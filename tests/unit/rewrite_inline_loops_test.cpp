#include "rewrite_kernels.hpp"

namespace hebe::rewrite {
namespace {

constexpr const char* kInline = "[\"inline-single-trip-loops\"]";
constexpr const char* kBounds = "    %zero = arith.constant 0 : i32\n"
                                "    %step = arith.constant 32 : i32\n";

std::string loop(const std::string& inside, const std::string& after = "") {
  return std::string(kBounds) + "    scf.for %i = %zero to %n step %step  : i32 {\n" + inside +
         "    }" + after + "\n";
}

const std::string kStoreOfTrip = "      %x = arith.sitofp %i : i32 to f32\n"
                                 "      tt.store %p, %x : !tt.ptr<f32>\n";

std::string carried(const std::string& inside, const std::string& initial = "%a") {
  return std::string(kBounds) +
         "    %r = scf.for %i = %zero to %n step %step iter_args(%acc = " + initial +
         ") -> (f32)  : i32 {\n" + inside + "      scf.yield %y : f32\n    }\n" +
         "    tt.store %q, %r : !tt.ptr<f32>\n";
}

TEST(InlineLoops, a_loop_that_runs_once_becomes_its_body) {
  const auto out = rewrite(loop(kStoreOfTrip), kInline, with_n(32));
  EXPECT_EQ(out.body, "    %zero = arith.constant 0 : i32\n"
                      "    %x = arith.sitofp %zero : i32 to f32\n"
                      "    tt.store %p, %x : !tt.ptr<f32>\n");
  ASSERT_EQ(out.account.contracts.size(), 1U);
  EXPECT_EQ(out.account.contracts[0].argument, "n");
  EXPECT_EQ(out.account.exactness, Exactness::exact);
}

TEST(InlineLoops, a_loop_that_may_run_zero_or_two_times_or_as_often_as_it_likes_stays) {
  auto text = loop(kStoreOfTrip);
  EXPECT_EQ(rewrite(text, kInline, with_n(0)).refused(), "scf.for: it runs 0 times\n");
  EXPECT_EQ(rewrite(text, kInline, with_n(33)).refused(), "scf.for: it runs 2 times\n");
  const auto unknown = rewrite(text, kInline);
  EXPECT_EQ(unknown.refused(), "scf.for: how often it runs depends on %n, which is not fixed\n");
  EXPECT_EQ(unknown.count("scf.for"), 1U);
  EXPECT_TRUE(unknown.account.contracts.empty());
  text = "    %pid = tt.get_program_id x : i32\n    %one = arith.constant 1 : i32\n"
         "    scf.for %i = %pid to %one step %one  : i32 {\n" +
         kStoreOfTrip + "    }\n";
  LaunchFacts facts;
  facts.grid = {2, 1, 1};
  EXPECT_EQ(rewrite(text, kInline, facts).refused(), "scf.for: it runs 0 to 1 times\n");
}

TEST(InlineLoops, carried_values_that_change_places_come_out_in_their_places) {
  const auto out = rewrite(std::string(kBounds) +
                               "    %r:2 = scf.for %i = %zero to %n step %step iter_args(%u = %a, "
                               "%v = %b) -> (f32, f32)  : i32 {\n"
                               "      scf.yield %v, %u : f32, f32\n    }\n"
                               "    tt.store %p, %r#0 : !tt.ptr<f32>\n"
                               "    tt.store %q, %r#1 : !tt.ptr<f32>\n",
                           kInline, with_n(32));
  EXPECT_EQ(out.body, "    tt.store %p, %b : !tt.ptr<f32>\n    tt.store %q, %a : !tt.ptr<f32>\n");
  const auto twice = rewrite(std::string(kBounds) +
                                 "    %r:2 = scf.for %i = %zero to %n step %step iter_args(%u = "
                                 "%a, %v = %b) -> (f32, f32)  : i32 {\n"
                                 "      scf.yield %v, %u : f32, f32\n    }\n"
                                 "    tt.store %p, %r#0 : !tt.ptr<f32>\n"
                                 "    tt.store %q, %r#1 : !tt.ptr<f32>\n",
                             "[\"unroll-loops\"]", with_n(64));
  EXPECT_EQ(twice.body, "    tt.store %p, %a : !tt.ptr<f32>\n    tt.store %q, %b : !tt.ptr<f32>\n");
}

TEST(InlineLoops, attributes_that_go_with_the_loop_are_named) {
  const auto out = rewrite(loop(kStoreOfTrip, " {tt.num_stages = 3 : i32}"), kInline, with_n(32));
  EXPECT_TRUE(out.changed("with its tt.num_stages"));
  EXPECT_EQ(out.count("scf.for"), 0U);
}

TEST(InlineLoops, an_induction_variable_that_may_wrap_keeps_its_loop) {
  const auto out = rewrite("    %low = arith.constant 2147483000 : i32\n"
                           "    %high = arith.constant 2147483600 : i32\n"
                           "    %step = arith.constant 1000 : i32\n"
                           "    scf.for %i = %low to %high step %step  : i32 {\n" +
                               kStoreOfTrip + "    }\n",
                           kInline);
  EXPECT_EQ(out.refused(), "scf.for: its induction variable may wrap\n");
}

TEST(InlineLoops, a_loop_that_runs_once_or_twice_stays) {
  const auto out = rewrite("    %pid = tt.get_program_id x : i32\n"
                           "    %one = arith.constant 1 : i32\n"
                           "    %two = arith.constant 2 : i32\n"
                           "    scf.for %i = %pid to %two step %one  : i32 {\n" +
                               kStoreOfTrip + "    }\n",
                           kInline, [] {
                             LaunchFacts facts;
                             facts.grid = {2, 1, 1};
                             return facts;
                           }());
  EXPECT_EQ(out.refused(), "scf.for: it runs 1 to 2 times\n");
  EXPECT_EQ(out.count("scf.for"), 1U);
}

TEST(InlineLoops, loops_of_warps_that_wait_for_each_other_stay) {
  const std::string specialised = "      ttg.warp_specialize()\n      default {\n"
                                  "        scf.for %j = %zero to %n step %step  : i32 {\n"
                                  "          tt.store %p, %a : !tt.ptr<f32>\n        }\n"
                                  "        ttg.warp_yield\n      }\n"
                                  "      partition0() num_warps(4) {\n        ttg.warp_return\n"
                                  "      } : () -> ()\n";
  const auto out = rewrite(loop(specialised), kInline, with_n(32));
  EXPECT_EQ(out.count("scf.for"), 2U);
  EXPECT_NE(out.refused().find("it stands in ttg.warp_specialize"), std::string::npos);
  EXPECT_NE(out.refused().find("it holds ttg.warp_specialize"), std::string::npos);
}

TEST(InlineLoops, a_loop_in_a_branch_and_one_in_another_loop_are_found) {
  const auto out =
      rewrite(std::string(kBounds) + "    scf.if %c {\n"
                                     "      scf.for %i = %zero to %n step %step  : i32 {\n"
                                     "        scf.for %j = %i to %n step %step  : i32 {\n"
                                     "          %x = arith.sitofp %j : i32 to f32\n"
                                     "          tt.store %p, %x : !tt.ptr<f32>\n"
                                     "        }\n      }\n    }\n",
              kInline, with_n(32));
  EXPECT_EQ(out.count("scf.for"), 0U);
  EXPECT_EQ(out.count("scf.if"), 1U);
  EXPECT_EQ(out.count("tt.store"), 1U);
}

TEST(InlineLoops, the_contraction_that_the_loop_had_is_written_down) {
  const auto body = carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                            "      %m = arith.mulf %x, %x : f32\n"
                            "      %y = arith.addf %acc, %m : f32\n");
  const auto out = rewrite(body, kInline, with_n(32));
  EXPECT_EQ(out.body, "    %x = tt.load %p : !tt.ptr<f32>\n    %y = math.fma %x, %x, %a : f32\n"
                      "    tt.store %q, %y : !tt.ptr<f32>\n");
  EXPECT_TRUE(out.changed("the contraction of %y"));
  EXPECT_EQ(out.account.exactness, Exactness::exact_in_ir);
  EXPECT_EQ(rewrite(body, "[{\"pass\": \"inline-single-trip-loops\", \"pin\": false}]", with_n(32))
                .count("math.fma"),
            0U);
}

TEST(InlineLoops, differences_are_contracted_with_a_sign) {
  const auto left = rewrite(carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                                    "      %m = arith.mulf %x, %b : f32\n"
                                    "      %y = arith.subf %m, %acc : f32\n"),
                            kInline, with_n(32));
  EXPECT_NE(left.body.find(
                "%y = arith.subf %minus_zero, %a : f32\n    %y_1 = math.fma %x, %b, %y : f32\n"),
            std::string::npos)
      << left.body;
  const auto right = rewrite(carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                                     "      %m = arith.mulf %x, %b : f32\n"
                                     "      %y = arith.subf %acc, %m : f32\n"),
                             kInline, with_n(32));
  EXPECT_NE(right.body.find(
                "%y = arith.subf %minus_zero, %x : f32\n    %y_1 = math.fma %y, %b, %a : f32\n"),
            std::string::npos)
      << right.body;
}

TEST(InlineLoops, of_two_products_the_first_is_contracted_unless_it_has_more_uses) {
  const std::string two = "      %x = tt.load %p : !tt.ptr<f32>\n"
                          "      %m = arith.mulf %x, %a : f32\n"
                          "      %k = arith.mulf %x, %b : f32\n"
                          "      %s = arith.addf %m, %k : f32\n";
  const auto first =
      rewrite(carried(two + "      %y = arith.maxnumf %s, %acc : f32\n"), kInline, with_n(32));
  EXPECT_NE(first.body.find("math.fma %x, %a, %k"), std::string::npos) << first.body;
  const auto second =
      rewrite(carried(two + "      %y = arith.maxnumf %s, %m : f32\n"), kInline, with_n(32));
  EXPECT_NE(second.body.find("math.fma %x, %b, %m"), std::string::npos) << second.body;
}

TEST(InlineLoops, a_product_that_no_trip_changes_was_not_contracted_and_is_kept_apart) {
  const auto out = rewrite(carried("      %m = arith.mulf %a, %b : f32\n"
                                   "      %y = arith.addf %acc, %m : f32\n"),
                           kInline, with_n(32));
  EXPECT_EQ(out.count("math.fma"), 0U);
  EXPECT_EQ(out.count("mul.rn.f32"), 1U) << out.body;
  EXPECT_TRUE(out.changed("is rounded before arith.addf %y"));
}

TEST(InlineLoops, a_product_and_a_sum_that_no_trip_changes_were_contracted_ahead_of_the_loop) {
  const auto out = rewrite(carried("      %m = arith.mulf %a, %b : f32\n"
                                   "      %s = arith.addf %m, %a : f32\n"
                                   "      %y = arith.maxnumf %acc, %s : f32\n"),
                           kInline, with_n(32));
  EXPECT_EQ(out.count("math.fma %a, %b, %a"), 1U) << out.body;
  EXPECT_EQ(out.count("mul.rn.f32"), 0U);
}

TEST(InlineLoops, a_product_of_the_body_and_a_sum_behind_it_are_kept_apart) {
  const auto out = rewrite(carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                                   "      %y = arith.mulf %x, %x : f32\n") +
                               "    %s = arith.addf %r, %b : f32\n"
                               "    tt.store %p, %s : !tt.ptr<f32>\n",
                           kInline, with_n(32));
  EXPECT_EQ(out.count("mul.rn.f32"), 1U) << out.body;
  EXPECT_EQ(out.count("arith.mulf"), 1U) << "the stored product stays as it is";
}

TEST(InlineLoops, half_precision_that_may_now_be_contracted_is_said) {
  const auto out = rewrite(std::string(kBounds) +
                               "    %r = scf.for %i = %zero to %n step %step iter_args(%acc = %h) "
                               "-> (f16)  : i32 {\n"
                               "      %y = arith.mulf %acc, %h : f16\n"
                               "      scf.yield %y : f16\n    }\n"
                               "    %s = arith.addf %r, %h : f16\n"
                               "    tt.store %w, %s : !tt.ptr<f16>\n",
                           kInline, with_n(32), "%w: !tt.ptr<f16>, %h: f16, %n: i32");
  EXPECT_TRUE(out.changed("stand in one block now: the compiler may contract them"));
}

TEST(InlineLoops, a_branch_between_a_product_and_its_sum_leaves_them_as_they_are) {
  const auto out = rewrite(carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                                   "      %m = arith.mulf %x, %x : f32\n"
                                   "      scf.if %c {\n        tt.store %p, %x : !tt.ptr<f32>\n"
                                   "      }\n      %y = arith.addf %acc, %m : f32\n"),
                           kInline, with_n(32));
  EXPECT_EQ(out.count("arith.addf"), 1U) << out.body;
  EXPECT_EQ(out.count("math.fma") + out.count("mul.rn"), 0U);
}

TEST(InlineLoops, a_product_by_one_or_two_is_none) {
  const auto out = rewrite("    %two = arith.constant 2.000000e+00 : f32\n" +
                               carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                                       "      %m = arith.mulf %x, %two : f32\n"
                                       "      %y = arith.addf %acc, %m : f32\n"),
                           kInline, with_n(32));
  EXPECT_EQ(out.count("arith.addf"), 1U) << out.body;
}

TEST(InlineLoops, an_addend_of_minus_zero_is_said) {
  const auto out = rewrite("    %minus = arith.constant -0.000000e+00 : f32\n" +
                               carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                                       "      %m = arith.mulf %x, %x : f32\n"
                                       "      %y = arith.addf %acc, %m : f32\n",
                                       "%minus"),
                           kInline, with_n(32));
  EXPECT_TRUE(out.changed("LLVM drops such an addend"));
}

TEST(UnrollLoops, copies_have_their_own_values_and_their_trips_numbers) {
  const auto out = rewrite(loop(kStoreOfTrip), "[\"unroll-loops\"]", with_n(96));
  EXPECT_EQ(out.body, "    %zero = arith.constant 0 : i32\n"
                      "    %x = arith.sitofp %zero : i32 to f32\n"
                      "    tt.store %p, %x : !tt.ptr<f32>\n"
                      "    %i = arith.constant 32 : i32\n"
                      "    %x_1 = arith.sitofp %i : i32 to f32\n"
                      "    tt.store %p, %x_1 : !tt.ptr<f32>\n"
                      "    %i_1 = arith.constant 64 : i32\n"
                      "    %x_2 = arith.sitofp %i_1 : i32 to f32\n"
                      "    tt.store %p, %x_2 : !tt.ptr<f32>\n");
  EXPECT_TRUE(out.changed("runs 3 times"));
}

TEST(UnrollLoops, more_trips_than_asked_for_are_refused) {
  const auto out =
      rewrite(loop(kStoreOfTrip), "[{\"pass\": \"unroll-loops\", \"trips\": 2}]", with_n(96));
  EXPECT_EQ(out.refused(), "scf.for: it runs 3 times, more than 2\n");
}

TEST(UnrollLoops, bounds_that_move_together_are_not_seen_through) {
  const auto out = rewrite("    %one = arith.constant 1 : i32\n    %two = arith.constant 2 : i32\n"
                           "    %pid = tt.get_program_id x : i32\n"
                           "    %end = arith.addi %pid, %two : i32\n"
                           "    scf.for %i = %pid to %end step %one  : i32 {\n" +
                               kStoreOfTrip + "    }\n",
                           "[\"unroll-loops\"]");
  EXPECT_EQ(out.count("scf.for"), 1U) << "the two bounds are not known to be two apart";
}

TEST(UnrollLoops, too_many_operations_are_refused_with_their_number) {
  std::string inside;
  for (int i = 0; i < 3000; ++i) inside += kStoreOfTrip;
  for (std::size_t at = 0, i = 0; (at = inside.find("%x", at)) != std::string::npos; ++i)
    inside.replace(at, 2, "%y" + std::to_string(i / 2)), at += 2;
  const auto out = rewrite(loop(inside), "[\"unroll-loops\"]", with_n(256));
  EXPECT_NE(out.refused().find("the kernel would have 48"), std::string::npos) << out.refused();
}

TEST(UnrollLoops, a_product_of_one_trip_and_a_sum_of_the_next_are_kept_apart) {
  const auto out = rewrite(carried("      %x = tt.load %p : !tt.ptr<f32>\n"
                                   "      %s = arith.addf %acc, %x : f32\n"
                                   "      %y = arith.mulf %s, %x : f32\n"),
                           "[\"unroll-loops\"]", with_n(64));
  EXPECT_EQ(out.count("mul.rn.f32"), 1U) << out.body;
}

} // namespace
} // namespace hebe::rewrite
