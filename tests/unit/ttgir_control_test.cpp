// Facts about control flow, calls, limits and messages.
#include "interpreted_kernel.hpp"

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;
using I32 = std::vector<std::int32_t>;

/// `body` makes %r, an i32, from %a and %b.
std::int32_t result_of(const std::string& body, std::int32_t a, std::int32_t b) {
  I32 r(1);
  run(function("%rp: !tt.ptr<i32>, %a: i32, %b: i32",
               "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n" + body +
                   "    tt.store %rp, %r : !tt.ptr<i32>\n"),
      {buffer(r), scalar(a), scalar(b)});
  return r[0];
}

TEST(Control, a_loop_carries_values) {
  const std::string sum =
      "    %r = scf.for %i = %a to %b step %c1 iter_args(%s = %c0) -> (i32) : i32 {\n      %n = "
      "arith.addi %s, %i : i32\n      scf.yield %n : i32\n    }\n";
  EXPECT_EQ(result_of(sum, 0, 5), 10);
  EXPECT_EQ(result_of(sum, -2, 3), 0 + 2 - 1 - 2 + 1);
  EXPECT_EQ(result_of(sum, 5, 5), 0);
  EXPECT_EQ(result_of(sum, 6, 5), 0);
}

TEST(Control, a_loop_goes_by_its_step) {
  EXPECT_EQ(result_of("    %c3 = arith.constant 3 : i32\n    %r = scf.for %i = %a to %b step %c3 "
                      "iter_args(%s = "
                      "%c0) -> (i32) : i32 {\n      %n = arith.addi %s, %i : i32\n      scf.yield "
                      "%n : i32\n    }\n",
                      0, 10),
            0 + 3 + 6 + 9);
}

TEST(Control, a_loop_up_to_the_largest_integer_ends) {
  EXPECT_EQ(
      result_of(
          "    %big = arith.constant 2147483647 : i32\n    %step = arith.constant 2000000000 : "
          "i32\n    %r = scf.for %i = %a to %big step %step iter_args(%s = %c0) -> (i32) : i32 {\n"
          "      %n = arith.addi %s, %c1 : i32\n      scf.yield %n : i32\n    }\n",
          0, 0),
      2);
}

TEST(Control, bounds_marked_unsigned_are) {
  const std::string text = " %i = %a to %b step %c1 iter_args(%s = %c0) -> (i32) : i32 {\n      %n "
                           "= arith.addi %s, %c1 : i32\n      scf.yield %n : i32\n    }\n";
  EXPECT_EQ(result_of("    %r = scf.for" + text, -3, -1), 2);
  EXPECT_EQ(result_of("    %r = scf.for unsigned" + text, -3, -1), 2);
  EXPECT_EQ(result_of("    %r = scf.for" + text, 1, -1), 0);
  EXPECT_EQ(result_of("    %d = arith.constant 1000000000 : i32\n    %r = scf.for unsigned %i = %a "
                      "to %b step %d iter_args(%s = %c0) -> (i32) : i32 {\n      %n = arith.addi "
                      "%s, %c1 : i32\n      scf.yield %n : i32\n    }\n",
                      1, -1),
            5);
}

TEST(Control, values_swap_in_a_yield) {
  EXPECT_EQ(result_of("    %c3 = arith.constant 3 : i32\n    %p:2 = scf.for %i = %c0 to %c3 step "
                      "%c1 iter_args(%x = %a, %y = %b) -> (i32, i32) : i32 {\n      scf.yield %y, "
                      "%x : i32, i32\n    }\n"
                      "    %t = arith.constant 10 : i32\n    %m = arith.muli %p#0, %t : i32\n    "
                      "%r = arith.addi %m, %p#1 : i32\n",
                      1, 2),
            21);
}

TEST(Control, branches_and_their_results) {
  const std::string text =
      "    %c = arith.cmpi slt, %a, %b : i32\n    %r = scf.if %c -> (i32) {\n      scf.yield %a : "
      "i32\n    } else {\n      %n = arith.subi %c0, %b : i32\n      scf.yield %n : i32\n    }\n";
  EXPECT_EQ(result_of(text, 1, 2), 1);
  EXPECT_EQ(result_of(text, 3, 2), -2);
}

