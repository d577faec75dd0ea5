// Kernels made at random, rewritten by passes chosen at random: what the interpreter sees them
// write is the same before and after. Seeds are fixed, so that a failure is found again.
#include "rewrite/pass.hpp"

#include "ttgir/interpreter.hpp"
#include "ttgir/reader.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace hebe::rewrite {
namespace {

constexpr int kElements = 256;
constexpr const char* kFloats = "tensor<16xf32, #blocked>";

/// A kernel over three buffers and the scalar n, in SSA form, well formed by construction.
class KernelMaker {
public:
  explicit KernelMaker(unsigned seed) : random_(seed) {}

  std::string make() {
    line("%zero = arith.constant 0 : i32");
    line("%one = arith.constant 1 : i32");
    line("%sixteen = arith.constant 16 : i32");
    line(fmt::format("%f0 = arith.constant dense<0.000000e+00> : {}", kFloats));
    line(fmt::format("%f1 = arith.constant dense<1.500000e+00> : {}", kFloats));
    line("%range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #blocked>");
    line("%limit = tt.splat %n : i32 -> tensor<16xi32, #blocked>");
    line("%inside = arith.cmpi slt, %range, %limit : tensor<16xi32, #blocked>");
    line("%all = arith.constant dense<true> : tensor<16xi1, #blocked>");
    for (const char* argument : {"a", "b", "c"})
      line(fmt::format("%{0}s = tt.splat %{0} : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #blocked>",
                       argument));
    floats_ = {"f0", "f1"};
    statements(8, 0, "");
    store(""); // whatever was computed is seen
    return "#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = "
           "[1], "
           "order = [0]}>\n"
           "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 1 : i32, ttg.target "
           "= "
           "\"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32} {\n"
           "  tt.func public @f(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %n: i32) "
           "{\n" +
           text_ + "    tt.return\n  }\n}\n";
  }

private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string one_of(const std::vector<std::string>& names) {
    return names[static_cast<std::size_t>(pick(static_cast<int>(names.size())))];
  }
  std::string fresh() { return fmt::format("v{}", next_++); }
  void line(const std::string& s) { text_ += std::string(4 + indent_, ' ') + s + "\n"; }

  /// A pointer into `argument`: its first lane plus a small offset, and the loop's variable.
  std::string pointer(const std::string& argument, const std::string& induction) {
    std::string offsets = "range";
    if (!induction.empty() && pick(3) > 0) {
      const auto splat = fresh(), sum = fresh();
      line(fmt::format("%{} = tt.splat %{} : i32 -> tensor<16xi32, #blocked>", splat, induction));
      line(fmt::format("%{} = arith.addi %{}, %range : tensor<16xi32, #blocked>", sum, splat));
      offsets = sum;
    } else if (pick(3) == 0) {
      const auto constant = fresh(), sum = fresh();
      line(fmt::format("%{} = arith.constant dense<{}> : tensor<16xi32, #blocked>", constant,
                       8 * pick(4)));
      line(fmt::format("%{} = arith.addi %range, %{} : tensor<16xi32, #blocked>", sum, constant));
      offsets = sum;
    }
    const auto out = fresh();
    line(fmt::format("%{} = tt.addptr %{}s, %{} : tensor<16x!tt.ptr<f32>, #blocked>, "
                     "tensor<16xi32, #blocked>",
                     out, argument, offsets));
    return out;
  }

  void load(const std::string& induction) {
    const auto from = pointer(one_of({"a", "b", "c"}), induction), out = fresh();
    const auto how = pick(4);
    if (how == 0)
      line(fmt::format("%{} = tt.load %{} : tensor<16x!tt.ptr<f32>, #blocked>", out, from));
    else
      line(fmt::format("%{} = tt.load %{}, %{}, %{} : tensor<16x!tt.ptr<f32>, #blocked>", out, from,
                       how == 1 ? "all" : "inside", pick(2) == 0 ? "f0" : "f1"));
    floats_.push_back(out);
  }

  void store(const std::string& induction) {
    const auto to = pointer(one_of({"a", "b", "c"}), induction);
    line(fmt::format("tt.store %{}, %{}{} : tensor<16x!tt.ptr<f32>, #blocked>", to, floats_.back(),
                     pick(2) == 0 ? "" : ", %inside"));
  }

  void compute() {
    static const std::vector<std::string> ops = {"arith.addf", "arith.mulf", "arith.subf"};
    const auto out = fresh();
    if (pick(4) == 0)
      line(fmt::format("%{} = arith.select %{}, %{}, %{} : tensor<16xi1, #blocked>, {}", out,
                       pick(2) == 0 ? "inside" : "all", one_of(floats_), one_of(floats_), kFloats));
    else
      line(fmt::format("%{} = {} %{}, %{} : {}", out, one_of(ops), one_of(floats_), one_of(floats_),
                       kFloats));
    floats_.push_back(out);
  }

