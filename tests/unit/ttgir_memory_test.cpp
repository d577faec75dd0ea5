// Facts about global memory: bounds, masks, alignment, addresses, atomics, blocks.
#include "interpreted_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;
using F32 = std::vector<float>;
using I32 = std::vector<std::int32_t>;

/// 8 elements of each program from x, through a mask of the first n, to r.
const std::string kCopy = function("%xp: !tt.ptr<f16>, %rp: !tt.ptr<f16>, %n: i32", R"(
    %pid = tt.get_program_id x : i32
    %c8 = arith.constant 8 : i32
    %other = arith.constant dense<7.0> : tensor<8xf16>
    %begin = arith.muli %pid, %c8 : i32
    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %b = tt.splat %begin : i32 -> tensor<8xi32>
    %at = arith.addi %b, %i : tensor<8xi32>
    %ns = tt.splat %n : i32 -> tensor<8xi32>
    %mask = arith.cmpi slt, %at, %ns : tensor<8xi32>
    %xs = tt.splat %xp : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
    %xa = tt.addptr %xs, %at : tensor<8x!tt.ptr<f16>>, tensor<8xi32>
    %x = tt.load %xa, %mask, %other : tensor<8x!tt.ptr<f16>>
    %rs = tt.splat %rp : !tt.ptr<f16> -> tensor<8x!tt.ptr<f16>>
    %ra = tt.addptr %rs, %at : tensor<8x!tt.ptr<f16>>, tensor<8xi32>
    tt.store %ra, %x : tensor<8x!tt.ptr<f16>>
)");

TEST(Memory, masked_elements_take_the_other_value) {
  std::vector<std::uint16_t> x(10), r(16);
  std::iota(x.begin(), x.end(), std::uint16_t{0x3c00});
  run(kCopy, {buffer(x, false), buffer(r), scalar(10)}, {2, 1, 1});
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(r[i], i < 10 ? 0x3c00 + i : 0x4700) << i;
}

TEST(Memory, a_load_out_of_bounds_names_op_program_element_and_argument) {
  std::vector<std::uint16_t> x(10), r(24);
  EXPECT_EQ(refusal(kCopy, {buffer(x, false, "X"), buffer(r), scalar(11)}, {3, 1, 1}),
            "out_of_bounds: tt.load (line 15, %x) of program (1, 0, 0), element 2, reads 2 bytes "
            "at byte offset 20 of 'X', which has 20 bytes");
}

TEST(Memory, a_store_out_of_bounds_names_the_function_s_own_name_of_the_argument) {
  std::vector<std::uint16_t> x(16), r(12);
  EXPECT_EQ(refusal(kCopy, {buffer(x, false), buffer(r), scalar(16)}, {2, 1, 1}),
            "out_of_bounds: tt.store (line 18) of program (1, 0, 0), element 4, writes 2 bytes at "
            "byte offset 24 of 'rp', which has 24 bytes");
}

TEST(Memory, an_input_is_not_written) {
  std::vector<std::uint16_t> x(8), r(8);
  EXPECT_EQ(refusal(kCopy, {buffer(x), buffer(r, false), scalar(8)}),
            "wrong_output: tt.store (line 18) of program (0, 0, 0), element 0, writes 2 bytes at "
            "byte offset 0 of 'rp', which has 16 bytes and is an input");
}

TEST(Memory, a_negative_offset_is_told_as_one) {
  I32 x(4), r(1);
  const auto text = function("%xp: !tt.ptr<i32>, %rp: !tt.ptr<i32>, %n: i32",
                             "    %a = tt.addptr %xp, %n : !tt.ptr<i32>, i32\n    %x = tt.load %a "
                             ": !tt.ptr<i32>\n    tt.store %rp, %x : !tt.ptr<i32>\n");
  EXPECT_EQ(refusal(text, {buffer(x), buffer(r), scalar(-3)}),
            "out_of_bounds: tt.load (line 4, %x) of program (0, 0, 0) reads 4 bytes at byte offset "
            "-12 of 'xp', which has 16 bytes");
  EXPECT_EQ(refusal(text, {ScalarArgument{Scalar::i64, 0}, buffer(r), scalar(0)}),
            "out_of_bounds: tt.load (line 4, %x) of program (0, 0, 0) reads 4 bytes at address "
            "0x0, which is in no argument (a null pointer)");
}