TEST(Control, a_while_loop_gives_what_its_condition_carries) {
  // Collatz steps of a.
  const std::string text = R"(
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %w:2 = scf.while (%x = %a, %n = %c0) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi ne, %x, %c1 : i32
      scf.condition(%more) %x, %n : i32, i32
    } do {
    ^bb0(%x: i32, %n: i32):
      %odd = arith.remsi %x, %c2 : i32
      %is = arith.cmpi ne, %odd, %c0 : i32
      %half = arith.divsi %x, %c2 : i32
      %three = arith.muli %x, %c3 : i32
      %up = arith.addi %three, %c1 : i32
      %next = arith.select %is, %up, %half : i32
      %count = arith.addi %n, %c1 : i32
      scf.yield %next, %count : i32, i32
    }
    %r = arith.addi %w#1, %c0 : i32
)";
  EXPECT_EQ(result_of(text, 27, 0), 111);
  EXPECT_EQ(result_of(text, 1, 0), 0);
}

const std::string kFactorial = R"(module {
  tt.func public @kernel(%rp: !tt.ptr<i32>, %n: i32) {
    %r = tt.call @factorial(%n) : (i32) -> i32
    tt.store %rp, %r : !tt.ptr<i32>
    tt.return
  }
  tt.func private @factorial(%n: i32) -> i32 {
    %c1 = arith.constant 1 : i32
    %small = arith.cmpi sle, %n, %c1 : i32
    cf.cond_br %small, ^bb1, ^bb2(%n : i32)
  ^bb1:
    tt.return %c1 : i32
  ^bb2(%m: i32):
    %less = arith.subi %m, %c1 : i32
    %below = tt.call @factorial(%less) : (i32) -> i32
    %all = arith.muli %m, %below : i32
    cf.br ^bb3(%all : i32)
  ^bb3(%x: i32):
    tt.return %x : i32
  }
}
)";

TEST(Control, functions_call_themselves_and_return_early) {
  I32 r(1);
  run(kFactorial, {buffer(r), scalar(10)});
  EXPECT_EQ(r[0], 3628800);
}

TEST(Control, recursion_has_a_limit) {
  I32 r(1);
  EXPECT_EQ(refusal(kFactorial, {buffer(r), scalar(100)}),
            "kernel_failed: tt.call (line 15, %below) of program (0, 0, 0) calls deeper than 64 "
            "functions");
}

TEST(Control, a_loop_without_end_is_ended_by_the_limit) {
  I32 r(1);
  const auto text = function("%rp: !tt.ptr<i32>",
                             "    %yes = arith.constant true\n    scf.while : () -> () {\n      "
                             "scf.condition(%yes)\n    } do {\n      scf.yield\n    }\n");
  Limits limits;
  limits.steps = 1000;
  const auto outcome = launch(text, {buffer(r)}, {4, 1, 1}, 2, {}, limits);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, RefusalCode::kernel_failed);
  EXPECT_NE(outcome.error().what.find(
                "scf.while (line 4) of program (0, 0, 0) is beyond the 1000 operations"),
            std::string::npos)
      << outcome.error().what;
}

TEST(Control, an_empty_block_that_goes_to_itself_is_ended_too) {
  I32 r(1);
  const auto text = "module {\n  tt.func public @kernel(%rp: !tt.ptr<i32>) {\n    %c = "
                    "arith.constant 1 : i32\n    cf.br ^bb1\n  ^bb1:\n    cf.br ^bb1\n  }\n}\n";
  Limits limits;
  limits.steps = 1000;
  EXPECT_FALSE(launch(text, {buffer(r)}, {1, 1, 1}, 1, {}, limits));
}

TEST(Control, a_step_of_zero_is_refused) {
  I32 r(1);
  EXPECT_EQ(
      refusal(function("%rp: !tt.ptr<i32>, %s: i32",
                       "    %c0 = arith.constant 0 : i32\n    %c9 = arith.constant 9 : i32\n    "
                       "scf.for %i = %c0 to %c9 step %s : i32 {\n      scf.yield\n    }\n"),
              {buffer(r), scalar(0)}),
      "kernel_failed: scf.for (line 5) of program (0, 0, 0) has step 0");
}

