// Facts about host code in a tune: checked, metered by the host's own meter, held against the
// board's choice without pairs.
#include "campaign/board_lease.hpp"
#include "tune/shape_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "made_host_code.hpp"

namespace hebe::tune {
namespace {
using test::HostCodes, test::kRight;
using testing::AllOf, testing::HasSubstr, testing::IsEmpty, testing::SizeIs;

TEST_F(HostCodes, what_is_right_is_measured_by_the_hosts_meter) {
  std::vector<TriedCandidate> all{tried(code())};
  const auto got = measure_hosts(all, baseline_, how());
  ASSERT_TRUE(got) << to_text(got.error());
  ASSERT_THAT(*got, SizeIs(1));
  const auto& h = got->front();
  EXPECT_NEAR(h.cost.energy.exact_nj, 60e6, 0.3e6);
  EXPECT_NEAR(h.cost.value, 60e6, 0.3e6);
  EXPECT_NEAR(h.idle.mean.value(), 20, 0.1);
  EXPECT_EQ(h.idle.state, Idle::no_context);
  EXPECT_EQ(h.meter.name, "powercap.intel-rapl.package-0");
  EXPECT_EQ(h.cost.energy.meter, h.meter);
  auto edp = how();
  edp.objective = Objective::edp;
  const auto product = measure_host(0, all[0], edp);
  ASSERT_TRUE(product);
  EXPECT_NEAR(product->cost.value, 60e6 * 2e-3, 0.3e6 * 2e-3);
}

TEST_F(HostCodes, what_is_wrong_fails_and_is_never_metered) {
  const auto opened = how();
  const auto fails = [&](const char* words) {
    std::vector<TriedCandidate> all{tried(code())};
    const auto reads = package_.reads;
    const auto got = measure_hosts(all, baseline_, opened);
    ASSERT_TRUE(got) << to_text(got.error());
    EXPECT_THAT(*got, IsEmpty());
    EXPECT_EQ(all[0].state, TriedCandidate::State::failed);
    EXPECT_EQ(all[0].why->code, RefusalCode::wrong_output);
    EXPECT_THAT(all[0].why->what, AllOf(HasSubstr("openblas.matmul"), HasSubstr(words)));
    EXPECT_EQ(package_.reads, reads);
  };
  value_ = kRight + 0.1F;
  fails("6 of 6 elements are wrong");
  value_ = std::nanf("");
  fails("found nan");
  value_ = kRight;
  step_ = 1e-5F; // within the tolerance, and another one each time
  fails("different outputs");
  step_ = 0;
  elements_ = 5;
  fails("output \"c_ptr\"");
}

TEST_F(HostCodes, what_stops_being_right_while_it_is_metered_has_no_cost) {
  wrong_from_ = 20;
  std::vector<TriedCandidate> all{tried(code())};
  const auto got = measure_hosts(all, baseline_, how());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, RefusalCode::wrong_output);
}

TEST_F(HostCodes, what_ran_and_was_not_measured_voids_its_shape) {
  freeze_after_open_ = true;
  std::vector<TriedCandidate> all{tried(code())};
  const auto got = measure_hosts(all, baseline_, how());
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, AllOf(HasSubstr("ran on the host and was not measured"),
                                      HasSubstr("meter powercap.intel-rapl.package-0: usable")));
  EXPECT_EQ(got.error().not_written, "the profile's row of made");
}

TEST_F(HostCodes, nothing_is_opened_where_there_is_no_host_code) {
  std::vector<TriedCandidate> all{tried(code())};
  all[0].state = TriedCandidate::State::unavailable;
  const auto got = measure_hosts(all, baseline_, how());
  ASSERT_TRUE(got);
  EXPECT_THAT(*got, IsEmpty());
  EXPECT_EQ(package_.reads, 0);
}

// The whole search of a shape on the simulated GPU, with a made package of equal provenance.
TEST_F(HostCodes, a_search_measures_the_board_and_the_host_each_by_its_own_meter) {
  auto machine = campaign::Machine::open({"sim", 1, {}, {}, {}});
  ASSERT_TRUE(machine) << to_text(machine.error());
  const evidence::DataRoot root(folder_.path());
  ASSERT_TRUE(root.initialise());
  const auto lease = campaign::BoardLease::acquire(root, **machine, "the test");
  ASSERT_TRUE(lease) << to_text(lease.error());
  baseline_.compiled.launch.work = kernel::DeclaredWork{{1 << 24}, {1 << 24}, {}};
  ShapeSpec spec;
  spec.shape = {"made", {{"m", 2}, {"n", 3}, {"k", 4}}};
  TuneSpec all;
  all.protocol.tier = *measure::tier_named("smoke-v1");
  all.warm_up = Seconds(3);
  const campaign::JobCallbacks callbacks;
  const SearchPlace place{root, **machine, *lease, callbacks, metering()};
  const auto shape = [&] {
    PreparedShape out;
    out.spec = &spec;
    TriedCandidate board;
    board.candidate = {"tiles", "triton.matmul", {{"block", 16}}};
    board.prepared = Prepared{board.candidate,
                              DeviceCode(std::make_shared<campaign::PreparedCase>(baseline_)),
                              {},
                              {},
                              {}};
    out.candidates = {board, tried(code())};
    return out;
  };
  auto first = shape();
  const auto searched = search_shape(first, all, place, 1, "the profile's row of made");
  ASSERT_TRUE(searched) << to_text(searched.error());
  EXPECT_THAT(searched->candidate, testing::ElementsAre(0U)); // the search of the board is its own
  EXPECT_EQ(first.candidates[1].state, TriedCandidate::State::ready);
  ASSERT_THAT(searched->hosts, SizeIs(1));
  EXPECT_EQ(searched->hosts[0].candidate, 1U);
  EXPECT_EQ(searched->hosts[0].meter.name, "powercap.intel-rapl.package-0");
  EXPECT_NEAR(searched->hosts[0].cost.energy.exact_nj, 60e6, 0.3e6);
  EXPECT_EQ(searched->outcome.contenders[0].cost->energy.meter.name, "sim.samples.total_power");
  freeze_after_open_ = true; // it ran, and was not measured: the board's cost is not kept either
  auto second = shape();
  EXPECT_FALSE(search_shape(second, all, place, 1, "the profile's row of made"));
}

} // namespace
} // namespace hebe::tune