TEST(Memory, a_misaligned_access_is_refused) {
  I32 x(4), r(1);
  const auto text = function(
      "%xp: !tt.ptr<i8>, %rp: !tt.ptr<i32>",
      "    %c2 = arith.constant 2 : i32\n    %b = tt.addptr %xp, %c2 : !tt.ptr<i8>, i32\n    %a = "
      "tt.bitcast %b : !tt.ptr<i8> -> "
      "!tt.ptr<i32>\n    %x = tt.load %a : !tt.ptr<i32>\n    tt.store %rp, %x : !tt.ptr<i32>\n");
  EXPECT_EQ(refusal(text, {buffer(x), buffer(r)}),
            "out_of_bounds: tt.load (line 6, %x) of program (0, 0, 0) reads 4 bytes at byte offset "
            "2 of 'xp', which has 16 bytes, which is not aligned");
}

TEST(Memory, what_has_no_value_is_zero_or_poison) {
  F32 x(4, 1), r(4);
  const auto text = by_element(4, {"f32"}, "f32",
                               "    %c = arith.constant dense<[true, false, true, false]> : "
                               "tensor<4xi1>\n    %r = tt.load %xa, %c : tensor<4x!tt.ptr<f32>>\n");
  run(text, {buffer(x), buffer(r)});
  EXPECT_EQ(r, (F32{1, 0, 1, 0}));
  InterpretOptions options;
  options.poison_undefined = true;
  ASSERT_TRUE(launch(text, {buffer(x), buffer(r)}, {1, 1, 1}, 1, options));
  EXPECT_TRUE(r[0] == 1 && std::isnan(r[1]) && r[2] == 1 && std::isnan(r[3]));
}

TEST(Memory, scattered_and_repeated_addresses) {
  I32 x{10, 11, 12, 13, 14, 15, 16, 17}, index{7, 0, 0, 3, -1, 2, 6, 5}, r(8);
  run(by_element(8, {"i32", "i32"}, "i32", R"(
    %zero = arith.constant dense<0> : tensor<8xi32>
    %ok = arith.cmpi sge, %y, %zero : tensor<8xi32>
    %m = arith.constant dense<-1> : tensor<8xi32>
    %g = tt.addptr %xs, %y : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %r = tt.load %g, %ok, %m : tensor<8x!tt.ptr<i32>>
)"),
      {buffer(x), buffer(index), buffer(r)});
  EXPECT_EQ(r, (I32{17, 10, 10, 13, -1, 12, 16, 15}));
}

TEST(Memory, pointers_are_numbers_and_may_lie_in_memory) {
  I32 first{1, 2}, second{3, 4}, r(2);
  std::vector<std::uint64_t> table{address_of_buffer(2), address_of_buffer(3) + 4};
  const auto text = function("%tp: !tt.ptr<i64>, %rp: !tt.ptr<i32>, %a: !tt.ptr<i32>", R"(
    %i = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
    %ts = tt.splat %tp : !tt.ptr<i64> -> tensor<2x!tt.ptr<i64>>
    %ta = tt.addptr %ts, %i : tensor<2x!tt.ptr<i64>>, tensor<2xi32>
    %t = tt.load %ta : tensor<2x!tt.ptr<i64>>
    %p = tt.int_to_ptr %t : tensor<2xi64> -> tensor<2x!tt.ptr<i32>>
    %x = tt.load %p : tensor<2x!tt.ptr<i32>>
    %rs = tt.splat %rp : !tt.ptr<i32> -> tensor<2x!tt.ptr<i32>>
    %ra = tt.addptr %rs, %i : tensor<2x!tt.ptr<i32>>, tensor<2xi32>
    tt.store %ra, %x : tensor<2x!tt.ptr<i32>>
)");
  const auto module = module_of(text);
  Launch l;
  l.arguments = {buffer(table), buffer(r), buffer(first)};
  l.reachable = {buffer(second)};
  ASSERT_TRUE(interpret(*module, "", l));
  EXPECT_EQ(r, (I32{1, 4}));
}

