#include "ttgir/memory_effects.hpp"
#include "ttgir/printer.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/verify.hpp"
#include "ttgir/view.hpp"

#include <gtest/gtest.h>

namespace hebe::ttgir {
namespace {

std::unique_ptr<Module>
read(const std::string& body,
     const std::string& arguments = "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %c: i1") {
  auto module = read_module("module {\n  tt.func public @f(" + arguments + ") {\n" + body +
                            "    tt.return\n  }\n}\n");
  EXPECT_TRUE(module) << to_text(module.error());
  return module ? *std::move(module) : nullptr;
}

Block& entry(Module& module) { return module.function()->regions[0]->front(); }
Operation& op_at(Module& module, std::size_t i) { return *entry(module).operations[i]; }

std::string body_of(const Module& module) {
  const auto text = print(module);
  const auto begin = text.find("{\n    ") + 2;
  return text.substr(begin, text.rfind("    tt.return") - begin);
}

constexpr const char* kTwoLoops = "    %zero = arith.constant 0 : i32\n"
                                  "    %one = arith.constant 1 : i32\n"
                                  "    scf.for %i = %zero to %one step %one  : i32 {\n"
                                  "      %x = tt.load %p : !tt.ptr<f32>\n"
                                  "      tt.store %q, %x : !tt.ptr<f32>\n"
                                  "    }\n"
                                  "    scf.for %i = %zero to %one step %one  : i32 {\n"
                                  "      %x = tt.load %p : !tt.ptr<f32>\n"
                                  "      tt.store %q, %x : !tt.ptr<f32>\n"
                                  "    }\n";

TEST(Edit, a_name_made_of_a_number_gets_a_letter_first) {
  const auto module = read("    %4 = arith.addi %n, %n : i32\n");
  auto& add = op_at(*module, 0);
  for (const auto* name : {"4_staged", "4", "x_4"}) {
    const Module::Draft draft{
        Op::arith_addi, {&add.result(), &add.result()}, {add.result().type}, {}, {}, name, {}};
    module->create(draft, entry(*module));
  }
  const auto text = body_of(*module);
  EXPECT_NE(text.find("%v4_staged = arith.addi"), std::string::npos) << text;
  EXPECT_EQ(text.find("%4_"), std::string::npos) << text;
  EXPECT_TRUE(read_module(print(*module))) << text;
}

TEST(Edit, inlining_two_loops_makes_their_equal_names_unique) {
  const auto module = read(kTwoLoops);
  for (int loop = 0; loop < 2; ++loop) {
    Operation* op = nullptr;
    for (Operation* each : entry(*module).operations)
      if (!op && each->is(Op::scf_for)) op = each;
    ASSERT_NE(op, nullptr);
    const auto view = For::of(*op);
    EXPECT_EQ(view->trip_count(), 1);
    // Without carried values the loop has no yield to take out; its last operation is kept.
    Operation& last = *view->body().front().operations.back();
    Value* induction[] = {&view->lower()};
    module->splice(view->body(), induction, *op);
    module->move(last.block
                     ? last
                     : *(last.block = op->block, op->block->operations.push_back(&last), &last),
                 *op->block, op);
    module->erase(*op);
  }
  EXPECT_EQ(body_of(*module),
            "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
            "    %x = tt.load %p : !tt.ptr<f32>\n    tt.store %q, %x : !tt.ptr<f32>\n"
            "    %x_1 = tt.load %p : !tt.ptr<f32>\n    tt.store %q, %x_1 : !tt.ptr<f32>\n");
  EXPECT_TRUE(verify(*module).empty());
}

TEST(Edit, a_numeric_name_that_is_taken_gets_a_letter_in_front) {
  const auto module = read("    %0 = arith.addi %n, %n : i32\n    %1 = arith.addi %0, %n : i32\n");
  module->clone(op_at(*module, 0), entry(*module), &op_at(*module, 1));
  EXPECT_NE(print(*module).find("    %v0_1 = arith.addi %n, %n : i32\n"), std::string::npos)
      << print(*module);
}

TEST(Edit, a_made_operation_prints_in_tritons_syntax) {
  const auto module =
      read("    %x = tt.load %p, %c : !tt.ptr<f32>\n    tt.store %q, %x : !tt.ptr<f32>\n");
  Value& x = op_at(*module, 0).result();
  auto& types = module->types();
  Operation& fma = module->create({.code = Op::math_fma,
                                   .operands = {&x, &x, &x},
                                   .results = {x.type},
                                   .attributes = {},
                                   .segments = {},
                                   .name = "y",
                                   .location = {}},
                                  entry(*module), &op_at(*module, 1));
  Operation& less = module->create({.code = Op::arith_cmpf,
                                    .operands = {&x, &fma.result()},
                                    .results = {types.get("i1")},
                                    .attributes = {{"predicate", "olt", Attribute::Place::syntax}},
                                    .segments = {},
                                    .name = "less",
                                    .location = "loc(#loc)"},
                                   entry(*module), &op_at(*module, 2));
  Operation& chosen = module->create({.code = Op::arith_select,
                                      .operands = {&less.result(), &x, &fma.result()},
                                      .results = {x.type},
                                      .attributes = {},
                                      .segments = {},
                                      .name = "z",
                                      .location = {}},
                                     entry(*module), &op_at(*module, 3));
  Value* p = &entry(*module).arguments[0];
  module->create({.code = Op::tt_store,
                  .operands = {p, &chosen.result(), &less.result()},
                  .results = {},
                  .attributes = {{"evict", "evict_last", Attribute::Place::syntax}},
                  .segments = {1, 1, 1},
                  .name = {},
                  .location = {}},
                 entry(*module));
  EXPECT_EQ(body_of(*module),
            "    %x = tt.load %p, %c : !tt.ptr<f32>\n    %y = math.fma %x, %x, %x : f32\n"
            "    %less = arith.cmpf olt, %x, %y : f32 loc(#loc)\n    %z = arith.select %less, %x, "
            "%y : f32\n"
            "    tt.store %q, %x : !tt.ptr<f32>\n"
            "    tt.store %p, %z, %less evictionPolicy = evict_last : !tt.ptr<f32>\n");
  EXPECT_TRUE(verify(*module).empty());
}

TEST(Edit, attributes_stay_sorted_and_can_go) {
  const auto module =
      read("    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n");
  module->set_attribute(op_at(*module, 0), {"note", "1 : i32"});
  module->set_attribute(op_at(*module, 0), {"end", "8 : i32"});
  EXPECT_EQ(
      body_of(*module),
      "    %r = tt.make_range {end = 8 : i32, note = 1 : i32, start = 0 : i32} : tensor<8xi32>\n");
  EXPECT_TRUE(module->remove_attribute(op_at(*module, 0), "note"));
  EXPECT_FALSE(module->remove_attribute(op_at(*module, 0), "note"));
  EXPECT_EQ(body_of(*module),
            "    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n");
}

TEST(Edit, a_cloned_loop_has_values_of_its_own) {
  const auto module = read(kTwoLoops);
  Operation& loop = op_at(*module, 2);
  Operation& copy = module->clone(loop, entry(*module), &loop);
  Operation& store = *copy.regions[0]->front().operations[1];
  EXPECT_EQ(store.operands[1], &copy.regions[0]->front().operations[0]->result());
  EXPECT_EQ(store.operands[0], &entry(*module).arguments[1]);
  EXPECT_TRUE(verify(*module).empty());
}

TEST(Verify, a_use_that_its_definition_does_not_reach_is_found) {
  const auto module = read("    %x = arith.addi %n, %n : i32\n    %y = arith.addi %x, %n : i32\n");
  module->move(op_at(*module, 0), entry(*module), nullptr);
  const auto findings = verify(*module);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].line, 4U);
  EXPECT_EQ(findings[0].what, "%x is not defined on every path that leads here");
}

