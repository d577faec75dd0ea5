// Facts about SASS: what nvdisasm prints of our kernels, counted by grep; pointers followed through
// registers, branches and loops.
#include "qualify/sass_summary.hpp"

#include "core/files.hpp"
#include "qualify/ptx_summary.hpp"

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
SassSummary summary(const std::string& text, const std::vector<ParameterPlace>& places = {}) {
  const auto found = summarise_sass(text, places);
  EXPECT_TRUE(found) << to_text(found.error());
  return found ? *found : SassSummary{};
}
/// Lines without addresses become instructions of sm_90; p lies at 0x210, q at 0x218.
SassSummary of_lines(const std::vector<std::string>& lines, int arch = 90) {
  std::string text = arch >= 100 ? "\t.target\tsm_" + std::to_string(arch) + "a\n"
                                 : "\t.headerflags\t@\"EF_CUDA_SM" + std::to_string(arch) + "\"\n";
  for (const auto& line : lines)
    text +=
        line.ends_with(':') ? line + "\n" : "        /*0000*/                   " + line + " ;\n";
  return summary(text, {{"p", 0, 8, true}, {"q", 8, 8, true}, {"n", 16, 4, false}});
}

TEST(SassSummary, layer_norm_loads_twenty_times_by_argument) {
  const auto text = stored("ln_fwd.sass");
  const std::vector<std::string> names = {"X", "Y", "W", "B", "Mean", "Rstd", "stride", "N", "eps"};
  const auto ptx = summarise_ptx(stored("ln_fwd.ptx"), names);
  ASSERT_TRUE(ptx);
  const auto s = summary(text, ptx->parameters);
  EXPECT_EQ(s.arch, 90);
  EXPECT_EQ(s.code.accesses_of(K::global_load), times(text, " LDG.E.128 "));
  EXPECT_EQ(s.opcodes.at("LDG.E.128"), 20U);
  EXPECT_EQ(s.code.accesses_of(K::global_load, "X"), 12U);
  EXPECT_EQ(s.code.accesses_of(K::global_load, "W"), 4U);
  EXPECT_EQ(s.code.accesses_of(K::global_load, "B"), 4U);
  EXPECT_EQ(s.code.accesses_of(K::global_store, "Y"), 4U);
  EXPECT_EQ(s.code.accesses_of(K::global_store, "Mean"), 1U);
  EXPECT_EQ(s.code.accesses_of(K::global_store, "Rstd"), 1U);
  EXPECT_EQ(s.code.accesses_of(K::local_load) + s.code.accesses_of(K::local_store), 0U);
  EXPECT_EQ(s.code.classes.at("special_function"), times(text, " MUFU."));
  EXPECT_EQ(s.code.classes.at("shuffle"), times(text, " SHFL."));
  EXPECT_EQ(s.code.instructions, times(text, ";\n"));
  EXPECT_TRUE(s.code.other.empty());
  for (const auto& each : s.code.accesses)
    if (is_global(each.kind)) {
      EXPECT_EQ(each.in_loop, each.bytes == 16) << each.line;
    }
}

TEST(SassSummary, softmax_copies_its_rows_to_shared_memory_without_waiting) {
  const auto text = stored("softmax.sass");
  const auto ptx = summarise_ptx(stored("softmax.ptx"));
  ASSERT_TRUE(ptx);
  const auto s = summary(text, ptx->parameters);
  EXPECT_EQ(s.code.accesses_of(K::async_copy), times(text, " LDGSTS."));
  EXPECT_EQ(s.code.accesses_of(K::async_copy), ptx->code.accesses_of(K::async_copy));
  for (const auto& each : s.code.accesses)
    if (each.kind == K::async_copy) {
      EXPECT_EQ(each.argument, "softmax_param_1");
      EXPECT_EQ(each.bytes, 16U);
      EXPECT_EQ(each.modifiers, "BYPASS");
      EXPECT_TRUE(each.predicated);
    }
}

TEST(SassSummary, a_pointer_is_followed_through_sums_and_uniform_registers) {
  const auto s = of_lines(
      {"ULDC.64 UR6, c[0x0][0x218]", "LEA R16, P1, R18, UR6, 0x1",
       "LEA.HI.X.SX32 R17, R18, UR7, 0x1, P1", "LDG.E.64 R2, desc[UR14][R16.64+0x1000]",
       "LDC.64 R4, c[0x0][0x210]", "IMAD.WIDE R6, R9, 0x4, R4", "STG.E desc[UR14][R6.64], R2",
       "LDG.E R8, desc[UR14][R2.64]", "MOV R10, 0x0", "LDG.E R8, desc[UR14][R10.64]"});
  ASSERT_EQ(s.code.accesses.size(), 4U);
  EXPECT_EQ(s.code.accesses[0].argument, "q");
  EXPECT_EQ(s.code.accesses[0].bytes, 8U);
  EXPECT_EQ(s.code.accesses[1].argument, "p");
  EXPECT_EQ(s.code.accesses[2].untraced, "its address comes out of memory or another thread");
  EXPECT_EQ(s.code.accesses[3].untraced, "no parameter found behind its address");
}

