#include "ttgir/printer.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/verify.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace hebe::ttgir {
namespace {

std::string in_module(const std::string& body) {
  return "module {\n  tt.func public @f(%p: !tt.ptr<f32>, %n: i32, %c: i1) {\n" + body +
         "    tt.return\n  }\n}\n";
}

struct Wrong {
  const char* name;
  std::string text;
  const char* where; ///< line:column
  const char* expected;
};

class WrongText : public testing::TestWithParam<Wrong> {};

TEST_P(WrongText, is_refused_with_line_column_and_what_was_expected) {
  const auto module = read_module(GetParam().text, {false, "k.ttir"});
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, RefusalCode::bad_ir);
  EXPECT_EQ(module.error().where, std::string("k.ttir:") + GetParam().where);
  EXPECT_NE(module.error().what.find(GetParam().expected), std::string::npos)
      << module.error().what;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongText,
    testing::Values(
        Wrong{"empty", "", "1:1", "expected `module`"},
        Wrong{"not_ir", "hello", "1:1", "expected `module`"},
        Wrong{"cut_off", "module {\n  tt.func public @f() {\n", "3:1",
              "`}`, the end of a region, found the end of the text"},
        Wrong{"missing_comma", in_module("    %x = arith.addi %n %n : i32\n"), "3:24",
              "expected `,`, found `%n`"},
        Wrong{"missing_type", in_module("    %x = arith.addi %n, %n : \n"), "3:30",
              "a type, found the end of the line"},
        Wrong{"wrong_word", in_module("    %x = arith.extsi %n : i32 as i64\n"), "3:31",
              "expected `to`, found `as`"},
        Wrong{"undefined_value", in_module("    %x = arith.addi %n, %y : i32\n"), "3:25",
              "a value that is defined"},
        Wrong{"defined_twice",
              in_module("    %x = arith.addi %n, %n : i32\n    %x = arith.addi %n, %n : i32\n"),
              "4:5", "a new name: %x is defined on line 3"},
        Wrong{"twice_in_one", in_module("    %x, %x = tt.split %n : i32 -> i32\n"), "3:14",
              "%x is there twice"},
        Wrong{"shadowed", in_module("    scf.if %c {\n      %n = arith.addi %n, %n : i32\n    }\n"),
              "4:7", "a new name: %n"},
        Wrong{"seen_out_of_its_region",
              in_module("    scf.if %c {\n      %x = arith.addi %n, %n : i32\n    }\n    %y = "
                        "arith.addi %x, %x : i32\n"),
              "6:21", "a value that is defined"},
        Wrong{"type_of_use", in_module("    %x = arith.addi %n, %n : i64\n"), "3:10",
              "operand %n of arith.addi to be i64, as written; line 2 defines it as i32"},
        Wrong{"load_of_no_pointer", in_module("    %x = tt.load %n : i32\n"), "3:10",
              "a pointer type"},
        Wrong{"too_few_results", in_module("    %x, %y = arith.addi %n, %n : i32, i32\n"), "3:37",
              "an operation"},
        Wrong{"result_of_a_store", in_module("    %x = tt.store %p, %n : !tt.ptr<f32>\n"), "3:10",
              "0 named results"},
        Wrong{"number_of_types",
              in_module("    %x = tt.extern_elementwise %n, %n {libname = \"\"} : (i32) -> i32\n"),
              "3:57", "2 operand types"},
        Wrong{"open_string", in_module("    tt.print \"abc : %n : i32\n"), "3:14",
              "the end of the string, on its line"},
        Wrong{"open_dictionary",
              in_module("    %x = tt.make_range {end = 8 : i32 : tensor<8xi32>\n"), "4:5", "`}`"},
        Wrong{"open_location", in_module("    tt.return loc(#loc\n"), "3:18",
              "the closing bracket of `loc(`"},
        Wrong{"stray_bracket", in_module("    my.op %n ) : i32\n"), "3:14",
              "an opening bracket before this one"},
        Wrong{"missing_result_number",
              in_module("    %x:2 = tt.split %n : i32 -> i32\n    %y = arith.addi %x, %x : i32\n"),
              "4:21", "one of the results of %x, as %x#0"},
        Wrong{
            "no_such_result",
            in_module("    %x:2 = tt.split %n : i32 -> i32\n    %y = arith.addi %x#2, %n : i32\n"),
            "4:21", "a result that %x has"},
        Wrong{"argument_without_a_region", in_module("    my.op %i = 3 : i32\n"), "3:11",
              "a value that is defined"},
        Wrong{"result_without_a_name", in_module("    arith.addi %n, %n : i32\n"), "3:5",
              "1 named results"},
        Wrong{"condition_is_no_i1", in_module("    scf.if %n {\n    }\n"), "3:5",
              "operand %n of scf.if to be i1"},
        Wrong{"declared_arguments_with_a_body",
              "module {\n  tt.func public @f( loc(\xeb: i32)) {\n    tt.return\n  }\n}\n", "2:25",
              "`)`, found `(`"},
        Wrong{"types_with_a_body", "module {\n  tt.func public @f(i32) {\n    tt.return\n  }\n}\n",
              "2:26", "no body, or arguments with names"},
        Wrong{"unknown_block", in_module("    cf.br ^bb7\n"), "5:3",
              "a block ^bb7, which a branch names"},
        Wrong{"block_twice", in_module("    cf.br ^bb1\n  ^bb1:\n    cf.br ^bb1\n  ^bb1:\n"), "6:4",
              "a new name: ^bb1"},
        Wrong{"aliases_in_a_circle", "#a = #b\n#b = #a\nmodule {\n}\n", "1:1", "goes in a circle"},
        Wrong{"alias_of_itself", "#a = #a\nmodule {\n}\n", "1:1", "goes in a circle"},
        Wrong{"alias_twice", "#a = 1\n#a = 2\nmodule {\n}\n", "2:1", "a new name: #a"},
        Wrong{"text_behind_the_module", "module {\n}\nmodule {\n}\n", "3:1",
              "an alias (`#name = …`) or the end"},
        Wrong{"invalid_utf8", "module {\n  \xff\xfe\n}\n", "2:3", "found the byte 0xff"},
        Wrong{"a_nul", std::string("module {\n  a\0b\n}\n", 16), "2:4",
              "text (outside strings: printable ASCII)"},
        Wrong{"loop_types",
              in_module("    %r = scf.for %i = %n to %n step %n iter_args(%a = %n) -> (i32, i32)  "
                        ": i32 {\n    }\n"),
              "3:72", "1 types, one for each of iter_args"}),
    [](const auto& test) { return test.param.name; });