  void loop(int depth) {
    const auto out = fresh(), induction = fresh(), carried = fresh();
    const auto upper = one_of({"n", "sixteen", "one", "zero"});
    line(fmt::format(
        "%{} = scf.for %{} = %zero to %{} step %sixteen iter_args(%{} = %{}) -> ({})  : "
        "i32 {{",
        out, induction, upper, carried, one_of(floats_), kFloats));
    const auto outside = floats_;
    floats_.push_back(carried);
    indent_ += 2;
    statements(4, depth + 1, induction);
    line(fmt::format("scf.yield %{} : {}", floats_.back(), kFloats));
    indent_ -= 2;
    line("}");
    floats_ = outside;
    floats_.push_back(out);
  }

  void branch(int depth, const std::string& induction) {
    const auto condition = fresh();
    line(fmt::format("%{} = arith.cmpi slt, %n, %sixteen : i32", condition));
    line(fmt::format("scf.if %{} {{", condition));
    const auto outside = floats_;
    indent_ += 2;
    statements(2, depth + 1, induction);
    indent_ -= 2;
    line("}");
    floats_ = outside;
  }

  void statements(int most, int depth, const std::string& induction) {
    const int count = 1 + pick(most);
    for (int i = 0; i < count; ++i) {
      const int what = pick(12);
      if (what < 5)
        load(induction);
      else if (what < 8)
        compute();
      else if (what < 9)
        store(induction);
      else if (what < 11 && depth < 2)
        loop(depth);
      else if (depth < 2)
        branch(depth, induction);
    }
  }

  std::mt19937 random_;
  std::string text_;
  std::size_t indent_ = 0;
  int next_ = 0;
  std::vector<std::string> floats_;
};

std::vector<PassRequest> some_passes(std::mt19937& random) {
  const Json no_pin{{"pin", false}};
  const std::vector<PassRequest> all = {{"inline-single-trip-loops", no_pin},
                                        {"unroll-loops", no_pin},
                                        {"reuse-loads", no_pin},
                                        {"hoist-loads", no_pin},
                                        {"stage-shared", Json::object()},
                                        {"drop-masks", Json::object()},
                                        {"simplify", Json::object()},
                                        {"remove-dead", Json::object()}};
  std::vector<PassRequest> out;
  for (auto left = 1 + random() % 5; left > 0; --left) out.push_back(all[random() % all.size()]);
  return out;
}

/// The three buffers after one launch.
Result<std::vector<float>> written(const std::string& text, std::int32_t n) {
  HEBE_TRY(const auto module, ttgir::read_module(text));
  std::vector<float> memory(3 * kElements);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<float>((i * 37) % 101) / 8.0F - 5.0F;
  ttgir::Launch launch;
  for (std::size_t b = 0; b < 3; ++b)
    launch.arguments.emplace_back(ttgir::BufferArgument{
        std::as_writable_bytes(std::span(memory).subspan(b * kElements, kElements)), true, {}});
  launch.arguments.emplace_back(
      ttgir::ScalarArgument{ttgir::Scalar::i32, static_cast<std::uint32_t>(n)});
  HEBE_TRY(const auto outcome, ttgir::interpret(*module, {}, launch));
  return memory;
}

class RandomKernels : public testing::TestWithParam<unsigned> {};

TEST_P(RandomKernels, write_the_same_after_any_passes) {
  std::size_t changed = 0;
  for (unsigned i = 0; i < 100; ++i) {
    const unsigned seed = GetParam() * 1000 + i;
    std::mt19937 random(seed);
    const auto text = KernelMaker(seed).make();
    const std::int32_t n = std::vector<std::int32_t>{0, 5, 16, 32}[random() % 4];
    LaunchFacts facts;
    facts.disjoint = true;
    facts.grid = {1, 1, 1};
    facts.scalars["n"] = n;
    const auto passes = some_passes(random);
    const auto rewritten = apply(text, passes, facts);
    ASSERT_TRUE(rewritten) << seed << ": " << to_text(rewritten.error()) << "\n" << text;
    if (rewritten->ttgir == text) continue;
    ++changed;
    const auto before = written(text, n), after = written(rewritten->ttgir, n);
    ASSERT_TRUE(before) << seed << ": " << to_text(before.error()) << "\n" << text;
    ASSERT_TRUE(after) << seed << ": " << to_text(after.error()) << "\n" << rewritten->ttgir;
    ASSERT_EQ(std::memcmp(before->data(), after->data(), before->size() * sizeof(float)), 0)
        << "seed " << seed << ", n = " << n << ", passes " << to_json(passes).dump() << "\n"
        << text << "\nbecame\n"
        << rewritten->ttgir;
  }
  EXPECT_GT(changed, 50U); // most kernels have something to rewrite
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomKernels, testing::Range(0U, 30U));

} // namespace
} // namespace hebe::rewrite