TEST(Control, programs_know_their_place_in_the_grid) {
  I32 r(24);
  run(function("%rp: !tt.ptr<i32>", R"(
    %x = tt.get_program_id x : i32
    %y = tt.get_program_id y : i32
    %z = tt.get_program_id z : i32
    %nx = tt.get_num_programs x : i32
    %ny = tt.get_num_programs y : i32
    %zy = arith.muli %z, %ny : i32
    %row = arith.addi %zy, %y : i32
    %at = arith.muli %row, %nx : i32
    %i = arith.addi %at, %x : i32
    %a = tt.addptr %rp, %i : !tt.ptr<i32>, i32
    tt.store %a, %i : !tt.ptr<i32>
)"),
      {buffer(r)}, {2, 3, 4}, 3);
  for (std::int32_t i = 0; i < 24; ++i) EXPECT_EQ(r[static_cast<std::size_t>(i)], i);
}

TEST(Control, prints_come_in_the_order_of_programs_and_end_at_their_limit) {
  const auto text = function("%n: i32", R"(
    %pid = tt.get_program_id x : i32
    %v = arith.constant dense<[[1.5, -2.0]]> : tensor<1x2xf32>
    tt.print " pid: " {hex = false, isSigned = array<i32: 1>} : %pid : i32
    tt.print " v: " {hex = false, isSigned = array<i32: 1>} : %v : tensor<1x2xf32>
    tt.print " n: " {hex = true, isSigned = array<i32: 0>} : %n : i32
)");
  const auto outcome = launch(text, {scalar(-1)}, {2, 1, 1}, 2);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->printed, "pid (0, 0, 0) idx ()  pid: 0\npid (0, 0, 0) idx (0, 0)  v: 1.5\npid "
                              "(0, 0, 0) idx (0, 1)  v: -2\npid (0, 0, 0) idx ()  n: 0xffffffff\n"
                              "pid (1, 0, 0) idx ()  pid: 1\npid (1, 0, 0) idx (0, 0)  v: 1.5\npid "
                              "(1, 0, 0) idx (0, 1)  v: -2\npid (1, 0, 0) idx ()  n: 0xffffffff\n");
  Limits limits;
  limits.printed = 10;
  EXPECT_EQ(launch(text, {scalar(-1)}, {1, 1, 1}, 1, {}, limits)->printed, "pid (0, 0,");
}

TEST(Control, an_assertion_that_fails_tells_its_message_and_element) {
  EXPECT_EQ(refusal(function("%n: i32",
                             "    %c = arith.constant dense<[true, true, false, true]> : "
                             "tensor<4xi1>\n    tt.assert %c, \"index in range\" : tensor<4xi1>\n"),
                    {scalar(1)}),
            "kernel_failed: tt.assert (line 4) of program (0, 0, 0), element 2, does not hold: "
            "index in range");
}

TEST(Control, what_is_not_understood_is_refused_before_a_program_runs) {
  I32 r(1);
  const std::string text = function(
      "%rp: !tt.ptr<i32>", "    %c1 = arith.constant 1 : i32\n    tt.store %rp, %c1 : "
                           "!tt.ptr<i32>\n    tt.teleport %c1 : i32\n    %w = ttg.warp_id\n");
  const auto module = read_module(text, {true, "k"});
  ASSERT_TRUE(module);
  Launch l;
  l.arguments = {buffer(r)};
  const auto outcome = interpret(**module, "", l);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(
      outcome.error().what,
      "tt.teleport cannot be interpreted: the operation is not known (and 1 more operations)");
  EXPECT_EQ(outcome.error().where, "line 5");
  EXPECT_EQ(r[0], 0);
  EXPECT_EQ(not_interpretable(**module).size(), 2U);
}

TEST(Control, a_function_that_is_not_there) {
  const auto module = module_of(function("%n: i32", ""));
  EXPECT_EQ(interpret(*module, "other", {}).error().what, "the module has no function 'other'");
}

TEST(Control, a_mapped_region_may_branch) {
  std::vector<float> x{1, -2, 3, -4}, r(4);
  run(by_element(4, {"f32"}, "f32", R"(
    %cst = arith.constant 10.0 : f32
    %zero = arith.constant 0.0 : f32
    %r = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
    ^bb0(%e: f32):
      %neg = arith.cmpf olt, %e, %zero : f32
      cf.cond_br %neg, ^bb2(%e : f32), ^bb1
    ^bb1:
      %m = arith.mulf %e, %cst : f32
      cf.br ^bb2(%m : f32)
    ^bb2(%o: f32):
      tt.map_elementwise.return %o : f32
    }) : (tensor<4xf32>) -> tensor<4xf32>
)"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r, (std::vector<float>{10, -2, 30, -4}));
}

} // namespace
} // namespace hebe::ttgir