TEST(Reader, every_dump_prints_byte_identically_from_its_structure_too) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEBE_TEST_DATA "/ttgir")) {
    const auto text = read_file(entry.path());
    ASSERT_TRUE(text);
    EXPECT_EQ(text->find("(\"/"), std::string::npos)
        << "a path of some machine in " << entry.path();
    const auto module = read_module(*text, {false, entry.path().string()});
    ASSERT_TRUE(module) << to_text(module.error());
    EXPECT_EQ(print(**module), *text);
    EXPECT_EQ(print_structure(**module), *text);
    EXPECT_TRUE(verify(**module).empty()) << verify(**module)[0].what;
    int carried = 0;
    walk((*module)->top(), [&](Operation& op) { carried += op.form == Operation::Form::opaque; });
    EXPECT_EQ(carried, 0) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 6);
}

TEST(Reader, an_unknown_operation_keeps_its_text_operands_and_regions) {
  const auto text =
      in_module("    %x = arith.addi %n, %n : i32\n"
                "    %y:2 = new.op %x, <odd [%n]> {a = \"%not_a_value }\"} : i32 -> (i32, f32)\n"
                "    new.loop %i = %x to %n {\n"
                "      %z = arith.addi %i, %y#0 : i32\n"
                "      new.if %c {\n"
                "        new.end\n"
                "      } else {\n"
                "        new.end %z : i32\n"
                "      } {b = 1 : i32}\n"
                "    } loc(\"here\")\n");
  const auto module = read_module(text);
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ(print_structure(**module), text);
  auto& body = (*module)->function()->regions[0]->front().operations;
  Operation& opaque = *body[1];
  EXPECT_EQ(opaque.code, Op::unknown);
  ASSERT_EQ(opaque.operands.size(), 2U);
  EXPECT_EQ(opaque.operands[0]->name, "x");
  EXPECT_EQ(opaque.operands[1]->name, "n");
  EXPECT_EQ(opaque.result(1).type->text, "f32");
  Operation& loop = *body[2];
  ASSERT_EQ(loop.regions.size(), 1U);
  EXPECT_EQ(loop.regions[0]->front().arguments[0].name, "i");
  EXPECT_EQ(loop.regions[0]->front().operations[1]->regions.size(), 2U);
}

TEST(Reader, an_operand_of_an_unknown_operation_follows_an_edit) {
  const auto module =
      read_module(in_module("    %x = arith.addi %n, %n : i32\n    new.op [%x] %x : i32\n"));
  ASSERT_TRUE(module);
  auto& function = *(*module)->function();
  Value& n = function.regions[0]->front().arguments[1];
  (*module)->replace_all_uses(function.regions[0]->front().operations[0]->result(), n);
  EXPECT_NE(print(**module).find("    new.op [%n] %n : i32\n"), std::string::npos)
      << print(**module);
}

