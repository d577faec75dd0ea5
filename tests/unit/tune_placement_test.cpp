// Facts about placement files: what they hold, what they refuse, and which rows still hold.
#include "core/files.hpp"
#include "tune/calibrate_placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::tune {
namespace {
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::SizeIs;

PlacementRow row(const std::string& member) {
  const bool cpu = member == "cpu";
  PlacementRow p;
  p.member = member;
  p.sizes = {{"m", 1}, {"n", 4096}, {"k", 4096}};
  p.idle_power = Watts(cpu ? 95 : 121);
  p.idle_error = Watts(0.5);
  p.row.key = {"matmul", "m=1,n=4096,k=4096", cpu ? "fp32" : "fp16", cpu ? "Xeon" : "NVIDIA H200"};
  p.row.implementation = {cpu ? "openblas.matmul" : "triton.matmul", Json::object(), {}};
  p.row.energy_nj = {1'000'000, 990'000, 1'010'000};
  p.row.time_ns = {20'000, 19'999, 20'001};
  p.row.meter = {cpu ? "powercap.intel-rapl.package-0" : "nvml.power", cpu ? "usable" : "primary",
                 Provenance::measured};
  p.row.platform = {{}, cpu ? "intel-rapl, Linux 6.1" : "580.159.04", "Debian 12", "0.1.0", {}};
  p.row.date = "2026-11-30T04:20:00Z";
  return p;
}

TEST(Placement, a_file_holds_what_was_measured_and_reads_back_the_same) {
  const test::ScratchFolder folder;
  const auto file = folder / "placement.json";
  const Placement placement{{row("cpu"), row("triton")}};
  ASSERT_TRUE(write_placement(file, placement));
  const auto back = read_placement(file);
  ASSERT_TRUE(back) << to_text(back.error());
  EXPECT_EQ(json_of(*back), json_of(placement));
  EXPECT_EQ(back->rows[0].row.meter.provenance, Provenance::measured);
}

TEST(Placement, a_row_with_a_figure_that_is_not_measured_keeps_the_file_from_being_written) {
  const test::ScratchFolder folder;
  const auto file = folder / "placement.json";
  std::vector<PlacementRow> wrong(6, row("cpu"));
  wrong[0].row.energy_nj = {0, 0, 0};
  wrong[1].row.time_ns.value = 0;
  wrong[2].idle_power = Watts(0); // a held counter taken as 0 W
  wrong[3].row.meter.status = "frozen";
  wrong[4].row.energy_nj.low = -1;
  wrong[5].row.date = "today";
  for (const auto& one : wrong) {
    const auto written = write_placement(file, {{row("triton"), one}});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().not_written, file.string());
    EXPECT_FALSE(std::filesystem::exists(file));
  }
  EXPECT_EQ(write_placement(file, {{wrong[3]}}).error().code, RefusalCode::meter_frozen);
  EXPECT_FALSE(write_placement(file, {}));
  EXPECT_FALSE(write_placement(file, {{row("cpu"), row("cpu")}}));
  EXPECT_FALSE(std::filesystem::exists(file));
}

PlacementNow now() {
  PlacementNow out;
  out.gpu.date = "2026-11-30T05:00:00Z";
  return out;
}

TEST(Placement, another_board_or_an_unbelieved_meter_rejects_a_row_by_name) {
  const Placement placement{{row("cpu"), row("triton")}};
  auto present = now();
  present.gpu.board = "NVIDIA H100";
  auto held = hold_placement(placement, present);
  ASSERT_TRUE(held);
  EXPECT_FALSE((*held)[0].rejected); // the GPU's name says nothing of the processor
  EXPECT_THAT((*held)[0].reasons, IsEmpty());
  EXPECT_TRUE((*held)[1].rejected);
  EXPECT_THAT((*held)[1].reasons, ElementsAre("board was NVIDIA H200 and is NVIDIA H100"));
  present = now();
  present.cpu = "EPYC";
  present.gpu.meters = {{"powercap.intel-rapl.package-0", "usable"}, {"nvml.power", "frozen"}};
  held = hold_placement(placement, present);
  ASSERT_TRUE(held);
  EXPECT_THAT((*held)[0].reasons, ElementsAre("board was Xeon and is EPYC"));
  EXPECT_TRUE((*held)[1].rejected);
  EXPECT_THAT((*held)[1].reasons, ElementsAre("meter nvml.power was primary and is frozen"));
}

TEST(Placement, another_driver_or_os_downgrades_measured_to_estimated) {
  auto present = now();
  present.gpu.driver = "590.1";
  present.gpu.os = "Ubuntu 24.04";
  const auto held = hold_placement({{row("cpu"), row("triton")}}, present);
  ASSERT_TRUE(held);
  EXPECT_THAT((*held)[0].reasons, ElementsAre("os was Debian 12 and is Ubuntu 24.04"));
  EXPECT_THAT((*held)[1].reasons, SizeIs(2));
  for (const auto& h : *held) {
    EXPECT_FALSE(h.rejected);
    EXPECT_EQ(h.row.row.meter.provenance, Provenance::estimated);
    EXPECT_EQ(h.row.row.downgraded, h.reasons);
  }
  EXPECT_FALSE(hold_placement({{row("cpu")}}, {})); // no date
}

} // namespace
} // namespace hebe::tune