std::string atomics(const std::string& kind, const std::string& element) {
  const std::string t = "tensor<8x" + element + ">", p = "tensor<8x!tt.ptr<" + element + ">>";
  return function(
      "%xp: !tt.ptr<" + element + ">, %sum: !tt.ptr<" + element + ">",
      "    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n    %xs = tt.splat "
      "%xp : !tt.ptr<" +
          element + "> -> " + p + "\n    %xa = tt.addptr %xs, %i : " + p +
          ", tensor<8xi32>\n    %x = tt.load %xa : " + p + "\n    %s = tt.splat %sum : !tt.ptr<" +
          element + "> -> " + p +
          "\n    %m = arith.constant dense<true> : tensor<8xi1>\n    %o = tt.atomic_rmw " + kind +
          ", acq_rel, gpu, %s, %x, %m : (" + p + ", " + t + ", tensor<8xi1>) -> " + t + "\n");
}

TEST(Memory, atomics_of_many_programs_lose_nothing_with_any_number_of_threads) {
  I32 x{1, 2, 3, 4, 5, 6, 7, 8};
  for (const unsigned threads : {1U, 4U}) {
    I32 sum(1);
    run(atomics("add", "i32"), {buffer(x), buffer(sum)}, {1000, 1, 1}, threads);
    EXPECT_EQ(sum[0], 36000);
    F32 y(8, 1), float_sum(1);
    run(atomics("fadd", "f32"), {buffer(y), buffer(float_sum)}, {1000, 1, 1}, threads);
    EXPECT_EQ(float_sum[0], 8000);
    std::vector<std::uint16_t> h(8, 0x3c00), half_sum(4); // f16 ones: past 2048 they vanish
    run(atomics("fadd", "f16"), {buffer(h), buffer(half_sum)}, {1000, 1, 1}, threads);
    EXPECT_EQ(half_sum[0], 0x6800);
    I32 least(1, 100);
    run(atomics("min", "i32"), {buffer(x), buffer(least)}, {10, 1, 1}, threads);
    EXPECT_EQ(least[0], 1);
  }
}

TEST(Memory, kinds_of_atomics) {
  const auto after = [](const std::string& kind, std::int32_t start, std::int32_t x) {
    I32 values(8, x), cell(1, start);
    run(atomics(kind, "i32"), {buffer(values), buffer(cell)});
    return cell[0];
  };
  EXPECT_EQ(after("and", 0x0f, 0x3c), 0x0c);
  EXPECT_EQ(after("or", 0x0f, 0x30), 0x3f);
  EXPECT_EQ(after("xor", 0x0f, 0x01), 0x0f); // eight times
  EXPECT_EQ(after("max", -5, -7), -5);
  EXPECT_EQ(after("umax", -5, 7), -5);
  EXPECT_EQ(after("umin", -5, 7), 7);
  EXPECT_EQ(after("exch", 1, 9), 9);
}

TEST(Memory, a_spin_lock_guards_a_sum_that_is_not_atomic) {
  const auto text = function("%lock: !tt.ptr<i32>, %sum: !tt.ptr<f32>", R"(
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1.0 : f32
    scf.while : () -> () {
      %old = tt.atomic_cas acq_rel, gpu, %lock, %c0, %c1 : (!tt.ptr<i32>, i32, i32) -> i32
      %taken = arith.cmpi eq, %old, %c1 : i32
      scf.condition(%taken)
    } do {
      scf.yield
    }
    %s = tt.load %sum : !tt.ptr<f32>
    %t = arith.addf %s, %one : f32
    tt.store %sum, %t : !tt.ptr<f32>
    %free = tt.atomic_rmw exch, acq_rel, gpu, %lock, %c0 : (!tt.ptr<i32>, i32) -> i32
)");
  for (const unsigned threads : {1U, 4U}) {
    I32 lock(2);
    F32 sum(1);
    run(text, {buffer(lock), buffer(sum)}, {2000, 1, 1}, threads);
    EXPECT_EQ(sum[0], 2000);
    EXPECT_EQ(lock[0], 0);
  }
}

