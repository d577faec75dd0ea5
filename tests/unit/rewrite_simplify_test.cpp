#include "rewritten_kernel.hpp"

namespace hebe::rewrite {
namespace {
using namespace testing_passes;

constexpr const char* kParameters =
    "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %l: !tt.ptr<i32>, %n: i32, %k: i32, %t: i1";
constexpr const char* kPass = R"(["simplify"])";
std::string kernel(const std::string& body) { return function(kParameters, body); }

/// What is left of a function's body.
std::string left_of(const std::string& body) {
  const auto made = rewritten(kernel(body), kPass);
  const auto begin = made.ttgir.find("{\n    ") + 2;
  return made.ttgir.substr(begin, made.ttgir.rfind("    tt.return") - begin);
}
/// Stores an i32 %r; what is left in front of the store, and what is stored.
std::string left_of_i32(const std::string& body) {
  return left_of(body + "    tt.store %l, %r : !tt.ptr<i32>\n");
}
std::string stored(const std::string& value) {
  return "    tt.store %l, " + value + " : !tt.ptr<i32>\n";
}

TEST(Simplify, identities_of_integers) {
  const std::pair<const char*, const char*> table[] = {
      {"    %z = arith.constant 0 : i32\n    %r = arith.addi %n, %z : i32\n", "%n"},
      {"    %z = arith.constant 0 : i32\n    %r = arith.addi %z, %n : i32\n", "%n"},
      {"    %z = arith.constant 0 : i32\n    %r = arith.subi %n, %z : i32\n", "%n"},
      {"    %o = arith.constant 1 : i32\n    %r = arith.muli %n, %o : i32\n", "%n"},
      {"    %o = arith.constant 1 : i32\n    %r = arith.muli %o, %n : i32\n", "%n"},
      {"    %m = arith.constant -1 : i32\n    %r = arith.andi %m, %n : i32\n", "%n"},
      {"    %t0 = arith.constant true\n    %r = arith.select %t0, %n, %k : i32\n", "%n"},
      {"    %t0 = arith.constant false\n    %r = arith.select %t0, %n, %k : i32\n", "%k"},
      {"    %r = arith.select %t, %n, %n : i32\n", "%n"},
  };
  for (const auto& [body, value] : table) EXPECT_EQ(left_of_i32(body), stored(value)) << body;
  EXPECT_EQ(left_of_i32("    %z = arith.constant 0 : i32\n    %r = arith.muli %n, %z : i32\n"),
            "    %z = arith.constant 0 : i32\n" + stored("%z"));
}

TEST(Simplify, what_is_no_identity_stays) {
  for (const char* body : {"    %o = arith.constant 1 : i32\n    %r = arith.addi %n, %o : i32\n",
                           "    %z = arith.constant 0 : i32\n    %r = arith.subi %z, %n : i32\n",
                           "    %z = arith.constant 0 : i32\n    %r = arith.divsi %z, %n : i32\n",
                           "    %z = arith.constant 2 : i32\n    %r = arith.muli %n, %z : i32\n",
                           "    %o = arith.constant 1 : i32\n    %r = arith.andi %n, %o : i32\n",
                           "    %r = arith.select %t, %n, %k : i32\n"})
    EXPECT_EQ(left_of_i32(body), body + stored("%r"));
}

TEST(Simplify, constants_are_computed_where_they_do_not_wrap) {
  const std::tuple<const char*, const char*, const char*, const char*> table[] = {
      {"arith.addi", "2147483647", "0", "2147483647"},
      {"arith.addi", "2147483647", "1", ""},
      {"arith.subi", "-2147483648", "1", ""},
      {"arith.subi", "-2147483647", "1", "-2147483648"},
      {"arith.muli", "65536", "32768", ""},
      {"arith.muli", "65535", "32768", "2147450880"},
      {"arith.muli", "-4", "5", "-20"},
  };
  for (const auto& [op, a, b, value] : table) {
    const std::string body = std::string("    %a = arith.constant ") + a +
                             " : i32\n    %b = arith.constant " + b + " : i32\n    %r = " + op +
                             " %a, %b : i32\n";
    const auto left = left_of_i32(body);
    if (*value)
      EXPECT_EQ(count(left, std::string("= arith.constant ") + value + " : i32\n"), 1U) << left;
    else
      EXPECT_EQ(left, body + stored("%r"));
  }
}

TEST(Simplify, comparisons_and_casts_of_constants_know_their_width_and_sign) {
  const std::tuple<const char*, const char*, const char*, const char*> table[] = {
      {"slt", "-1", "0", "1"},  {"ult", "-1", "0", "0"}, {"uge", "-1", "7", "1"},
      {"sge", "-1", "7", "0"},  {"eq", "5", "5", "1"},   {"ne", "5", "5", "0"},
      {"sle", "-3", "-3", "1"}, {"ugt", "1", "-1", "0"},
  };
  for (const auto& [predicate, a, b, value] : table) {
    const auto left =
        left_of_i32(std::string("    %a = arith.constant ") + a +
                    " : i8\n    %b = arith.constant " + b + " : i8\n    %c = arith.cmpi " +
                    predicate + ", %a, %b : i8\n    %r = arith.extui %c : i1 to i32\n");
    EXPECT_EQ(count(left, std::string("arith.constant ") + value + " : i32\n"), 1U)
        << predicate << " " << left;
  }
  EXPECT_EQ(
      count(left_of_i32("    %c = arith.constant true\n    %r = arith.extsi %c : i1 to i32\n"),
            "arith.constant -1 : i32"),
      1U)
      << "true is -1 with a sign";
  EXPECT_EQ(
      count(left_of_i32("    %c = arith.constant -1 : i8\n    %r = arith.extui %c : i8 to i32\n"),
            "arith.constant 255 : i32"),
      1U);
  EXPECT_EQ(
      count(
          left_of_i32(
              "    %c = arith.constant 4294967297 : i64\n    %r = arith.trunci %c : i64 to i32\n"),
          "arith.constant 1 : i32"),
      1U);
  EXPECT_EQ(count(left_of("    %a = arith.constant true\n    %b = arith.constant false\n"
                          "    %c = arith.cmpi slt, %a, %b : i1\n"
                          "    %r = arith.extui %c : i1 to i32\n" +
                          stored("%r")),
                  "arith.constant 1 : i32"),
            1U)
      << "true is less than false with a sign";
}

TEST(Simplify, floating_point_is_neither_folded_nor_merged) {
  const std::string body = "    %z = arith.constant 0.000000e+00 : f32\n"
                           "    %x = tt.load %p : !tt.ptr<f32>\n"
                           "    %a = arith.addf %x, %z : f32\n"
                           "    %b = arith.addf %x, %z : f32\n"
                           "    %c = arith.mulf %a, %b : f32\n"
                           "    tt.store %q, %c : !tt.ptr<f32>\n";
  EXPECT_EQ(left_of(body), body);
}

TEST(Simplify, an_argument_that_is_not_a_number_is_not_hidden_by_a_product_with_zero) {
  const std::string body = "    %z = arith.constant 0.000000e+00 : f32\n"
                           "    %x = tt.load %p : !tt.ptr<f32>\n"
                           "    %a = arith.mulf %x, %z : f32\n"
                           "    tt.store %q, %a : !tt.ptr<f32>\n";
  EXPECT_EQ(left_of(body), body);
}

TEST(Simplify, equal_operations_are_one_and_the_dominating_one_stays) {
  EXPECT_EQ(left_of("    %z = arith.constant 3 : i32\n"
                    "    %a = arith.addi %n, %k : i32\n"
                    "    scf.if %t {\n"
                    "      %y = arith.constant 3 : i32\n"
                    "      %b = arith.addi %n, %k : i32\n"
                    "      %c = arith.muli %b, %y : i32\n"
                    "      tt.store %l, %c : !tt.ptr<i32>\n"
                    "    }\n"
                    "    %d = arith.muli %a, %z : i32\n" +
                    stored("%d")),
            "    %z = arith.constant 3 : i32\n"
            "    %a = arith.addi %n, %k : i32\n"
            "    scf.if %t {\n"
            "      %c = arith.muli %a, %z : i32\n"
            "      tt.store %l, %c : !tt.ptr<i32>\n"
            "    }\n"
            "    %d = arith.muli %a, %z : i32\n" +
                stored("%d"));
}

TEST(Simplify, equal_operations_that_do_not_dominate_each_other_stay) {
  const std::string branches = "    scf.if %t {\n"
                               "      %a = arith.addi %n, %k : i32\n"
                               "      tt.store %l, %a : !tt.ptr<i32>\n"
                               "    } else {\n"
                               "      %a = arith.addi %n, %k : i32\n"
                               "      tt.store %l, %a : !tt.ptr<i32>\n"
                               "    }\n";
  EXPECT_EQ(left_of(branches), branches);
  const std::string blocks = "    cf.cond_br %t, ^bb1, ^bb2\n"
                             "  ^bb1:\n"
                             "    %a = arith.addi %n, %k : i32\n"
                             "    tt.store %l, %a : !tt.ptr<i32>\n"
                             "    cf.br ^bb2\n"
                             "  ^bb2:\n"
                             "    %b = arith.addi %n, %k : i32\n" +
                             stored("%b");
  EXPECT_EQ(left_of(blocks), blocks);
}

TEST(Simplify, operations_that_differ_in_one_attribute_or_type_stay) {
  const std::string body = "    %a = arith.cmpi slt, %n, %k : i32\n"
                           "    %b = arith.cmpi ult, %n, %k : i32\n"
                           "    %c = arith.select %a, %n, %k : i32\n"
                           "    %d = arith.select %b, %n, %k : i32\n"
                           "    %i = tt.get_program_id x : i32\n"
                           "    %j = tt.get_program_id y : i32\n"
                           "    %e = arith.addi %c, %i : i32\n"
                           "    %f = arith.addi %d, %j : i32\n"
                           "    tt.store %l, %e : !tt.ptr<i32>\n"
                           "    tt.store %l, %f : !tt.ptr<i32>\n";
  EXPECT_EQ(left_of(body), body);
}

TEST(Simplify, loads_are_not_merged_and_unused_ones_stay) {
  const std::string body = "    %x = tt.load %l : !tt.ptr<i32>\n"
                           "    %y = tt.load %l : !tt.ptr<i32>\n"
                           "    tt.store %l, %x : !tt.ptr<i32>\n";
  EXPECT_EQ(left_of(body), body);
}

TEST(Simplify, a_value_with_a_note_is_left) {
  const std::string body = "    %z = arith.constant 0 : i32\n"
                           "    %r = arith.addi %n, %z {tt.divisibility = dense<16> : "
                           "tensor<1xi32>} : i32\n" +
                           stored("%r");
  EXPECT_EQ(left_of(body), body);
}

std::string addresses(const std::string& first, const std::string& second,
                      const std::string& type = "i32") {
  return "    %a = arith.constant " + first + " : " + type + "\n    %b = arith.constant " + second +
         " : " + type + "\n    %x = tt.addptr %l, %a : !tt.ptr<i32>, " + type +
         "\n    %y = tt.addptr %x, %b : !tt.ptr<i32>, " + type +
         "\n    tt.store %y, %n : !tt.ptr<i32>\n";
}

TEST(Simplify, constant_steps_of_an_address_are_one_step_unless_they_wrap) {
  EXPECT_EQ(left_of(addresses("4", "8")), "    %y = arith.constant 12 : i32\n"
                                          "    %y_1 = tt.addptr %l, %y : !tt.ptr<i32>, i32\n"
                                          "    tt.store %y_1, %n : !tt.ptr<i32>\n");
  EXPECT_EQ(left_of(addresses("4", "-4")), "    tt.store %l, %n : !tt.ptr<i32>\n");
  const auto wraps = rewritten(kernel(addresses("2147483647", "1")), kPass);
  EXPECT_EQ(wraps.ttgir, kernel(addresses("2147483647", "1")));
  EXPECT_EQ(why(wraps), "the offsets of two steps may wrap when added");
  EXPECT_EQ(count(left_of(addresses("2147483647", "1", "i64")), "2147483648 : i64"), 1U);
}

TEST(Simplify, steps_of_different_types_are_left) {
  const auto text = kernel("    %a = arith.constant 4 : i32\n    %b = arith.constant 4 : i64\n"
                           "    %x = tt.addptr %l, %a : !tt.ptr<i32>, i32\n"
                           "    %y = tt.addptr %x, %b : !tt.ptr<i32>, i64\n"
                           "    tt.store %y, %n : !tt.ptr<i32>\n");
  const auto made = rewritten(text, kPass);
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "the offsets of two steps have different types");
}

std::string layouts(const std::string& body) {
  return "#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order "
         "= [0]}>\n#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = "
         "[4], order = [0]}>\n#c = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], "
         "warpsPerCTA = [4], order = [0]}>\nmodule attributes {\"ttg.num-warps\" = 4 : i32} {\n  "
         "tt.func public @f(%p: "
         "tensor<64x!tt.ptr<f32>, #a>, %q: tensor<64x!tt.ptr<f32>, #c>, %s: f32) {\n" +
         body + "    tt.return\n  }\n}\n";
}
constexpr const char* kLoad = "    %x = tt.load %p : tensor<64x!tt.ptr<f32>, #a>\n";
constexpr const char* kThere =
    "    %y = ttg.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #b>\n";

TEST(Simplify, layouts_there_and_back_go) {
  const auto made = rewritten(
      layouts(std::string(kLoad) + kThere +
              "    %z = ttg.convert_layout %y : tensor<64xf32, #b> -> tensor<64xf32, #a>\n"
              "    %w = ttg.convert_layout %z : tensor<64xf32, #a> -> tensor<64xf32, #a>\n"
              "    tt.store %p, %w : tensor<64x!tt.ptr<f32>, #a>\n"),
      kPass);
  EXPECT_EQ(made.ttgir,
            layouts(std::string(kLoad) + "    tt.store %p, %x : tensor<64x!tt.ptr<f32>, #a>\n"));
  EXPECT_EQ(made.account.exactness, Exactness::exact) << "a loaded value is no product";
}

TEST(Simplify, a_product_that_comes_back_to_its_layout_may_be_contracted_below) {
  const auto made = rewritten(
      layouts(std::string(kLoad) +
              "    %m = arith.mulf %x, %x : tensor<64xf32, #a>\n"
              "    %y = ttg.convert_layout %m : tensor<64xf32, #a> -> tensor<64xf32, #b>\n"
              "    %z = ttg.convert_layout %y : tensor<64xf32, #b> -> tensor<64xf32, #a>\n"
              "    %w = arith.addf %z, %x : tensor<64xf32, #a>\n"
              "    tt.store %p, %w : tensor<64x!tt.ptr<f32>, #a>\n"),
      kPass);
  EXPECT_EQ(count(made.ttgir, "convert_layout"), 0U);
  EXPECT_EQ(made.account.exactness, Exactness::exact_in_ir);
}

TEST(Simplify, a_dead_conversion_of_a_product_was_a_use_of_it) {
  const auto made = rewritten(
      layouts(std::string(kLoad) +
              "    %m = arith.mulf %x, %x : tensor<64xf32, #a>\n"
              "    %y = ttg.convert_layout %m : tensor<64xf32, #a> -> tensor<64xf32, #b>\n"
              "    %w = arith.addf %m, %x : tensor<64xf32, #a>\n"
              "    tt.store %p, %w : tensor<64x!tt.ptr<f32>, #a>\n"),
      kPass);
  EXPECT_EQ(count(made.ttgir, "convert_layout"), 0U);
  EXPECT_EQ(made.account.exactness, Exactness::exact_in_ir);
}

TEST(Simplify, a_chain_of_layouts_is_one_conversion) {
  const auto made = rewritten(
      layouts(std::string(kLoad) + kThere +
              "    %z = ttg.convert_layout %y : tensor<64xf32, #b> -> tensor<64xf32, #c>\n"
              "    tt.store %q, %z : tensor<64x!tt.ptr<f32>, #c>\n"),
      kPass);
  EXPECT_EQ(count(made.ttgir, "convert_layout"), 1U);
  EXPECT_EQ(count(made.ttgir, "ttg.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #c>"),
            1U);
}

TEST(Simplify, a_chain_whose_middle_is_used_stays) {
  const auto text =
      layouts(std::string(kLoad) + kThere +
              "    %z = ttg.convert_layout %y : tensor<64xf32, #b> -> tensor<64xf32, #c>\n"
              "    tt.store %q, %z : tensor<64x!tt.ptr<f32>, #c>\n"
              "    %r = \"tt.reduce\"(%y) <{axis = 0 : i32}> ({\n    ^bb0(%i: f32, %j: f32):\n"
              "      %k = arith.addf %i, %j : f32\n      tt.reduce.return %k : f32\n"
              "    }) : (tensor<64xf32, #b>) -> f32\n"
              "    %rs = tt.splat %r : f32 -> tensor<64xf32, #c>\n"
              "    tt.store %q, %rs : tensor<64x!tt.ptr<f32>, #c>\n");
  const auto made = rewritten(text, kPass);
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "the layout between is used elsewhere too");
}

