// Facts about shared memory, bulk copies and tensor memory: TTGIR's own operations.
#include "interpreted_kernel.hpp"

#include <numeric>

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;
using I32 = std::vector<std::int32_t>;
using F32 = std::vector<float>;

const std::string kHead =
    R"(#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 64, blockN = 4, colStride = 1>
)";
/// `body` makes %r from %x, both 8 × 4 of i32.
std::string kernel(const std::string& body) {
  return kHead +
         "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = "
         "\"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32} {\n" +
         "  tt.func public @kernel(%xp: !tt.ptr<i32>, %rp: !tt.ptr<i32>) {\n" + R"(
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #l>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %false = arith.constant false
    %xs = tt.splat %xp : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #l>
    %xa = tt.addptr %xs, %i : tensor<32x!tt.ptr<i32>, #l>, tensor<32xi32, #l>
    %xf = tt.load %xa : tensor<32x!tt.ptr<i32>, #l>
    %x = tt.reshape %xf : tensor<32xi32, #l> -> tensor<8x4xi32, #b>
    %ap = tt.reshape %xa : tensor<32x!tt.ptr<i32>, #l> -> tensor<8x4x!tt.ptr<i32>, #b>
)" + body +
         R"(
    %rf = tt.reshape %r : tensor<8x4xi32, #b> -> tensor<32xi32, #l>
    %rs = tt.splat %rp : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #l>
    %ra = tt.addptr %rs, %i : tensor<32x!tt.ptr<i32>, #l>, tensor<32xi32, #l>
    tt.store %ra, %rf : tensor<32x!tt.ptr<i32>, #l>
    tt.return
  }
}
)";
}
I32 result_of(const std::string& body) {
  I32 x(32), r(32, -1);
  std::iota(x.begin(), x.end(), 0);
  run(kernel(body), {buffer(x), buffer(r)});
  return r;
}