std::string block_copy(const std::string& load, const std::string& store) {
  return function("%xp: !tt.ptr<f32>, %rp: !tt.ptr<f32>, %o0: i32, %o1: i32", R"(
    %h = arith.constant 3 : i64
    %w = arith.constant 5 : i64
    %one = arith.constant 1 : i64
    %four = arith.constant 4 : i64
    %z = arith.constant 0 : i32
    %b0 = tt.make_tensor_ptr %xp, [%h, %w], [%w, %one], [%z, %z] {order = array<i32: 1, 0>} : <tensor<4x4xf32>>
    %b = tt.advance %b0, [%o0, %o1] : <tensor<4x4xf32>>
    %x = tt.load %b)" + load + R"( : !tt.ptr<tensor<4x4xf32>>
    %rb = tt.make_tensor_ptr %rp, [%four, %four], [%four, %one], [%z, %z] {order = array<i32: 1, 0>} : <tensor<4x4xf32>>
    tt.store %rb, %x)" + store + R"( : !tt.ptr<tensor<4x4xf32>>
)");
}

TEST(Memory, blocks_are_padded_and_clipped_at_the_edges) {
  F32 x(15), r(16, -1);
  std::iota(x.begin(), x.end(), 0.0F);
  run(block_copy(" {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32}", ""),
      {buffer(x), buffer(r), scalar(1), scalar(3)});
  EXPECT_EQ(r, (F32{8, 9, 0, 0, 13, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  run(block_copy(" {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32}", ""),
      {buffer(x), buffer(r), scalar(-1), scalar(-2)});
  EXPECT_TRUE(std::isnan(r[0]) && std::isnan(r[5]));
  EXPECT_EQ(r[6], 0);
  EXPECT_EQ(r[15], 11);
}

TEST(Memory, an_unchecked_dimension_of_a_block_must_lie_in_the_buffer) {
  F32 x(15), r(16);
  EXPECT_EQ(refusal(block_copy(" {boundaryCheck = array<i32: 1>}", ""),
                    {buffer(x), buffer(r), scalar(0), scalar(0)}),
            "out_of_bounds: tt.load (line 11, %x) of program (0, 0, 0), element 12, reads 4 bytes "
            "at byte offset 60 of 'xp', which has 60 bytes");
}

TEST(Memory, descriptors_load_store_reduce_gather_and_scatter) {
  F32 x(20), r(20, 100);
  std::iota(x.begin(), x.end(), 0.0F);
  const std::string head = R"(
    %h = arith.constant 4 : i32
    %w = arith.constant 5 : i32
    %ws = arith.constant 5 : i64
    %one = arith.constant 1 : i64
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %xd = tt.make_tensor_descriptor %xp, [%h, %w], [%ws, %one] : <f32>, <tensor<2x4xf32>>
    %rd = tt.make_tensor_descriptor %rp, [%h, %w], [%ws, %one] : <f32>, <tensor<2x4xf32>>
)";
  const auto with = [&](const std::string& body) {
    return function("%xp: !tt.ptr<f32>, %rp: !tt.ptr<f32>", head + body);
  };
  const std::string load = "    %t = tt.descriptor_load %xd[%c3, %c2] : "
                           "!tt.tensordesc<tensor<2x4xf32>> -> tensor<2x4xf32>\n";
  run(with(load + "    tt.descriptor_store %rd[%c2, %c3], %t : !tt.tensordesc<tensor<2x4xf32>>, "
                  "tensor<2x4xf32>\n"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[13],
            17); // row 3 columns 2, 3, 4 and 0 outside, of which columns 3 and 4 are in the result
  EXPECT_EQ(r[14], 18);
  EXPECT_EQ(r[18], 0);
  EXPECT_EQ(std::count(r.begin(), r.end(), 100.0F), 16);
  r.assign(20, 100);
  run(with(load + "    tt.descriptor_reduce add, %rd[%c2, %c3], %t : "
                  "!tt.tensordesc<tensor<2x4xf32>>, tensor<2x4xf32>\n"),
      {buffer(x), buffer(r)});
  EXPECT_EQ(r[13], 117);
  EXPECT_EQ(r[18], 100);
  const std::string rows = R"(
    %g = tt.make_tensor_descriptor %xp, [%h, %w], [%ws, %one] : <f32>, <tensor<1x4xf32>>
    %s = tt.make_tensor_descriptor %rp, [%h, %w], [%ws, %one] : <f32>, <tensor<1x4xf32>>
    %i = arith.constant dense<[3, 0, 9, 1]> : tensor<4xi32>
    %j = arith.constant dense<[0, 1, 2, 7]> : tensor<4xi32>
    %z = arith.constant 0 : i32
    %t = tt.descriptor_gather %g[%i, %c2] : (!tt.tensordesc<tensor<1x4xf32>>, tensor<4xi32>, i32) -> tensor<4x4xf32>
    tt.descriptor_scatter %s[%j, %z], %t : !tt.tensordesc<tensor<1x4xf32>>, tensor<4xi32>, i32, tensor<4x4xf32>
)";
  r.assign(20, 100);
  run(with(rows), {buffer(x), buffer(r)});
  EXPECT_EQ((F32{r.begin(), r.begin() + 15}),
            (F32{17, 18, 19, 0, 100, 2, 3, 4, 0, 100, 0, 0, 0, 0, 100}));
}

TEST(Memory, a_host_descriptor_is_an_argument) {
  F32 x(12), r(4);
  std::iota(x.begin(), x.end(), 0.0F);
  const auto text = function("%d: !tt.tensordesc<tensor<2x2xf32>>, %rp: !tt.ptr<f32>", R"(
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %t = tt.descriptor_load %d[%c1, %c3] : !tt.tensordesc<tensor<2x2xf32>> -> tensor<2x2xf32>
    %f = tt.reshape %t : tensor<2x2xf32> -> tensor<4xf32>
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %rs = tt.splat %rp : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %ra = tt.addptr %rs, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %ra, %f : tensor<4x!tt.ptr<f32>>
)");
  run(text, {DescriptorArgument{buffer(x, false), {3, 4}, {4, 1}, true}, buffer(r)});
  EXPECT_EQ(r[0], 7);
  EXPECT_TRUE(std::isnan(r[1]));
  EXPECT_EQ(r[2], 11);
}

TEST(Memory, arguments_that_do_not_fit_are_refused_before_anything_runs) {
  std::vector<std::uint16_t> x(8), r(8);
  EXPECT_EQ(refusal(kCopy, {buffer(x), buffer(r)}),
            "bad_argument: 'kernel' has 3 arguments, and 2 are given");
  EXPECT_EQ(refusal(kCopy, {buffer(x), scalar(1), scalar(8)}),
            "bad_argument: argument 1 ('rp', !tt.ptr<f16>) needs a buffer, not a scalar");
  EXPECT_EQ(refusal(kCopy, {buffer(x), buffer(r), scalar(1.0F)}),
            "bad_argument: argument 2 ('n') is i32, and a scalar of type f32 is given");
  EXPECT_EQ(refusal(kCopy, {buffer(x), buffer(r), buffer(r)}, {0, 1, 1}),
            "bad_argument: argument 2 ('n', i32) needs a scalar, not a buffer");
}

} // namespace
} // namespace hebe::ttgir