TEST(Simplify, constants_and_splats_are_made_in_the_layout_that_is_asked) {
  const auto made = rewritten(
      layouts("    %x = arith.constant dense<0xFF800000> : tensor<64xf32, #a>\n"
              "    %y = ttg.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #c>\n"
              "    tt.store %q, %y : tensor<64x!tt.ptr<f32>, #c>\n"
              "    %v = tt.splat %s : f32 -> tensor<64xf32, #a>\n"
              "    %w = ttg.convert_layout %v : tensor<64xf32, #a> -> tensor<64xf32, #c>\n"
              "    tt.store %q, %w : tensor<64x!tt.ptr<f32>, #c>\n"),
      kPass);
  EXPECT_EQ(made.ttgir, layouts("    %y = arith.constant dense<0xFF800000> : tensor<64xf32, #c>\n"
                                "    tt.store %q, %y : tensor<64x!tt.ptr<f32>, #c>\n"
                                "    %w = tt.splat %s : f32 -> tensor<64xf32, #c>\n"
                                "    tt.store %q, %w : tensor<64x!tt.ptr<f32>, #c>\n"));
}

TEST(Simplify, a_constant_of_many_values_keeps_its_layout) {
  const auto text =
      layouts("    %x = arith.constant dense<\"0x0000803F00000040\"> : tensor<2xf32, #a>\n"
              "    %y = ttg.convert_layout %x : tensor<2xf32, #a> -> tensor<2xf32, #c>\n"
              "    %r = \"tt.reduce\"(%y) <{axis = 0 : i32}> ({\n    ^bb0(%i: f32, %j: f32):\n"
              "      %k = arith.addf %i, %j : f32\n      tt.reduce.return %k : f32\n"
              "    }) : (tensor<2xf32, #c>) -> f32\n"
              "    %rs = tt.splat %r : f32 -> tensor<64xf32, #c>\n"
              "    tt.store %q, %rs : tensor<64x!tt.ptr<f32>, #c>\n");
  EXPECT_EQ(rewritten(text, kPass).ttgir, text);
}