TEST(Verify, a_value_of_one_branch_only_is_found_after_they_join) {
  const auto module = read_module(
      "module {\n  tt.func public @f(%c: i1, %n: i32) {\n    cf.cond_br %c, ^bb1, ^bb2\n  ^bb1:\n"
      "    %x = arith.addi %n, %n : i32\n    cf.br ^bb2\n  ^bb2:\n    %y = arith.addi %x, %n : "
      "i32\n    tt.return\n  }\n}\n");
  ASSERT_TRUE(module) << to_text(module.error());
  const auto findings = verify(**module);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].line, 8U);
}

TEST(Verify, types_that_do_not_fit_are_found) {
  const std::pair<const char*, const char*> table[] = {
      {"    %x = tt.load %p, %n : !tt.ptr<f32>\n", "the mask is i32"},
      {"    tt.store %p, %n : !tt.ptr<f32>\n", "the stored value is i32"},

      {"    tt.call @g(%n) : (i32) -> ()\n", "there is no function @g"},
      {"    tt.call @f(%n) : (i32) -> ()\n", "1 operands for 4 arguments"},
      {"    cf.br ^bb1(%n : i32)\n  ^bb1:\n", "1 values for 0 arguments of ^bb1"},
      {"    %r = scf.if %c -> (i32) {\n      scf.yield %n : i32\n    } else {\n      scf.yield %c "
       ": i1\n    }\n",
       "a value and its result differ"},
      {"    tt.return\n    %x = arith.addi %n, %n : i32\n", "operations follow in its block"},
  };
  for (const auto& [body, what] : table) {
    const auto module = read(body);
    ASSERT_NE(module, nullptr) << body;
    const auto findings = verify(*module);
    ASSERT_FALSE(findings.empty()) << body;
    EXPECT_NE(findings[0].what.find(what), std::string::npos) << findings[0].what;
  }
}

