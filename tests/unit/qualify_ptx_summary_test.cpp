// Facts about PTX: what Triton's text holds, counted by hand or by grep; addresses traced to
// parameters; forms that Triton prints on other targets.
#include "qualify/ptx_summary.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>

namespace hebe::qualify {
namespace {
using K = AccessKind;

std::string stored(const std::string& name) {
  auto text = read_file(std::string(HEBE_TEST_DATA) + "/mechanism/" + name);
  EXPECT_TRUE(text);
  return text ? *text : "";
}
std::size_t times(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}
PtxSummary summary(const std::string& text, const std::vector<std::string>& names = {}) {
  const auto found = summarise_ptx(text, names);
  EXPECT_TRUE(found) << to_text(found.error());
  return found ? *found : PtxSummary{};
}
/// A kernel with pointers p and q and a 64-bit number n.
PtxSummary of_body(const std::string& body) {
  return summary(".version 8.7\n.target sm_90a\n.address_size 64\n"
                 ".extern .shared .align 16 .b8 global_smem[];\n"
                 ".global .align 4 .b8 table[4] = {1, 2, 3, 4};\n"
                 ".visible .entry k(\n\t.param .u64 .ptr .global .align 1 k_param_0,\n"
                 "\t.param .u32 k_param_1,\n\t.param .u64 .ptr .global .align 1 k_param_2,\n"
                 "\t.param .u64 k_param_3\n)\n.reqntid 128\n{\n\t.reg .b64 \t%rd<51>;\n" +
                     body + "\tret;\n}\n",
                 {"p", "i", "q", "n"});
}
const std::string kPointers = "ld.param.b64 %rd1, [k_param_0];\nld.param.b64 %rd2, [k_param_2];\n"
                              "ld.param.b64 %rd3, [k_param_3];\n";

TEST(PtxSummary, layer_norm_loads_twenty_times_by_argument) {
  const auto text = stored("ln_fwd.ptx");
  const auto s = summary(text, {"X", "Y", "W", "B", "Mean", "Rstd", "stride", "N", "eps"});
  EXPECT_EQ(s.entry, "ln_fwd");
  EXPECT_EQ(s.target, "sm_90a");
  EXPECT_EQ(s.code.accesses_of(K::global_load), times(text, "ld.global"));
  EXPECT_EQ(s.code.accesses_of(K::global_load), 20U);
  EXPECT_EQ(s.code.accesses_of(K::global_load, "X"), 12U);
  EXPECT_EQ(s.code.accesses_of(K::global_load, "W"), 4U);
  EXPECT_EQ(s.code.accesses_of(K::global_load, "B"), 4U);
  EXPECT_EQ(s.code.accesses_of(K::global_store), times(text, "st.global"));
  EXPECT_EQ(s.code.accesses_of(K::global_store, "Y"), 4U);
  EXPECT_EQ(s.code.accesses_of(K::global_store, "Mean"), 1U);
  EXPECT_EQ(s.code.accesses_of(K::shared_load), times(text, "ld.shared"));
  EXPECT_EQ(s.code.classes.at("shuffle"), times(text, "shfl.sync"));
  EXPECT_EQ(s.code.classes.at("barrier"), times(text, "bar.sync"));
  EXPECT_TRUE(s.code.other.empty());
  // Every instruction ends with its semicolon; so do declarations, of which there are six.
  EXPECT_EQ(s.code.instructions, times(text, ";") - times(text, "\t.reg") - 3);
  for (const auto& each : s.code.accesses) {
    if (each.kind == K::global_load) {
      EXPECT_EQ(each.bytes, 16U);
      EXPECT_TRUE(each.predicated);
      EXPECT_TRUE(each.in_loop);
    }
    if (each.argument == "Mean") {
      EXPECT_EQ(each.bytes, 4U);
      EXPECT_FALSE(each.in_loop);
    }
  }
}

TEST(PtxSummary, parameters_lie_where_the_launch_buffer_has_them) {
  const auto s = of_body("");
  ASSERT_EQ(s.parameters.size(), 4U);
  EXPECT_EQ(s.parameters[1].offset, 8U);
  EXPECT_EQ(s.parameters[2].offset, 16U);
  EXPECT_EQ(s.parameters[3].offset, 24U);
  EXPECT_TRUE(s.parameters[2].pointer);
  EXPECT_FALSE(s.parameters[3].pointer);
}

TEST(PtxSummary, an_address_is_traced_through_sums_and_not_through_products) {
  const auto s = of_body(kPointers + "mad.wide.s32 %rd4, %r1, 2, %rd1;\nadd.s64 %rd5, %rd4, %rd3;\n"
                                     "ld.global.b32 %r2, [%rd5+16];\n"
                                     "mul.lo.s64 %rd6, %rd1, 2;\nst.global.b8 [%rd6], %rs1;\n");
  ASSERT_EQ(s.code.accesses.size(), 2U);
  EXPECT_EQ(s.code.accesses[0].argument, "p");
  EXPECT_EQ(s.code.accesses[1].argument, "");
  EXPECT_EQ(s.code.accesses[1].untraced, "no parameter found behind its address");
  EXPECT_EQ(s.code.accesses[1].bytes, 1U);
}

TEST(PtxSummary, what_may_be_either_of_two_says_so_and_a_pointer_out_of_memory_too) {
  const auto s =
      of_body(kPointers + "selp.b64 %rd4, %rd1, %rd2, %p1;\nld.global.b64 %rd5, [%rd4];\n"
                          "ld.global.b16 %rs1, [%rd5];\nld.global.b32 %r1, [table];\n");
  ASSERT_EQ(s.code.accesses.size(), 3U);
  EXPECT_EQ(s.code.accesses[0].argument, "p or q");
  EXPECT_EQ(s.code.accesses[1].untraced, "its address comes out of ld.global.b64");
  EXPECT_EQ(s.code.accesses[2].untraced, "its address comes out of table");
}

TEST(PtxSummary, a_loop_carried_pointer_is_traced_and_its_loop_is_seen) {
  const auto s = of_body(kPointers + "mov.b64 %rd9, %rd2;\n$L__BB0_1:\n"
                                     "ld.global.v2.b64 {%rd10, %rd11}, [%rd9];\n"
                                     "add.s64 %rd9, %rd9, 64;\n@%p1 bra $L__BB0_1;\n"
                                     "st.global.b32 [%rd9], %r1;\n");
  ASSERT_EQ(s.code.accesses.size(), 2U);
  EXPECT_EQ(s.code.accesses[0].argument, "q");
  EXPECT_EQ(s.code.accesses[0].bytes, 16U);
  EXPECT_TRUE(s.code.accesses[0].in_loop);
  EXPECT_FALSE(s.code.accesses[1].in_loop);
}

TEST(PtxSummary, hints_copies_atomics_and_matrices) {
  const auto s = of_body(
      kPointers +
      "\t// begin inline asm\n\t{ .reg .b64 %pol; createpolicy.fractional.L2::evict_last.b64 %rd8, "
      "1.0; }\n"
      "@%p1 ld.global.L1::evict_last.L2::cache_hint.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ], "
      "%rd8;\n"
      "cp.async.cg.shared.global [ %r5 + 0 ], [ %rd2 + 0 ], 0x10, %r6;\ncp.async.commit_group;\n"
      "@%p2 atom.global.gpu.acq_rel.add.f32 %r7, [ %rd2 + 0 ], %r8;\n"
      "red.global.gpu.relaxed.add.noftz.v8.bf16 [%rd1], {%rs1, %rs2};\n"
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4};\n"
      "wgmma.wait_group.sync.aligned 0;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, "
      "{%r2, %r3}], [%r4];\n"
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {%r2, %r3}], [%r4];\n"
      "ld.volatile.global.b32 %r1, [%rd1];\nst.local.b32 [%rd20], %r1;\n"
      "frobnicate.b32 %r1, %r2;\n");
  ASSERT_EQ(s.code.accesses.size(), 9U);
  EXPECT_EQ(s.code.accesses[0].modifiers, "L1::evict_last L2::cache_hint");
  EXPECT_EQ(s.code.accesses[0].bytes, 16U);
  EXPECT_EQ(s.code.accesses[1].kind, K::async_copy);
  EXPECT_EQ(s.code.accesses[1].bytes, 16U);
  EXPECT_EQ(s.code.accesses[1].argument, "q");
  EXPECT_EQ(s.code.accesses_of(K::atomic), 2U);
  EXPECT_EQ(s.code.accesses[3].bytes, 16U);
  EXPECT_EQ(s.code.accesses_of(K::shared_load), 1U);
  EXPECT_EQ(s.code.accesses_of(K::bulk_load, "p"), 1U);
  EXPECT_EQ(s.code.accesses_of(K::bulk_store, "q"), 1U);
  EXPECT_EQ(s.code.accesses[7].modifiers, "volatile");
  EXPECT_EQ(s.code.accesses_of(K::local_store), 1U);
  EXPECT_EQ(s.code.classes.at("tensor_core"), 1U);
  EXPECT_EQ(s.code.classes.at("barrier"), 2U);
  EXPECT_EQ(s.code.classes.at("cache_control"), 1U);
  EXPECT_EQ(s.code.other.at("frobnicate.b32"), 1U);
  EXPECT_EQ(s.code.predicated, 2U);
}

TEST(PtxSummary, text_that_is_no_ptx_is_refused) {
  for (const std::string text :
       {"", "hello", ".version 8.7\n.target sm_90a\n", "}}}{{{;;;", "@", "."})
    EXPECT_FALSE(summarise_ptx(text)) << text;
  // Any prefix of a kernel is read or refused.
  const auto text = stored("softmax.ptx");
  for (std::size_t n = 0; n < text.size(); n += 97) (void)summarise_ptx(text.substr(0, n));
}

} // namespace
} // namespace hebe::qualify