TEST(Simplify, combiners_of_reductions_are_not_touched) {
  const auto text =
      layouts(std::string(kLoad) +
              "    %o = arith.constant 1.000000e+00 : f32\n"
              "    %r = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n    ^bb0(%i: f32, %j: f32):\n"
              "      %e = arith.constant 1.000000e+00 : f32\n"
              "      %k = arith.addf %i, %e : f32\n      tt.reduce.return %k : f32\n"
              "    }) : (tensor<64xf32, #a>) -> f32\n"
              "    %v = arith.addf %r, %o : f32\n"
              "    %rs = tt.splat %v : f32 -> tensor<64xf32, #c>\n"
              "    tt.store %q, %rs : tensor<64x!tt.ptr<f32>, #c>\n");
  EXPECT_EQ(rewritten(text, kPass).ttgir, text);
}

TEST(Simplify, a_second_run_changes_nothing) {
  for (const auto& name : ttgir_dumps()) {
    const auto once = rewritten(dump(name), kPass);
    const auto twice = rewritten(once.ttgir, kPass);
    EXPECT_EQ(twice.ttgir, once.ttgir) << name;
    EXPECT_TRUE(twice.account.changes.empty()) << name;
  }
  // What is left after masks have gone is more than the dumps have.
  for (const auto& [name, facts] :
       {std::pair{"ln_fwd.ttgir", facts_of({{"N", 8192}})},
        {"softmax.ttgir", facts_of({{"n_rows", 8}, {"n_cols", 1024}}, {4, 1, 1})},
        {"matmul.ttgir", facts_of({{"M", 256}, {"N", 256}, {"K", 256}}, {4, 1, 1})}}) {
    const auto once = rewritten(dump(name), R"(["drop-masks", "simplify"])", facts);
    EXPECT_GT(once.account.changes_of("simplify"), 0U) << name;
    EXPECT_EQ(rewritten(once.ttgir, kPass).ttgir, once.ttgir) << name;
  }
}

} // namespace
} // namespace hebe::rewrite
