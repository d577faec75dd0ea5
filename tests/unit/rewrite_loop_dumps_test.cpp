// The loop and load passes on dumps of Triton 3.6: every list gives a module that is well formed,
// and the loads that a LayerNorm keeps.
#include "core/files.hpp"
#include "rewrite_kernels.hpp"

#include <array>

namespace hebe::rewrite {
namespace {

std::string dump(const std::string& name) {
  auto text = read_file(std::string(HEBE_TEST_DATA) + "/ttgir/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

Rewritten rewritten(const std::string& name, const char* passes, const LaunchFacts& facts) {
  const auto requests = requests_from(Json::parse(passes), "test");
  EXPECT_TRUE(requests);
  auto out = apply(dump(name), *requests, facts, name);
  EXPECT_TRUE(out) << name << passes << (out ? "" : to_text(out.error()));
  return out ? *std::move(out) : Rewritten{};
}

std::size_t loads_of_x(const std::string& text) {
  std::size_t n = 0;
  for (auto at = text.find("= tt.load %"); at != std::string::npos;
       at = text.find("= tt.load %", at + 1)) {
    const auto line = text.substr(at, text.find('\n', at) - at);
    n += line.find("%acc_15") != std::string::npos || line.find("%x_1") != std::string::npos;
  }
  return n;
}

TEST(LoopDumps, every_list_of_passes_gives_a_module_that_is_well_formed) {
  LaunchFacts facts;
  facts.scalars = {{"N", 8192},    {"M", 128},    {"K", 128},
                   {"N_CTX", 256}, {"n_rows", 4}, {"n_cols", 8192}};
  facts.grid = {4, 1, 1};
  facts.disjoint = true;
  constexpr std::array kLists = {
      "[\"inline-single-trip-loops\", \"reuse-loads\"]",
      "[\"unroll-loops\", \"reuse-loads\", \"remove-dead\"]",
      "[\"hoist-loads\", {\"pass\": \"reuse-loads\", \"convert\": true}]",
      "[\"pin-contractions\", \"remove-dead\"]"};
  for (const auto* name :
       {"attention_sm90", "attention_sm100", "ln_fwd", "matmul", "matmul_descriptors_sm90",
        "matmul_descriptors_sm100", "matmul_host_descriptors_sm100", "softmax"})
    for (const auto* list : kLists) {
      const auto out = rewritten(name + std::string(".ttgir"), list, facts);
      const auto again = ttgir::read_module(out.ttgir);
      ASSERT_TRUE(again) << name << list << to_text(again.error());
      EXPECT_TRUE(ttgir::verify(**again).empty()) << name << list;
    }
}

TEST(LoopDumps, a_layer_norm_of_one_tile_reads_its_row_once) {
  LaunchFacts facts;
  facts.scalars["N"] = 8192;
  facts.disjoint = true;
  EXPECT_EQ(loads_of_x(dump("ln_fwd.ttgir")), 3U);
  const auto straight =
      rewritten("ln_fwd.ttgir", "[\"inline-single-trip-loops\", \"reuse-loads\"]", facts);
  EXPECT_EQ(loads_of_x(straight.ttgir), 1U);
  EXPECT_EQ(straight.ttgir.find("scf.for"), std::string::npos);
  EXPECT_TRUE(straight.account.refused.empty());
  ASSERT_EQ(straight.account.contracts.size(), 2U);
  const auto hoisted = rewritten("ln_fwd.ttgir", "[\"hoist-loads\"]", facts);
  EXPECT_NE(hoisted.ttgir.find("scf.for"), std::string::npos);
  EXPECT_EQ(hoisted.account.contracts.size(), 2U);
}

TEST(LoopDumps, the_materialisation_policies_of_a_layer_norm_can_be_chosen) {
  LaunchFacts facts;
  facts.scalars["N"] = 8192;
  facts.disjoint = true;
  const std::pair<const char*, std::size_t> policies[] = {
      {"[]", 3}, {"[2]", 2}, {"[3]", 2}, {"[2, 3]", 1}};
  for (const auto& [only, loads] : policies) {
    const auto list = std::string("[\"inline-single-trip-loops\", {\"pass\": \"reuse-loads\", "
                                  "\"arguments\": [\"X\"], \"only\": ") +
                      only + "}]";
    EXPECT_EQ(loads_of_x(rewritten("ln_fwd.ttgir", list.c_str(), facts).ttgir), loads) << only;
  }
}

TEST(LoopDumps, a_layer_norm_of_another_width_keeps_its_loops_and_loads) {
  LaunchFacts facts;
  facts.scalars["N"] = 8193;
  facts.disjoint = true;
  const auto out =
      rewritten("ln_fwd.ttgir", "[\"inline-single-trip-loops\", \"hoist-loads\"]", facts);
  EXPECT_EQ(out.ttgir, dump("ln_fwd.ttgir"));
  EXPECT_EQ(out.account.refused.size(), 8U);
}

} // namespace
} // namespace hebe::rewrite
