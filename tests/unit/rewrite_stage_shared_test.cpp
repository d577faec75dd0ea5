#include "rewritten_kernel.hpp"

#include <fmt/format.h>

namespace hebe::rewrite {
namespace {
using namespace testing_passes;
using namespace ttgir::testing_kernels;

/// Pointers %xp, %yp and a mask %m of 128 lanes; %xq is %xp in another layout.
std::string kernel(const std::string& body, const std::string& element = "f32",
                   const std::string& ctas = "1") {
  const auto tensor = [&](const std::string& of, const std::string& layout = "#a") {
    return "tensor<128x" + of + ", " + layout + ">";
  };
  const auto pointer = "!tt.ptr<" + element + ">";
  std::string text =
      "#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = "
      "[0]}>\n#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], "
      "order = [0]}>\nmodule attributes {\"ttg.num-ctas\" = " +
      ctas + " : i32, \"ttg.num-warps\" = 4 : i32} {\n  tt.func public @f(%X: " + pointer +
      ", %Y: " + pointer +
      ", %n: i32, %t: i1) {\n    %r = tt.make_range {end = 128 : i32, start "
      "= 0 : i32} : " +
      tensor("i32") + "\n    %s = tt.splat %n : i32 -> " + tensor("i32") +
      "\n    %m = arith.cmpi slt, %r, %s : " + tensor("i32") + "\n";
  for (const std::string name : {"x", "y"}) {
    const auto argument = name == "x" ? "%X" : "%Y";
    text += "    %" + name + "s = tt.splat " + argument + " : " + pointer + " -> " +
            tensor(pointer) + "\n    %" + name + "p = tt.addptr %" + name +
            "s, %r : " + tensor(pointer) + ", " + tensor("i32") + "\n";
  }
  return text + body + "    tt.return\n  }\n}\n";
}
const std::string kPointers = "tensor<128x!tt.ptr<f32>, #a>";
std::string load(const std::string& name, const std::string& rest = "") {
  return "    %" + name + " = tt.load %xp" + rest + " : " + kPointers + "\n";
}
std::string add(const std::string& name, const std::string& a, const std::string& b) {
  return "    %" + name + " = arith.addf %" + a + ", %" + b + " : tensor<128xf32, #a>\n";
}
std::string store(const std::string& value, const std::string& to = "yp") {
  return "    tt.store %" + to + ", %" + value + " : " + kPointers + "\n";
}
constexpr const char* kPass = R"([{"pass": "stage-shared", "arguments": ["X"]}])";
constexpr const char* kBuffer =
    "!ttg.memdesc<128xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = "
    "[0]}>, #ttg.shared_memory>";
const std::string kTwice = kernel(load("a") + load("b") + add("c", "a", "b") + store("c"));
const std::string kThrice = kernel(load("a") + load("b") + load("c") + add("d", "a", "b") +
                                   add("e", "d", "c") + store("e"));

std::vector<float> output_of(const std::string& text, std::int32_t n) {
  std::vector<float> x(128), y(128, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.37F;
  run(text, {buffer(x, true), buffer(y), scalar(n), ttgir::ScalarArgument{ttgir::Scalar::i1, 1}});
  y.insert(y.end(), x.begin(), x.end());
  return y;
}

void expect_left(const std::string& text, const std::string& reason,
                 const LaunchFacts& facts = facts_of({}), const char* passes = kPass) {
  const auto made = rewritten(text, passes, facts);
  EXPECT_EQ(made.ttgir, text);
  ASSERT_FALSE(made.account.refused.empty()) << reason;
  EXPECT_NE(made.account.refused.back().why.find(reason), std::string::npos)
      << made.account.refused.back().why;
}

TEST(StageShared, a_load_that_is_repeated_reads_the_buffer_of_the_first) {
  const auto made = rewritten(kTwice, kPass);
  EXPECT_EQ(made.ttgir, kernel(load("a") +
                               fmt::format("    %a_staged = ttg.local_alloc %a : "
                                           "(tensor<128xf32, #a>) -> {}\n"
                                           "    %b = ttg.local_load %a_staged : {} -> "
                                           "tensor<128xf32, #a>\n",
                                           kBuffer, kBuffer) +
                               add("c", "a", "b") + store("c")));
  EXPECT_EQ(made.account.exactness, Exactness::exact);
  EXPECT_TRUE(made.account.contracts.empty()) << "nothing is written between";
  ASSERT_EQ(made.account.changes.size(), 2U);
  EXPECT_EQ(made.account.changes[0].what,
            "tt.load %a of X is staged: 512 bytes, 512 of shared memory in all");
  EXPECT_EQ(output_of(made.ttgir, 128), output_of(kTwice, 128));
}

TEST(StageShared, two_repetitions_have_one_buffer_and_one_can_be_picked) {
  const auto both = rewritten(kThrice, kPass);
  EXPECT_EQ(count(both.ttgir, "ttg.local_alloc"), 1U);
  EXPECT_EQ(count(both.ttgir, "ttg.local_load"), 2U);
  const auto third =
      rewritten(kThrice, R"([{"pass": "stage-shared", "arguments": ["X"], "only": [3]}])");
  EXPECT_EQ(count(third.ttgir, "ttg.local_load"), 1U);
  EXPECT_EQ(count(third.ttgir, "%b = tt.load"), 1U) << third.ttgir;
  EXPECT_EQ(output_of(both.ttgir, 128), output_of(kThrice, 128));
  EXPECT_EQ(output_of(third.ttgir, 128), output_of(kThrice, 128));
  expect_left(kThrice, "nothing of it is read before", facts_of({}),
              R"([{"pass": "stage-shared", "only": [1]}])");
}

TEST(StageShared, masked_lanes_are_what_they_were) {
  const std::string masked = ", %m, %z";
  const auto text = kernel("    %z = arith.constant dense<5.000000e+00> : tensor<128xf32, #a>\n" +
                           load("a", masked) + load("b", masked) + add("c", "a", "b") + store("c"));
  const auto made = rewritten(text, kPass);
  EXPECT_EQ(count(made.ttgir, "ttg.local_load"), 1U);
  EXPECT_EQ(output_of(made.ttgir, 77), output_of(text, 77));
}

TEST(StageShared, a_store_between_to_the_same_argument_is_refused) {
  expect_left(kernel(load("a") + add("d", "a", "a") + store("d", "xp") + load("b") + store("b")),
              "stands between and may change what is read");
}

TEST(StageShared, a_store_between_to_another_argument_rests_on_disjoint_arguments) {
  const auto text = kernel(load("a") + store("a") + load("b") + store("b"));
  expect_left(text, "nothing says that arguments are different memory",
              facts_of({}, {0, 0, 0}, false));
  const auto made = rewritten(text, kPass, facts_of({}));
  EXPECT_EQ(count(made.ttgir, "ttg.local_load"), 1U);
  ASSERT_EQ(made.account.contracts.size(), 1U);
  EXPECT_EQ(made.account.contracts[0].kind, Contract::Kind::disjoint_arguments);
}

TEST(StageShared, an_atomic_between_that_orders_memory_is_refused) {
  expect_left(kernel(load("a") + "    %o = tt.atomic_rmw fadd, acq_rel, gpu, %yp, %a : (" +
                     kPointers + ", tensor<128xf32, #a>) -> tensor<128xf32, #a>\n" + load("b") +
                     store("b")),
              "another program's stores may be seen");
}

TEST(StageShared, volatile_loads_are_refused) {
  const std::string is_volatile = " {isVolatile = true}";
  expect_left(kernel(load("a") + load("b", is_volatile) + store("b") + store("a")),
              "it is volatile");
  expect_left(kernel(load("a", is_volatile) + load("b") + store("b") + store("a")),
              "tt.load %a is volatile");
}

TEST(StageShared, other_masks_and_others_are_refused) {
  const std::string zeros = "    %z = arith.constant dense<0.000000e+00> : tensor<128xf32, #a>\n"
                            "    %o = arith.constant dense<1.000000e+00> : tensor<128xf32, #a>\n";
  expect_left(kernel(load("a", ", %m") + load("b") + store("b") + store("a")),
              "tt.load %a has another mask");
  expect_left(kernel(load("a") + load("b", ", %m") + store("b") + store("a")),
              "tt.load %a has another mask");
  expect_left(
      kernel(zeros + load("a", ", %m, %z") + load("b", ", %m, %o") + store("b") + store("a")),
      "tt.load %a has another `other`");
}

TEST(StageShared, another_address_is_refused) {
  expect_left(kernel(load("a") + "    %q = tt.addptr %xp, %r : " + kPointers +
                     ", tensor<128xi32, #a>\n    %b = tt.load %q : " + kPointers + "\n" +
                     store("b") + store("a")),
              "no earlier load reads the same");
}

TEST(StageShared, a_load_of_one_branch_does_not_stand_for_one_behind_it) {
  expect_left(kernel("    scf.if %t {\n  " + load("a") + "  " + store("a") + "    }\n" + load("b") +
                     store("b")),
              "is not on every path to it");
}

TEST(StageShared, a_loop_that_stores_to_what_it_reads_is_refused) {
  const auto loop = [](const std::string& to) {
    return kernel("    %z = arith.constant 0 : i32\n    %o = arith.constant 1 : i32\n" + load("a") +
                  "    scf.for %i = %z to %n step %o  : i32 {\n  " + load("b") + "  " +
                  add("c", "b", "a") + "  " + store("c", to) + "    }\n");
  };
  expect_left(loop("xp"), "stands between and may change what is read");
  const auto made = rewritten(loop("yp"), kPass, facts_of({}));
  EXPECT_EQ(count(made.ttgir, "ttg.local_load"), 1U);
  EXPECT_EQ(output_of(made.ttgir, 3), output_of(loop("yp"), 3));
}

TEST(StageShared, a_contraction_in_a_loop_that_a_load_leaves_is_written_down) {
  const auto text = kernel(
      "    %z = arith.constant 0 : i32\n    %o = arith.constant 1 : i32\n" + load("a") +
      "    %w = scf.for %i = %z to %n step %o iter_args(%g = %a) -> (tensor<128xf32, #a>)  : i32 "
      "{\n  " +
      load("b") + "      %d = arith.mulf %b, %b : tensor<128xf32, #a>\n  " + add("c", "g", "d") +
      "      scf.yield %c : tensor<128xf32, #a>\n    }\n" + store("w"));
  const auto made = rewritten(text, kPass);
  EXPECT_EQ(count(made.ttgir, "math.fma %b, %b, %g"), 1U) << made.ttgir;
  EXPECT_EQ(made.account.exactness, Exactness::exact_in_ir)
      << "LLVM may move a load of shared memory ahead of the loop";
}

TEST(StageShared, two_repetitions_are_exact_where_there_is_no_product) {
  EXPECT_EQ(rewritten(kThrice, kPass).account.exactness, Exactness::exact);
  const auto text = kernel(load("a") + load("b") + load("c") +
                           "    %d = arith.mulf %b, %c : tensor<128xf32, #a>\n" + store("d"));
  EXPECT_EQ(rewritten(text, kPass).account.exactness, Exactness::exact_in_ir)
      << "LLVM may merge two loads of shared memory";
  EXPECT_EQ(rewritten(text, R"([{"pass": "stage-shared", "only": [2]}])").account.exactness,
            Exactness::exact);
}

TEST(StageShared, other_attributes_are_refused) {
  expect_left(kernel(load("a") + load("b", " {note = 1 : i32}") + store("b") + store("a")),
              "tt.load %a has other attributes");
}

TEST(StageShared, the_buffer_is_read_in_the_layout_that_is_asked) {
  const auto text =
      kernel(load("a") + "    %q = ttg.convert_layout %xp : " + kPointers +
             " -> tensor<128x!tt.ptr<f32>, #b>\n"
             "    %b = tt.load %q : tensor<128x!tt.ptr<f32>, #b>\n"
             "    %c = ttg.convert_layout %b : tensor<128xf32, #b> -> tensor<128xf32, #a>\n" +
             add("d", "a", "c") + store("d"));
  const auto made = rewritten(text, kPass);
  EXPECT_EQ(count(made.ttgir, " -> tensor<128xf32, #b>\n"), 1U) << made.ttgir;
  EXPECT_EQ(output_of(made.ttgir, 0), output_of(text, 0));
}

TEST(StageShared, one_byte_over_the_limit_is_refused) {
  EXPECT_EQ(count(rewritten(kTwice, R"([{"pass": "stage-shared", "limit": 512}])").ttgir,
                  "ttg.local_load"),
            1U);
  expect_left(kTwice, "512 bytes more would be 512 of shared memory, and the limit is 511",
              facts_of({}), R"([{"pass": "stage-shared", "limit": 511}])");
}

TEST(StageShared, buffers_that_the_kernel_has_count_towards_the_limit) {
  const auto text =
      kernel("    %k = ttg.local_alloc : () -> !ttg.memdesc<100xi64, #ttg.swizzled_shared<{vec = "
             "1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>\n" +
             load("a") + load("b") + add("c", "a", "b") + store("c"));
  expect_left(text, "would be 1312 of shared memory", facts_of({}),
              R"([{"pass": "stage-shared", "limit": 1311}])");
  EXPECT_EQ(rewritten(text, R"([{"pass": "stage-shared", "limit": 1312}])").account.changes.size(),
            2U);
}

TEST(StageShared, scalars_stay_in_registers) {
  expect_left(kernel("    %a = tt.load %X : !tt.ptr<f32>\n    %b = tt.load %X : !tt.ptr<f32>\n"
                     "    tt.store %Y, %a : !tt.ptr<f32>\n    tt.store %Y, %b : !tt.ptr<f32>\n"),
              "it is in a register");
}

TEST(StageShared, bits_are_no_bytes) {
  expect_left(kernel("    %a = tt.load %xp : tensor<128x!tt.ptr<i1>, #a>\n"
                     "    %b = tt.load %xp : tensor<128x!tt.ptr<i1>, #a>\n"
                     "    tt.store %yp, %a : tensor<128x!tt.ptr<i1>, #a>\n"
                     "    tt.store %yp, %b : tensor<128x!tt.ptr<i1>, #a>\n",
                     "i1"),
              "not whole bytes");
}

TEST(StageShared, clusters_of_blocks_are_refused) {
  expect_left(kernel(load("a") + load("b") + store("a") + store("b"), "f32", "2"), "clusters");
}

TEST(StageShared, wrong_options_are_refused) {
  for (const auto& [passes, what] :
       {std::pair{R"([{"pass": "stage-shared", "arguments": ["Z"]}])", "Z"},
        {R"([{"pass": "stage-shared", "arguments": "X"}])", "a list of names"},
        {R"([{"pass": "stage-shared", "only": [0]}])", "whole numbers from 1"},
        {R"([{"pass": "stage-shared", "limit": -1}])", "limit"}}) {
    const auto said = refusal(kTwice, passes);
    EXPECT_TRUE(said.starts_with("bad_spec: ")) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  }
}

} // namespace
} // namespace hebe::rewrite
