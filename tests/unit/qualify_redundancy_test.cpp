// Facts about bytes that are loaded more than once: LayerNorm's by hand, and each way in which a
// byte can be loaded again.
#include "interpreted_kernel.hpp"
#include "qualify/redundancy.hpp"
#include "ttgir/rereads.hpp"

#include "core/files.hpp"

#include <numeric>

#include <gtest/gtest.h>

namespace hebe::qualify {
namespace {
using namespace ttgir::testing_kernels;
using ttgir::Counts;
constexpr ttgir::InterpretOptions kRereads{
    .count = true, .poison_undefined = false, .rereads = true};

std::string dump(const std::string& name) {
  auto text = read_file(std::string(HEBE_TEST_DATA) + "/ttgir/" + name);
  EXPECT_TRUE(text);
  return text ? *text : "";
}

Redundancy layer_norm(std::uint32_t rows, std::uint32_t columns, unsigned threads = 1) {
  const std::size_t n = std::size_t{rows} * columns;
  std::vector<std::uint16_t> x(n), y(n), w(columns), b(columns);
  std::vector<float> mean(rows), rstd(rows);
  const auto wide = static_cast<std::int32_t>(columns);
  const auto outcome =
      launch(dump("ln_fwd.ttgir"),
             {buffer(x, false), buffer(y), buffer(w, false), buffer(b, false), buffer(mean),
              buffer(rstd), scalar(wide), scalar(wide), scalar(1e-5F)},
             {rows, 1, 1}, threads, kRereads);
  EXPECT_TRUE(outcome) << to_text(outcome.error());
  const auto found = redundancy_of(*outcome->counts);
  EXPECT_TRUE(found);
  return *found;
}

void sums(const Redundancy& r) {
  for (const auto& each : r.arguments) {
    EXPECT_EQ(each.loaded, each.unique + each.by_other_programs + each.again +
                               each.after_own_write + each.by_other_lanes)
        << each.argument;
    std::uint64_t pairs = 0;
    for (const auto& pair : r.pairs)
      if (pair.argument == each.argument) pairs += pair.bytes;
    EXPECT_EQ(pairs, each.again + each.after_own_write) << each.argument;
  }
}

TEST(Redundancy, layer_norm_loads_x_three_times_and_its_weights_once_a_row) {
  for (const std::uint32_t columns : {8192U, 781U, 9001U}) {
    const auto r = layer_norm(5, columns);
    sums(r);
    const std::uint64_t row = std::uint64_t{columns} * 2;
    const auto* x = r.of("X");
    ASSERT_TRUE(x);
    EXPECT_EQ(x->loaded, 3 * 5 * row);
    EXPECT_EQ(x->unique, 5 * row);
    EXPECT_EQ(x->again, 2 * 5 * row);
    EXPECT_EQ(x->by_other_programs, 0U);
    EXPECT_FALSE(x->stored_too);
    const auto* w = r.of("W");
    ASSERT_TRUE(w);
    EXPECT_EQ(w->again, 0U);
    EXPECT_EQ(w->by_other_programs, 4 * row);
    EXPECT_EQ(r.of("Y"), nullptr);
    // The variance's load after the mean's, the last loop's after the variance's.
    ASSERT_EQ(r.pairs.size(), 2U);
    EXPECT_EQ(r.pairs[0].bytes, 5 * row);
    EXPECT_EQ(r.pairs[1].bytes, 5 * row);
    EXPECT_EQ(r.pairs[0].earlier.value, "acc_16");
    EXPECT_EQ(r.pairs[0].later.value, "x_16");
    EXPECT_EQ(r.pairs[1].earlier.value, "x_16");
    EXPECT_EQ(r.pairs[1].later.value, "x_18");
  }
}

TEST(Redundancy, the_number_of_threads_does_not_show) {
  EXPECT_EQ(to_json(layer_norm(7, 1000, 1)), to_json(layer_norm(7, 1000, 4)));
}

constexpr const char* kLoad = " = tt.load %p : !tt.ptr<f32>\n";

/// One program (or more) over one buffer of floats.
Redundancy of_body(const std::string& body, std::uint32_t programs = 1) {
  std::vector<float> p(64);
  const auto outcome =
      launch(function("%p: !tt.ptr<f32>", body), {buffer(p)}, {programs, 1, 1}, 1, kRereads);
  EXPECT_TRUE(outcome) << to_text(outcome.error());
  const auto found = redundancy_of(*outcome->counts);
  EXPECT_TRUE(found);
  sums(*found);
  return *found;
}

TEST(Redundancy, a_store_between_makes_it_another_value) {
  const auto r = of_body(std::string("    %a") + kLoad +
                         "    tt.store %p, %a : !tt.ptr<f32>\n    %b" + kLoad + "    %c" + kLoad);
  const auto& p = r.arguments.at(0);
  EXPECT_EQ(p.unique, 4U);
  EXPECT_EQ(p.after_own_write, 4U);
  EXPECT_EQ(p.again, 4U);
  EXPECT_TRUE(p.stored_too);
  ASSERT_EQ(r.pairs.size(), 2U);
  EXPECT_TRUE(r.pairs[0].written != r.pairs[1].written);
}

TEST(Redundancy, what_an_atomic_touched_is_no_first_load) {
  const auto r = of_body(
      "    %v = arith.constant 1.0 : f32\n    %t = arith.constant true\n"
      "    %o = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %t : (!tt.ptr<f32>, f32, i1) -> f32\n"
      "    %a" +
      std::string(kLoad));
  const auto& p = r.arguments.at(0);
  EXPECT_EQ(p.loaded, 4U);
  EXPECT_EQ(p.unique, 0U);
  EXPECT_EQ(p.after_own_write, 4U);
  EXPECT_EQ(p.by_other_programs, 0U);
  EXPECT_TRUE(p.stored_too);
}

TEST(Redundancy, lanes_of_one_execution_that_share_bytes_are_not_a_second_load) {
  const auto r = of_body("    %s = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>\n"
                         "    %a = tt.load %s : tensor<32x!tt.ptr<f32>>\n");
  EXPECT_EQ(r.arguments.at(0).by_other_lanes, 31U * 4);
  EXPECT_TRUE(r.pairs.empty());
}

TEST(Redundancy, what_another_program_loads_is_not_loaded_again) {
  const auto r = of_body(std::string("    %a") + kLoad, 5);
  EXPECT_EQ(r.arguments.at(0).by_other_programs, 16U);
  EXPECT_EQ(r.arguments.at(0).again, 0U);
}

TEST(Redundancy, one_op_in_a_loop_is_a_pair_with_itself) {
  const auto r = of_body("    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
                         "    %c7 = arith.constant 7 : i32\n"
                         "    scf.for %i = %c0 to %c7 step %c1  : i32 {\n      %a" +
                         std::string(kLoad) + "    }\n");
  ASSERT_EQ(r.pairs.size(), 1U);
  EXPECT_EQ(r.pairs[0].earlier.line, r.pairs[0].later.line);
  EXPECT_EQ(r.pairs[0].bytes, 24U);
}

TEST(Redundancy, ranges_across_pages_are_counted_to_the_byte) {
  ttgir::Rereads rereads(1);
  rereads.begin(0);
  rereads.load(0, 4000, 9000);
  rereads.begin(1);
  rereads.load(0, 4095, 4098);
  rereads.write(0, 0, 4096);
  rereads.begin(2);
  rereads.load(0, 4094, 4);
  EXPECT_EQ(rereads.by_buffer[0].first, 9000U);
  EXPECT_EQ(rereads.by_buffer[0].again, 4098U + 2);
  EXPECT_EQ(rereads.by_buffer[0].after_write, 2U);
  EXPECT_EQ((rereads.pairs[{0, 0, 1, false}]), 4098U);
  EXPECT_EQ((rereads.pairs[{0, 1, 2, true}]), 2U);
  rereads.end_program();
  rereads.begin(0);
  rereads.load(0, 4095, 1);
  EXPECT_EQ(rereads.by_buffer[0].first, 9001U);
}

TEST(Redundancy, counts_without_it_are_refused) {
  std::vector<float> p(4);
  const auto outcome = launch(function("%p: !tt.ptr<f32>", std::string("    %a") + kLoad),
                              {buffer(p)}, {1, 1, 1}, 1, {.count = true});
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(redundancy_of(*outcome->counts));
  EXPECT_FALSE(to_json(*outcome->counts).contains("rereads"));
}

} // namespace
} // namespace hebe::qualify