TEST(SassSummary, a_register_used_again_for_another_pointer_is_that_pointer) {
  const auto s = of_lines({"LDC.64 R2, c[0x0][0x210]", "LDG.E R8, [R2.64]",
                           "LDC.64 R2, c[0x0][0x218]", "STG.E [R2.64], R8"});
  EXPECT_EQ(s.code.accesses[0].argument, "p");
  EXPECT_EQ(s.code.accesses[1].argument, "q");
}

TEST(SassSummary, a_loop_carries_pointers_round_and_branches_join_them) {
  const auto s =
      of_lines({"LDC.64 R2, c[0x0][0x210]", ".L_x_0:", "LDG.E R8, [R2.64]",
                "IADD3 R2, P0, R2, 0x40, RZ", "LDC.64 R2, c[0x0][0x218]", "@P1 BRA `(.L_x_0)",
                "STG.E [R2.64], R8", "EXIT", ".L_x_1:", "BRA `(.L_x_1)"});
  EXPECT_EQ(s.code.accesses[0].argument, "p or q");
  EXPECT_TRUE(s.code.accesses[0].in_loop);
  EXPECT_EQ(s.code.accesses[1].argument, "q");
  EXPECT_FALSE(s.code.accesses[1].in_loop);
}

TEST(SassSummary, a_predicated_move_may_or_may_not_happen) {
  const auto s =
      of_lines({"LDC.64 R2, c[0x0][0x210]", "@P0 LDC.64 R2, c[0x0][0x218]", "LDG.E R8, [R2.64]"});
  EXPECT_EQ(s.code.accesses[0].argument, "p or q");
}

TEST(SassSummary, parameters_lie_elsewhere_on_other_architectures) {
  EXPECT_EQ(of_lines({"IMAD.WIDE R2, R3, R4, c[0x0][0x168]", "LDG.E.U16 R8, [R2.64]"}, 80)
                .code.accesses[0]
                .argument,
            "q");
  const auto s = of_lines({"LDC.64 R2, c[0x0][0x380]", "LDG.E.U8 R8, desc[UR4][R2.64]"}, 100);
  EXPECT_EQ(s.arch, 100);
  EXPECT_EQ(s.code.accesses[0].argument, "p");
  EXPECT_EQ(s.code.accesses[0].bytes, 1U);
  EXPECT_EQ(
      of_lines({"LDC.64 R2, c[0x0][0x210]", "LDG.E R8, [R2.64]"}, 60).code.accesses[0].untraced,
      "where parameters lie is not known for this architecture");
}

TEST(SassSummary, one_load_of_constants_brings_two_pointers) {
  const auto s = of_lines({"LDCU.128 UR12, c[0x0][0x380]", "MOV R2, UR14",
                           "STG.E desc[UR4][R2.64], R5", "LDG.E R3, desc[UR4][UR12.64]"},
                          100);
  EXPECT_EQ(s.code.accesses[0].argument, "q");
  EXPECT_EQ(s.code.accesses[1].argument, "p");
}

TEST(SassSummary, classes_of_other_instructions) {
  const auto s =
      of_lines({"HMMA.16816.F32 R4, R8, R12, R4", "HGMMA.64x64x16.F32 R24, gdesc[UR4], R24",
                "LDSM.16.MT88.4 R4, [R8+UR4]", "STL.64 [R1+0x8], R2", "LDL.LU R3, [R1]",
                "ATOMG.E.ADD.STRONG.GPU PT, RZ, desc[UR4][R2.64], R5",
                "HADD2.F32 R2, -RZ, R3.H0_H0", "HADD2 R2, R3, R4", "UIADD3 UR4, UR5, 0x1, URZ",
                "UTMALDG.2D [UR8], [UR4], desc[UR6]", "MUFU.EX2 R2, R2", "FROB R2, R3"});
  EXPECT_EQ(s.code.classes.at("tensor_core"), 2U);
  EXPECT_EQ(s.code.classes.at("convert"), 1U);
  EXPECT_EQ(s.code.classes.at("fp16"), 1U);
  EXPECT_EQ(s.code.classes.at("uniform"), 1U);
  EXPECT_EQ(s.code.classes.at("special_function"), 1U);
  EXPECT_EQ(s.code.accesses_of(K::local_load) + s.code.accesses_of(K::local_store), 2U);
  EXPECT_EQ(s.code.accesses_of(K::atomic), 1U);
  EXPECT_EQ(s.code.accesses_of(K::bulk_load), 1U);
  EXPECT_EQ(s.code.accesses[0].bytes, 16U);
  EXPECT_EQ(s.code.other.at("FROB"), 1U);
  EXPECT_EQ(s.code.classes.at("other"), 1U);
}

TEST(SassSummary, text_without_instructions_is_refused) {
  for (const std::string text :
       {"", "hello\n", "\t.headerflags\t@\"EF_CUDA_SM90\"\n", "/*", "/* */ ;"})
    EXPECT_FALSE(summarise_sass(text)) << text;
  // Any prefix of a kernel is read or refused.
  const auto text = stored("softmax.sass");
  for (std::size_t n = 0; n < text.size(); n += 397) (void)summarise_sass(text.substr(0, n));
}

} // namespace
} // namespace hebe::qualify
