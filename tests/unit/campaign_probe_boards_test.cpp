// Facts about probing several boards: whom a selector means, and what the worst of them is.
#include "campaign/probe_boards.hpp"

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::campaign {
namespace {

BoardOutcome refused(RefusalCode code) {
  BoardOutcome o;
  o.refusal = Refusal{code, "", "", "", ""};
  return o;
}
BoardOutcome probed(bool qualified) {
  BoardOutcome o;
  o.probe.emplace();
  if (!qualified) o.probe->found.refusal = "no primary";
  return o;
}

TEST(ProbeBoards, all_devices_are_named_by_uuid_in_pci_order) {
  gpu::DeviceInfo a, b;
  a.uuid = "GPU-a", a.pci_bus_id = "0000:9b:00.0";
  b.uuid = "GPU-b", b.pci_bus_id = "0000:1b:00.0";
  EXPECT_EQ(uuids_of({a, b}), (std::vector<std::string>{"GPU-b", "GPU-a"}));
}

TEST(ProbeBoards, a_selector_without_a_comma_stands_for_itself) {
  for (const char* one : {"auto", "sim", "sim:3", "GPU-77", ""})
    EXPECT_EQ(selectors_in(one).value(), std::vector<std::string>{one});
}

TEST(ProbeBoards, the_worst_exit_is_the_largest_code) {
  EXPECT_EQ(worst_exit({}), ExitCode::done);
  EXPECT_EQ(worst_exit({probed(true), probed(true)}), ExitCode::done);
  EXPECT_EQ(worst_exit({probed(false), probed(true)}), ExitCode::claim_fails);
  EXPECT_EQ(worst_exit({probed(false), refused(RefusalCode::gpu_busy), probed(true)}),
            ExitCode::unfit_environment);
  EXPECT_EQ(worst_exit({refused(RefusalCode::digest_mismatch), refused(RefusalCode::gpu_busy)}),
            ExitCode::bad_data);
  EXPECT_EQ(worst_exit({refused(RefusalCode::interrupted), refused(RefusalCode::internal)}),
            ExitCode::interrupted);
}

// Boards that are refused as soon as they are looked at.
ProbeRequest busy_boards(const test::ScratchFolder& folder) {
  ProbeRequest request;
  request.scratch = folder.path();
  request.machine.faults = {gpu::fault_from("foreign_process").value()};
  return request;
}

TEST(ProbeBoards, a_refused_board_does_not_take_the_others_turn) {
  const test::ScratchFolder folder;
  const auto out = probe_boards(evidence::DataRoot(folder / "root"), busy_boards(folder),
                                {"sim:1", "sim:2"}, false, {});
  ASSERT_EQ(out.size(), 2U);
  for (const auto& o : out) EXPECT_EQ(o.refusal.value().code, RefusalCode::gpu_busy);
  EXPECT_NE(out[0].uuid, out[1].uuid);
}

TEST(ProbeBoards, after_an_interruption_the_others_are_not_begun_and_say_so) {
  const test::ScratchFolder folder;
  std::vector<std::string> begun;
  BoardCallbacks callbacks;
  callbacks.begins = [&](const std::string& s, std::size_t, std::size_t) { begun.push_back(s); };
  callbacks.job.interrupted = [&] { return !begun.empty(); };
  const auto out = probe_boards(evidence::DataRoot(folder / "root"), busy_boards(folder),
                                {"sim:1", "sim:2", "sim:3"}, false, callbacks);
  EXPECT_EQ(begun, std::vector<std::string>{"sim:1"});
  ASSERT_EQ(out.size(), 3U);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_EQ(out[i].refusal.value().code, RefusalCode::interrupted);
  EXPECT_EQ(worst_exit(out), ExitCode::interrupted);
}

} // namespace
} // namespace hebe::campaign
