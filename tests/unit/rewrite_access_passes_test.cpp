// Facts about these passes on whole kernels: dumps of Triton 3.6, and what they compute afterwards.
#include "rewritten_kernel.hpp"

#include "kernel/dtype.hpp"

#include <fmt/format.h>

#include <random>

namespace hebe::rewrite {
namespace {
using namespace testing_passes;
using namespace ttgir::testing_kernels;

std::vector<std::string> pointers_of(const std::string& text) {
  std::vector<std::string> out;
  const auto module = module_of(text);
  for (const auto& each : module->function()->regions[0]->front().arguments)
    if (each.type->is(ttgir::Type::Kind::pointer)) out.emplace_back(each.name);
  return out;
}

TEST(AccessPasses, what_they_make_of_every_dump_is_read_and_verified_again) {
  const auto facts = facts_of(
      {{"N", 8192}, {"M", 8192}, {"K", 8192}, {"N_CTX", 8192}, {"n_rows", 4}, {"n_cols", 1024}},
      {4, 1, 1});
  for (const auto& name : ttgir_dumps()) {
    const auto text = dump(name);
    std::string hints;
    for (const auto& pointer : pointers_of(text))
      hints += fmt::format("{}\"{}\": {{\"evict\": \"evict_last\"}}", hints.empty() ? "" : ", ",
                           pointer);
    const auto hint =
        fmt::format(R"({{"pass": "hint", "loads": {{{}}}, "stores": {{{}}}}})", hints, hints);
    std::vector<std::string> lists = {R"(["drop-masks"])", R"(["stage-shared"])", R"(["simplify"])",
                                      R"(["drop-masks", "stage-shared", "simplify"])"};
    if (!hints.empty()) lists.push_back("[" + hint + "]");
    for (const auto& list : lists) {
      const auto made = rewritten(text, list.c_str(), facts);
      EXPECT_FALSE(made.ttgir.empty()) << name << " " << list;
      EXPECT_TRUE(made.account.changes.empty() == (made.ttgir == text)) << name << " " << list;
    }
  }
}

using F16 = std::vector<std::uint16_t>;
F16 random_halves(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  F16 x(n);
  for (auto& value : x) {
    std::byte bytes[2];
    kernel::store(normal(random), kernel::DType::fp16, bytes);
    std::memcpy(&value, bytes, 2);
  }
  return x;
}

struct LayerNorm {
  std::vector<std::uint32_t> mean = {0, 0}, rstd = {0, 0}; ///< bits: NaN is not equal to itself
  F16 y;
  bool operator==(const LayerNorm&) const = default;
};
LayerNorm layer_norm(const std::string& text, std::int32_t n) {
  const auto size = static_cast<std::size_t>(n);
  auto x = random_halves(2 * size, 1), w = random_halves(size, 2), b = random_halves(size, 3);
  x[7] = 0x7e00; // NaN in the first row
  LayerNorm out;
  out.y.assign(2 * size, 0x7e00);
  run(text,
      {buffer(x, false), buffer(out.y), buffer(w, false), buffer(b, false), buffer(out.mean),
       buffer(out.rstd), scalar(n), scalar(n), scalar(1e-5F)},
      {2, 1, 1});
  return out;
}

TEST(AccessPasses, layer_norm_computes_the_same_bits_also_of_nan) {
  const auto text = dump("ln_fwd.ttgir");
  const std::string hint = R"({"pass": "hint", "loads": {"X": {"evict": "evict_first"}, "W": )"
                           R"({"cache": "ca"}}, "stores": {"Y": {"cache": "cs"}}})";
  for (const auto n : {8192, 8191, 9001}) {
    const auto facts = facts_of({{"N", n}, {"stride", n}}, {2, 1, 1});
    const auto before = layer_norm(text, n);
    for (const auto& list :
         {std::string(R"(["drop-masks"])"), std::string(R"(["simplify"])"), "[" + hint + "]",
          "[\"drop-masks\", \"simplify\", \"stage-shared\", " + hint + "]"})
      EXPECT_TRUE(layer_norm(rewritten(text, list.c_str(), facts).ttgir, n) == before)
          << n << " " << list;
  }
}

TEST(AccessPasses, a_layer_norm_without_loops_reads_x_once_and_again_from_shared_memory) {
  const auto text = dump("ln_fwd.ttgir");
  const auto facts = facts_of({{"N", 8192}, {"stride", 8192}}, {2, 1, 1});
  const auto made = rewritten(text,
                              R"(["inline-single-trip-loops", "drop-masks",
                                  {"pass": "stage-shared", "arguments": ["X"]}, "simplify"])",
                              facts);
  EXPECT_EQ(count(made.ttgir, "tt.load"), 3U);
  EXPECT_EQ(count(made.ttgir, "ttg.local_load"), 2U);
  EXPECT_EQ(rewritten(made.ttgir, R"(["simplify"])").ttgir, made.ttgir);
  // Not the dump itself: contractions that the loops had are written down, which counts here.
  const auto inlined = rewritten(text, R"(["inline-single-trip-loops"])", facts);
  EXPECT_TRUE(layer_norm(made.ttgir, 8192) == layer_norm(inlined.ttgir, 8192));
}

} // namespace
} // namespace hebe::rewrite