TEST(SharedMemory, what_is_stored_is_loaded) {
  const auto r = result_of(R"(
    %m = ttg.local_alloc %x : (tensor<8x4xi32, #b>) -> !ttg.memdesc<8x4xi32, #shared, #smem>
    %r = ttg.local_load %m : !ttg.memdesc<8x4xi32, #shared, #smem> -> tensor<8x4xi32, #b>
)");
  for (std::int32_t i = 0; i < 32; ++i) EXPECT_EQ(r[static_cast<std::size_t>(i)], i);
}

TEST(SharedMemory, slices_are_views_of_one_allocation) {
  const auto r = result_of(R"(
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable>
    %a = ttg.memdesc_index %m[%c0] : !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %b = ttg.memdesc_index %m[%c1] : !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    ttg.local_store %x, %a : tensor<8x4xi32, #b> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %y = arith.addi %x, %x : tensor<8x4xi32, #b>
    ttg.local_store %y, %b : tensor<8x4xi32, #b> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    gpu.barrier
    %t = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : !ttg.memdesc<8x4xi32, #shared, #smem, mutable> -> !ttg.memdesc<4x8xi32, #shared, #smem, mutable>
    %s = ttg.memdesc_subslice %t[0, 4] : !ttg.memdesc<4x8xi32, #shared, #smem, mutable> -> !ttg.memdesc<4x4xi32, #shared, #smem, mutable>
    %half = ttg.local_load %s : !ttg.memdesc<4x4xi32, #shared, #smem, mutable> -> tensor<4x4xi32, #b>
    %z = tt.reshape %half : tensor<4x4xi32, #b> -> tensor<16xi32, #l>
    %zz = tt.cat %z, %z : tensor<16xi32, #l> -> tensor<32xi32, #l>
    %r = tt.reshape %zz : tensor<32xi32, #l> -> tensor<8x4xi32, #b>
    ttg.local_dealloc %m : !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable>
)");
  // (column c, row 4 + k) of 2 x: 2 * ((4 + k) * 4 + c).
  for (std::int32_t c = 0; c < 4; ++c)
    for (std::int32_t k = 0; k < 4; ++k)
      EXPECT_EQ(r[static_cast<std::size_t>(c * 4 + k)], 2 * ((4 + k) * 4 + c));
}

TEST(SharedMemory, slices_do_not_overlap) {
  const auto r = result_of(R"(
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable>
    %a = ttg.memdesc_index %m[%c0] : !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %b = ttg.memdesc_index %m[%c1] : !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %y = arith.muli %x, %x : tensor<8x4xi32, #b>
    ttg.local_store %x, %a : tensor<8x4xi32, #b> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    ttg.local_store %y, %b : tensor<8x4xi32, #b> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %va = ttg.local_load %a : !ttg.memdesc<8x4xi32, #shared, #smem, mutable> -> tensor<8x4xi32, #b>
    %vb = ttg.local_load %b : !ttg.memdesc<8x4xi32, #shared, #smem, mutable> -> tensor<8x4xi32, #b>
    %r = arith.subi %vb, %va : tensor<8x4xi32, #b>
)");
  for (std::int32_t i = 0; i < 32; ++i) EXPECT_EQ(r[static_cast<std::size_t>(i)], i * i - i);
}

TEST(SharedMemory, an_asynchronous_copy_is_done_when_it_is_issued) {
  const auto r = result_of(R"(
    %m = ttg.local_alloc : () -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %c20 = arith.constant dense<20> : tensor<8x4xi32, #b>
    %other = arith.constant dense<-5> : tensor<8x4xi32, #b>
    %mask = arith.cmpi slt, %x, %c20 : tensor<8x4xi32, #b>
    %t = ttg.async_copy_global_to_local %ap, %m mask %mask other %other : tensor<8x4x!tt.ptr<i32>, #b> -> <8x4xi32, #shared, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %w = ttg.async_wait %g {num = 0 : i32}
    %r = ttg.local_load %m token %w : !ttg.memdesc<8x4xi32, #shared, #smem, mutable> -> tensor<8x4xi32, #b>
)");
  for (std::int32_t i = 0; i < 32; ++i) EXPECT_EQ(r[static_cast<std::size_t>(i)], i < 20 ? i : -5);
}

TEST(SharedMemory, another_element_type_sees_the_bytes_in_row_major_order) {
  const auto r = result_of(R"(
    %m = ttg.local_alloc %x : (tensor<8x4xi32, #b>) -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %h = ttg.memdesc_reinterpret %m : !ttg.memdesc<8x4xi32, #shared, #smem, mutable> -> !ttg.memdesc<64xi16, #flat, #smem, mutable>
    %s = ttg.memdesc_subslice %h[32] : !ttg.memdesc<64xi16, #flat, #smem, mutable> -> !ttg.memdesc<32xi16, #flat, #smem, mutable>
    %v = ttg.local_load %s : !ttg.memdesc<32xi16, #flat, #smem, mutable> -> tensor<32xi16, #l>
    %e = arith.extsi %v : tensor<32xi16, #l> to tensor<32xi32, #l>
    %r = tt.reshape %e : tensor<32xi32, #l> -> tensor<8x4xi32, #b>
)");
  for (std::int32_t i = 0; i < 32; ++i)
    EXPECT_EQ(r[static_cast<std::size_t>(i)], i % 2 ? 0 : 16 + i / 2);
}

TEST(SharedMemory, a_slice_that_is_not_there_is_refused) {
  I32 x(32), r(32);
  EXPECT_EQ(
      refusal(kernel(R"(
    %c2 = arith.constant 2 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable>
    %a = ttg.memdesc_index %m[%c2] : !ttg.memdesc<2x8x4xi32, #shared, #smem, mutable> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %r = ttg.local_load %a : !ttg.memdesc<8x4xi32, #shared, #smem, mutable> -> tensor<8x4xi32, #b>
)"),
              {buffer(x), buffer(r)}),
      "out_of_bounds: ttg.memdesc_index (line 23, %a) of program (0, 0, 0) takes slice 2 of 2");
}

TEST(SharedMemory, bulk_copies_through_descriptors) {
  const auto r = result_of(R"(
    %h = arith.constant 8 : i32
    %w = arith.constant 4 : i32
    %ws = arith.constant 4 : i64
    %one = arith.constant 1 : i64
    %d = tt.make_tensor_descriptor %xp, [%h, %w], [%ws, %one] : <i32>, <tensor<8x4xi32, #shared>>
    %e = tt.make_tensor_descriptor %rp, [%h, %w], [%ws, %one] : <i32>, <tensor<8x4xi32, #shared>>
    %m = ttg.local_alloc : () -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #flat, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #flat, #smem, mutable>
    ttng.barrier_expect %bar, 128, %true : !ttg.memdesc<1xi64, #flat, #smem, mutable>
    %c2 = arith.constant 2 : i32
    ttng.async_tma_copy_global_to_local %d[%c2, %c1] %m, %bar, %true : !tt.tensordesc<tensor<8x4xi32, #shared>>, !ttg.memdesc<1xi64, #flat, #smem, mutable> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    ttng.async_tma_copy_global_to_local %d[%c0, %c0] %m, %bar, %false : !tt.tensordesc<tensor<8x4xi32, #shared>>, !ttg.memdesc<1xi64, #flat, #smem, mutable> -> !ttg.memdesc<8x4xi32, #shared, #smem, mutable>
    ttng.wait_barrier %bar, %c0 : !ttg.memdesc<1xi64, #flat, #smem, mutable>
    ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #flat, #smem, mutable>
    %r = ttg.local_load %m : !ttg.memdesc<8x4xi32, #shared, #smem, mutable> -> tensor<8x4xi32, #b>
)");
  for (std::int32_t i = 0; i < 8; ++i)
    for (std::int32_t j = 0; j < 4; ++j)
      EXPECT_EQ(r[static_cast<std::size_t>(i * 4 + j)],
                i + 2 < 8 && j + 1 < 4 ? (i + 2) * 4 + j + 1 : 0);
}

TEST(SharedMemory, warps_that_run_apart_are_refused_and_told_why) {
  const auto module = read_module(
      kHead +
      R"(module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel() {
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
)");
  ASSERT_TRUE(module) << to_text(module.error());
  const auto refused = not_interpretable(**module);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].what,
            "ttg.warp_specialize cannot be interpreted: its warps run at the same time and wait "
            "for each other; a program runs in the order of its text here");
}

} // namespace
} // namespace hebe::ttgir