TEST(View, loads_and_stores_have_their_parts_in_both_forms) {
  const auto module =
      read("    %x = tt.load %p, %c cacheModifier = cg evictionPolicy = evict_first {isVolatile = "
           "true} : !tt.ptr<f32>\n"
           "    %y = \"tt.load\"(%q) <{cache = 2 : i32, evict = 3 : i32, isVolatile = false, "
           "operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f32\n");
  const auto own = Load::of(op_at(*module, 0)), generic = Load::of(op_at(*module, 1));
  ASSERT_TRUE(own && generic);
  EXPECT_EQ(own->mask()->name, "c");
  EXPECT_EQ(own->other(), nullptr);
  EXPECT_EQ(own->cache(), "cg");
  EXPECT_EQ(own->eviction(), "evict_first");
  EXPECT_TRUE(own->is_volatile());
  EXPECT_EQ(generic->mask(), nullptr);
  EXPECT_EQ(generic->cache(), "ca");
  EXPECT_EQ(generic->eviction(), "evict_last");
  EXPECT_FALSE(generic->is_volatile());
}

TEST(MemoryEffects, a_pointer_is_followed_to_its_arguments) {
  const auto module = read(
      "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
      "    %a = tt.addptr %p, %n : !tt.ptr<f32>, i32\n"
      "    %b = arith.select %c, %a, %q : !tt.ptr<f32>\n"
      "    %r = scf.for %i = %zero to %n step %one iter_args(%w = %p) -> (!tt.ptr<f32>)  : i32 {\n"
      "      %v = tt.addptr %w, %one : !tt.ptr<f32>, i32\n"
      "      scf.yield %v : !tt.ptr<f32>\n    }\n"
      "    %k = arith.extsi %n : i32 to i64\n"
      "    %m = tt.int_to_ptr %k : i64 -> !tt.ptr<f32>\n");
  EXPECT_EQ(origin_of(op_at(*module, 2).result()).arguments, std::set<std::uint32_t>{0});
  EXPECT_EQ(origin_of(op_at(*module, 3).result()).arguments, (std::set<std::uint32_t>{0, 1}));
  const auto carried = origin_of(op_at(*module, 4).result());
  EXPECT_EQ(carried.arguments, std::set<std::uint32_t>{0});
  EXPECT_FALSE(carried.anything);
  EXPECT_TRUE(origin_of(op_at(*module, 6).result()).anything);
}

TEST(MemoryEffects, of_a_loop_are_those_of_its_body_by_argument) {
  const auto module = read(kTwoLoops);
  const auto effects = effects_of(op_at(*module, 2));
  EXPECT_EQ(effects.reads.arguments, std::set<std::uint32_t>{0});
  EXPECT_EQ(effects.writes.arguments, std::set<std::uint32_t>{1});
  EXPECT_FALSE(effects.pure() || effects.unknown || effects.synchronises);
  EXPECT_FALSE(may_interfere(effects.reads, effects.writes, true));
  EXPECT_TRUE(may_interfere(effects.reads, effects.writes, false))
      << "arguments may be the same memory";
  EXPECT_TRUE(effects_of(op_at(*module, 0)).pure());
}

TEST(MemoryEffects, an_unknown_operation_may_do_anything) {
  const auto module = read("    new.op %p : !tt.ptr<f32>\n");
  const auto effects = effects_of(op_at(*module, 0));
  EXPECT_TRUE(effects.unknown && effects.reads.anything && effects.writes.anything);
}

} // namespace
} // namespace hebe::ttgir
