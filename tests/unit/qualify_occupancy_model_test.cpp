// Facts about computed occupancy, each with its arithmetic.
#include "qualify/occupancy_model.hpp"

#include "core/files.hpp"

#include <sstream>

#include <gtest/gtest.h>

namespace hebe::qualify {
namespace {

ComputedOccupancy occupancy(BlockResources block) {
  const auto found = computed_occupancy(block);
  EXPECT_TRUE(found) << to_text(found.error());
  return found ? *found : ComputedOccupancy{};
}

TEST(OccupancyModel, registers_are_given_to_warps_in_units_of_256) {
  // 58 * 32 = 1856 -> 2048 a warp; 65536 / 2048 = 32 warps; blocks of 8: 4.
  const auto o = occupancy({90, 58, 8, 32});
  EXPECT_EQ(o.blocks, 4U);
  EXPECT_EQ(o.warps, 32U);
  EXPECT_DOUBLE_EQ(o.share(), 0.5);
  EXPECT_EQ(o.limits, std::vector<std::string>{"registers"});
  EXPECT_EQ(occupancy({90, 64, 8, 0}).blocks, 4U); // 2048 a warp, too
  EXPECT_EQ(occupancy({90, 65, 8, 0}).blocks, 3U); // 2304: 28 warps
}

TEST(OccupancyModel, a_warps_registers_lie_in_one_quarter_of_the_file) {
  // 40 * 32 = 1280; 16384 / 1280 = 12 a quarter, 48 warps; the whole file would hold 51.
  EXPECT_EQ(occupancy({90, 40, 3, 0}).by_registers, 16U);
}

TEST(OccupancyModel, a_full_multiprocessor) {
  const auto o = occupancy({80, 32, 8, 0});
  EXPECT_EQ(o.blocks, 8U);
  EXPECT_DOUBLE_EQ(o.share(), 1.0);
  EXPECT_EQ(o.limits, (std::vector<std::string>{"registers", "warps"}));
  EXPECT_EQ(occupancy({86, 32, 8, 0}).warps, 48U);
  EXPECT_EQ(occupancy({80, 255, 8, 0}).blocks, 1U);
}

TEST(OccupancyModel, small_blocks_are_limited_by_their_number) {
  EXPECT_EQ(occupancy({90, 16, 1, 0}).blocks, 32U);
  EXPECT_EQ(occupancy({86, 16, 1, 0}).blocks, 16U);
  EXPECT_EQ(occupancy({89, 16, 1, 0}).blocks, 24U);
  EXPECT_EQ(occupancy({120, 16, 1, 0}).limits, std::vector<std::string>{"blocks"});
}

TEST(OccupancyModel, shared_memory_has_a_kib_a_block_that_is_the_drivers) {
  // 98304 + 1024 = 99328; 228 KiB hold two, 164 KiB one.
  EXPECT_EQ(occupancy({90, 32, 8, 98304}).blocks, 2U);
  EXPECT_EQ(occupancy({80, 32, 8, 98304}).blocks, 1U);
  // 228 KiB / 2 - 1 KiB is the most that two blocks may have.
  EXPECT_EQ(occupancy({90, 32, 8, 113 * 1024}).by_shared, 2U);
  EXPECT_EQ(occupancy({90, 32, 8, 113 * 1024 + 1}).by_shared, 1U);
  EXPECT_EQ(occupancy({90, 32, 8, 227 * 1024}).blocks, 1U);
  EXPECT_EQ(occupancy({90, 32, 8, 227 * 1024 + 1}).blocks, 0U);
}

TEST(OccupancyModel, the_driver_of_an_h200_says_the_same) {
  const auto text = read_file(std::string(HEBE_TEST_DATA) + "/mechanism/occupancy_h200.txt");
  ASSERT_TRUE(text);
  std::istringstream lines(text->substr(text->find('\n')));
  std::size_t compared = 0;
  std::uint32_t registers = 0, warps = 0, blocks = 0;
  for (std::uint64_t shared = 0; lines >> registers >> warps >> shared >> blocks; ++compared)
    EXPECT_EQ(occupancy({90, registers, warps, shared}).blocks, blocks)
        << registers << " registers, " << warps << " warps, " << shared << " B";
  EXPECT_EQ(compared, 1584U);
}

TEST(OccupancyModel, what_is_not_known_is_refused) {
  EXPECT_FALSE(computed_occupancy({75, 32, 4, 0}));
  EXPECT_FALSE(computed_occupancy({90, 32, 0, 0}));
  EXPECT_EQ(occupancy({90, 32, 33, 0}).blocks, 0U);
}

} // namespace
} // namespace hebe::qualify
