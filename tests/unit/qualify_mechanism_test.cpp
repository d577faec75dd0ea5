// Facts about a kernel's mechanism: LayerNorm's access table, its opportunities in order, the table
// for people; and what is said where a part is not there.
#include "interpreted_kernel.hpp"
#include "qualify/mechanism.hpp"

#include "core/files.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hebe::qualify {
namespace {
using namespace ttgir::testing_kernels;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string stored(const std::string& name) {
  auto text = read_file(std::string(HEBE_TEST_DATA) + "/" + name);
  EXPECT_TRUE(text);
  return text ? *text : "";
}

kernel::LaunchSpec layer_norm_launch(std::uint32_t rows) {
  kernel::LaunchSpec launch;
  launch.name = launch.entry = "ln_fwd";
  launch.arch = 90;
  launch.grid = {rows, 1, 1};
  launch.num_warps = 8;
  launch.shared_bytes = 32;
  for (const char* name : {"X", "Y", "W", "B", "Mean", "Rstd", "stride", "N", "eps"}) {
    kernel::Argument argument;
    argument.name = name;
    argument.is_buffer = launch.arguments.size() < 6;
    launch.arguments.push_back(std::move(argument));
  }
  return launch;
}

ttgir::Counts layer_norm_counts(std::uint32_t rows, std::uint32_t columns) {
  const std::size_t n = std::size_t{rows} * columns;
  std::vector<std::uint16_t> x(n), y(n), w(columns), b(columns);
  std::vector<float> mean(rows), rstd(rows);
  const auto wide = static_cast<std::int32_t>(columns);
  const auto outcome =
      launch(stored("ttgir/ln_fwd.ttgir"),
             {buffer(x, false), buffer(y), buffer(w, false), buffer(b, false), buffer(mean),
              buffer(rstd), scalar(wide), scalar(wide), scalar(1e-5F)},
             {rows, 1, 1}, 1, {.count = true, .poison_undefined = false, .rereads = true});
  EXPECT_TRUE(outcome) << to_text(outcome.error());
  return *outcome->counts;
}

Json layer_norm(std::uint32_t columns) {
  return mechanism_of(layer_norm_launch(4),
                      {stored("ttgir/ln_fwd.ttgir"), stored("mechanism/ln_fwd.ptx"),
                       stored("mechanism/ln_fwd.sass")},
                      {{"registers", 58}, {"stack_bytes", 0}, {"local_bytes", 0}},
                      layer_norm_counts(4, columns));
}

AccessTable table_of(const std::string& text) {
  const auto module = module_of(text);
  return access_table(*module, *module->function());
}

TEST(AccessTable, layer_norm_has_five_loads_and_three_stores) {
  const auto t = table_of(stored("ttgir/ln_fwd.ttgir"));
  ASSERT_EQ(t.rows.size(), 8U);
  const auto& first = t.rows[0];
  EXPECT_EQ(first.argument, "X");
  EXPECT_EQ(first.element, "f16");
  EXPECT_EQ(first.bytes, 16384U);
  EXPECT_EQ(first.vector_bytes, 16U);
  EXPECT_TRUE(first.masked);
  EXPECT_EQ(first.depth, 1U);
  EXPECT_NE(first.loop_line, t.rows[1].loop_line);
  EXPECT_EQ(t.rows[2].argument, "Mean");
  EXPECT_EQ(t.rows[2].bytes, 4U);
  EXPECT_EQ(t.rows[2].depth, 0U);
  EXPECT_FALSE(t.rows[2].masked);
  EXPECT_EQ(t.rows[4].argument, "W");
  EXPECT_EQ(t.rows[7].argument, "Y");
  EXPECT_EQ(t.rows[7].kind, TableAccess::Kind::store);
  EXPECT_EQ(t.layout_conversions, 0U);
}

TEST(AccessTable, hints_volatility_and_copies) {
  const auto t = table_of(
      function("%p: !tt.ptr<f32>",
               "    %a = tt.load %p cacheModifier = cg evictionPolicy = evict_first "
               "{isVolatile = true} : !tt.ptr<f32>\n    tt.store %p, %a : !tt.ptr<f32>\n"));
  ASSERT_EQ(t.rows.size(), 2U);
  EXPECT_EQ(t.rows[0].cache, "cg");
  EXPECT_EQ(t.rows[0].eviction, "evict_first");
  EXPECT_TRUE(t.rows[0].is_volatile);
  EXPECT_EQ(t.rows[1].cache, "");
  std::size_t copies = 0;
  for (const auto& row : table_of(stored("ttgir/matmul.ttgir")).rows)
    if (row.kind == TableAccess::Kind::async_copy) {
      ++copies;
      EXPECT_EQ(row.vector_bytes, 16U);
      EXPECT_TRUE(row.argument == "A" || row.argument == "B" || row.argument == "a_ptr")
          << row.argument;
    }
  EXPECT_EQ(copies % 2, 0U);
  EXPECT_GT(copies, 0U);
  for (const auto& row : table_of(stored("ttgir/matmul_descriptors_sm90.ttgir")).rows)
    EXPECT_NE(row.argument, "?") << row.op << " line " << row.line;
}

TEST(Mechanism, layer_norm_of_one_tile_keeps_x_in_registers) {
  const auto json = layer_norm(8192);
  const auto& best = json.at("opportunities").at(0);
  EXPECT_EQ(best.at("kind"), "reread");
  EXPECT_EQ(best.at("argument"), "X");
  EXPECT_EQ(best.at("passes"), Json({"inline-single-trip-loops", "reuse-loads"}));
  EXPECT_EQ(best.at("bytes_saved"), 2.0 * 4 * 16384);
  // X is loaded three times, W, B once, Y stored: 6 parts of 16 KiB a row, and two floats.
  EXPECT_NEAR(best.at("share_of_traffic").get<double>(), 2.0 / 6, 1e-3);
  const auto& x = json.at("by_argument").at(0);
  EXPECT_EQ(x.at("ttgir").at("loads"), 3);
  EXPECT_EQ(x.at("ptx").at("loads"), 12);
  EXPECT_EQ(x.at("sass").at("loads"), 12);
  EXPECT_EQ(x.at("bytes").at("again"), 2 * 4 * 16384);
  EXPECT_EQ(json.at("occupancy").at("warps"), 32);
}

std::vector<std::string> kinds(const Json& mechanism) {
  std::vector<std::string> all;
  for (const auto& each : mechanism.at("opportunities")) all.push_back(each.at("kind"));
  return all;
}

TEST(Mechanism, masks_that_were_all_true_are_told_only_where_they_were) {
  EXPECT_THAT(kinds(layer_norm(8192)), ::testing::Contains("true_masks"));
  EXPECT_THAT(kinds(layer_norm(8000)), ::testing::Not(::testing::Contains("true_masks")));
}

TEST(Mechanism, a_mask_over_two_arguments_is_true_for_both_together) {
  const auto kernel =
      function("%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32",
               "    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
               "    %half = arith.constant dense<8> : tensor<16xi32>\n"
               "    %low = arith.cmpi slt, %i, %half : tensor<16xi32>\n"
               "    %ns = tt.splat %n : i32 -> tensor<16xi32>\n"
               "    %m = arith.cmpi slt, %i, %ns : tensor<16xi32>\n"
               "    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>\n"
               "    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>\n"
               "    %s = arith.select %low, %ps, %qs : tensor<16xi1>, tensor<16x!tt.ptr<f32>>\n"
               "    %a = tt.addptr %s, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>\n"
               "    %x = tt.load %a, %m : tensor<16x!tt.ptr<f32>>\n");
  for (const std::int32_t n : {16, 15}) {
    std::vector<float> p(16), q(16);
    const auto outcome = launch(kernel, {buffer(p), buffer(q), scalar(n)}, {1, 1, 1}, 1,
                                {.count = true, .poison_undefined = false, .rereads = true});
    ASSERT_TRUE(outcome) << to_text(outcome.error());
    const auto json =
        mechanism_of(layer_norm_launch(1), {kernel, "", ""}, Json(), *outcome->counts);
    EXPECT_EQ(json.at("ttgir").at("accesses").at(0).at("argument"), "p or q");
    const auto all = kinds(json);
    EXPECT_EQ(std::ranges::count(all, "true_masks"), n == 16 ? 1 : 0);
  }
}

TEST(Mechanism, more_trips_need_other_passes) {
  EXPECT_EQ(layer_norm(9001).at("opportunities").at(0).at("passes"),
            Json({"unroll-loops", "reuse-loads"}));
  // 64 KiB a row... of 65536 columns are 512 bytes a thread, of 70000 more than registers hold.
  EXPECT_EQ(layer_norm(70000).at("opportunities").at(0).at("passes"), Json({"stage-shared"}));
  // 120000 columns are more than a block's shared memory.
  EXPECT_EQ(layer_norm(120000).at("opportunities").at(0).at("passes"), Json::array());
}

TEST(Mechanism, the_table_for_people_has_the_numbers) {
  const auto text = mechanism_table(layer_norm(8192));
  EXPECT_THAT(text, HasSubstr("8 warps, 58 registers, 32 B shared, 0 B stack"));
  EXPECT_THAT(text, HasSubstr("occupancy: 32 of 64 warps (computed; limited by registers)"));
  EXPECT_THAT(text, HasSubstr("12/0"));
  EXPECT_THAT(text, HasSubstr("inline-single-trip-loops + reuse-loads"));
  EXPECT_THAT(text, HasSubstr("33.3%"));
}

TEST(Mechanism, a_part_that_is_not_there_says_why) {
  const auto json =
      mechanism_of(layer_norm_launch(4), {stored("ttgir/ln_fwd.ttgir"), "", "no SASS"},
                   {{"unavailable", "no GPU"}}, std::nullopt);
  EXPECT_EQ(json.at("ptx").at("unavailable"), "the artifact is not there");
  EXPECT_EQ(json.at("sass").at("unavailable"), "the SASS has no instructions");
  EXPECT_EQ(json.at("occupancy").at("unavailable"), "no GPU");
  EXPECT_EQ(json.at("redundancy").at("unavailable"), "the launch was not counted");
  EXPECT_EQ(json.at("by_argument").at(0).at("ttgir").at("loads"), 3);
  const auto text = mechanism_table(json);
  EXPECT_THAT(text, HasSubstr("occupancy: not computed: no GPU"));
  EXPECT_THAT(text, HasSubstr("ptx: not there: the artifact is not there"));
}

TEST(Mechanism, spills_are_an_opportunity_with_their_bytes) {
  auto sass = stored("mechanism/ln_fwd.sass");
  sass += "        /*9000*/                   STL.64 [R1], R2 ;\n"
          "        /*9010*/                   LDL.64 R2, [R1] ;\n";
  const auto json = mechanism_of(layer_norm_launch(4), {"", "", sass}, Json(), std::nullopt);
  EXPECT_THAT(kinds(json), ElementsAre("spills"));
  EXPECT_EQ(json.at("opportunities").at(0).at("bytes_saved"), 16.0 * 256 * 4);
}

} // namespace
} // namespace hebe::qualify