TEST(Reader, a_known_operation_in_another_form_is_refused_or_carried_with_the_reason) {
  const auto text =
      in_module("    %x = tt.load %p gently : !tt.ptr<f32>\n    tt.store %p, %x : !tt.ptr<f32>\n");
  EXPECT_FALSE(read_module(text));
  const auto module = read_module(text, {true, "k.ttir"});
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ(print_structure(**module), text);
  const Operation& op = *(*module)->function()->regions[0]->front().operations[0];
  EXPECT_EQ(op.code, Op::tt_load);
  EXPECT_EQ(op.form, Operation::Form::opaque);
  EXPECT_EQ(op.unread, "k.ttir:3: expected `:`");
}

TEST(Reader, a_declared_function_has_types_only) {
  const auto module =
      read_module("module {\n  tt.func private @g( i32 {tt.divisibility = 16 : i32} loc(\"x\"), "
                  "!tt.ptr<f32> ) -> f32 attributes {noinline = true}\n"
                  "  tt.func private @g2(i1)\n}\n");
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ(print_structure(**module),
            "module {\n  tt.func private @g(i32 {tt.divisibility = 16 : i32} loc(\"x\"), "
            "!tt.ptr<f32>) -> f32 attributes {noinline = true}\n"
            "  tt.func private @g2(i1)\n}\n");
}

TEST(Reader, a_dictionary_may_hold_the_names_of_the_syntax) {
  const std::string text =
      "module attributes {cache = 1 : i32, sym_name = 32 : i32} {\n"
      "  tt.func @f(%p: !tt.ptr<f32>) attributes {results = 1 : i32, sym_visibility = \"no\"} {\n"
      "    %x = tt.load %p {cache = 2 : i32, token} : !tt.ptr<f32>\n"
      "    %y = arith.addf %x, %x {fastmath = 3 : i32} : f32\n    tt.return\n  }\n}\n";
  const auto module = read_module(text);
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ(print_structure(**module), text);
}

TEST(Reader, the_generic_form_is_the_same_operation) {
  const auto module =
      read_module(in_module("    %x = \"tt.load\"(%p, %c) <{boundaryCheck = array<i32>, cache = 1 "
                            ": i32, evict = 3 : i32, isVolatile = false, operandSegmentSizes = "
                            "array<i32: 1, 1, 0>}> : (!tt.ptr<f32>, i1) -> f32\n"));
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ((*module)->function()->regions[0]->front().operations[0]->code, Op::tt_load);
  EXPECT_EQ(print_structure(**module), (*module)->source());
}

TEST(Reader, a_use_may_stand_before_its_definition_in_another_block) {
  const auto text = in_module(
      "    cf.br ^bb2\n  ^bb1:  // pred: ^bb2\n    %y = arith.addi %x, %x : i32\n    cf.br ^bb3\n"
      "  ^bb2:  // pred: ^bb0\n    %x = arith.addi %n, %n : i32\n    cf.br ^bb1\n  ^bb3:  // pred: "
      "^bb1\n");
  const auto module = read_module(text);
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ(print_structure(**module), text);
  EXPECT_TRUE(verify(**module).empty());
}

TEST(Reader, comments_and_blank_lines_are_kept_where_nothing_is_edited) {
  const std::string text =
      "// by hand\nmodule {\n\n  tt.func @f() { // nothing\n    tt.return\n  }\n}\n// end\n";
  const auto module = read_module(text);
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ(print(**module), text);
}

TEST(Reader, nesting_has_a_limit_and_does_not_overflow_the_stack) {
  std::string deep = "module {\n  tt.func public @f(%c: i1) {\n";
  for (int i = 0; i < 100000; ++i) deep += "scf.if %c {\n";
  const auto module = read_module(deep);
  ASSERT_FALSE(module);
  EXPECT_NE(module.error().what.find("nested at most 200 deep"), std::string::npos);
  EXPECT_FALSE(read_module("module {\n" + std::string(1'000'000, '(')));
  EXPECT_FALSE(read_module("module {\n %x = a : " + std::string(1'000'000, '<')));
  EXPECT_FALSE(read_module("module attributes {a = " + std::string(1'000'000, '[')));
}

TEST(Reader, a_very_long_line_is_read_like_any_other) {
  std::string line =
      "    %x = arith.constant {a = \"" + std::string(20'000'000, 'y') + "\"} 1 : i32\n";
  const auto module = read_module(in_module(line));
  ASSERT_TRUE(module) << to_text(module.error());
  EXPECT_EQ(print_structure(**module), (*module)->source());
}

TEST(Reader, no_prefix_of_a_dump_crashes_and_only_whole_ones_are_read) {
  const auto text = read_file(HEBE_TEST_DATA "/ttgir/softmax.ttgir");
  ASSERT_TRUE(text);
  const auto closing = text->find("\n} loc(#loc)");
  for (std::size_t n = 0; n < closing; n += 7) EXPECT_FALSE(read_module(text->substr(0, n))) << n;
}

} // namespace
} // namespace hebe::ttgir
