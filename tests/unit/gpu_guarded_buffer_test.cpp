// Facts about guarded buffers: a write outside is seen, and on which side.
#include "gpu/guarded_buffer.hpp"

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::gpu {
namespace {

class GuardedBufferTest : public testing::Test {
protected:
  test::SimGpu sim;
  GuardedBuffer buffer = GuardedBuffer::make(sim.device, "out_ptr", {1000}).value();

  // What a kernel that writes one element too many does.
  void flip(DevicePointer at) {
    std::byte b[1];
    ASSERT_TRUE(sim.device.read(b, at));
    b[0] ^= std::byte{1};
    ASSERT_TRUE(sim.device.write(at, b));
  }
};

TEST_F(GuardedBufferTest, is_aligned_as_triton_is_promised) {
  EXPECT_EQ(buffer.address() % 256, 0U);
}

TEST_F(GuardedBufferTest, writing_every_byte_inside_leaves_it_intact) {
  ASSERT_TRUE(sim.device.fill(buffer.address(), std::byte{0xFF}, buffer.size()));
  EXPECT_TRUE(buffer.intact());
}

TEST_F(GuardedBufferTest, one_flipped_bit_outside_is_named_by_buffer_and_side) {
  const auto a = buffer.address();
  const std::pair<DevicePointer, const char*> table[] = {
      {a - 1, "before its start"},
      {a - GuardedBuffer::kCanary, "before its start"},
      {a - 256, "before its start"},
      {a + 1000, "behind its end"},
      {a + 1000 + GuardedBuffer::kCanary - 1, "behind its end"},
      {a + 1300, "behind its end"},
  };
  for (const auto& [at, side] : table) {
    flip(at);
    const auto status = buffer.intact();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, RefusalCode::wrong_output);
    EXPECT_EQ(status.error().what,
              std::string("the kernel wrote outside buffer \"out_ptr\", ") + side);
    flip(at);
    EXPECT_TRUE(buffer.intact());
  }
}

TEST_F(GuardedBufferTest, two_canaries_in_a_row_are_two_different_bytes) {
  // A run of one value, which a stray memset leaves, must not look like a canary.
  for (const int value : {0x00, 0xFF, 0x5A, 0xC5}) {
    auto other = GuardedBuffer::make(sim.device, "x_ptr", {64}).value();
    ASSERT_TRUE(sim.device.fill(other.address() + 64, static_cast<std::byte>(value), {8}));
    EXPECT_FALSE(other.intact()) << value;
  }
}

TEST_F(GuardedBufferTest, memory_goes_back_once_and_moves_with_its_owner) {
  const auto a = buffer.address();
  std::byte b[1];
  {
    GuardedBuffer moved(std::move(buffer));
    EXPECT_EQ(moved.address(), a);
    EXPECT_EQ(moved.name(), "out_ptr");
    EXPECT_TRUE(sim.device.read(b, a));
    auto other = GuardedBuffer::make(sim.device, "other", {8}).value();
    other = std::move(moved);
    EXPECT_EQ(other.address(), a);
    EXPECT_TRUE(other.intact());
  }
  EXPECT_FALSE(sim.device.read(b, a));
}

} // namespace
} // namespace hebe::gpu
