// Facts about stored traces, on one recorded from an H200 (driver 580.159.04).
#include "meter/replay_meter.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe::meter {
namespace {
using std::chrono::milliseconds;

const std::filesystem::path kSamples = HEBE_TEST_DATA "/h200/power-samples.csv",
                            kPolls = HEBE_TEST_DATA "/h200/poll.csv";

struct Row {
  double t;
  std::string tag;
  double instant_w;
  std::int64_t energy_mj;
};

// The trace itself, read without the code under test.
const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> out;
    std::istringstream text(test::bytes_of(kPolls));
    std::string line, cell;
    std::getline(text, line);
    while (std::getline(text, line)) {
      std::istringstream cells(line);
      std::vector<std::string> c;
      while (std::getline(cells, cell, ',')) c.push_back(cell);
      out.push_back({std::stod(c.at(0)), c.at(1), std::stod(c.at(3)) * 1e-3, std::stoll(c.at(5))});
    }
    return out;
  }();
  return all;
}

TEST(ReplayMeter, every_row_is_read_back_at_its_time) {
  VirtualClock clock;
  const auto start = clock.now();
  const auto meter = ReplayMeter::open(kSamples, kPolls, clock).value();
  ASSERT_EQ(rows().size(), 8644U);
  for (const auto& row : rows()) {
    clock.sleep_until(start + to_nanos(Seconds(row.t - rows().front().t)));
    const auto b = meter->read_boundary().value();
    ASSERT_EQ(*b.energy_mj, row.energy_mj) << row.t;
  }
  const auto samples = meter->read_power_samples(0).value();
  EXPECT_EQ(samples.size(), 119U);
  EXPECT_EQ(samples.front().raw_mw, 466'162);
  EXPECT_EQ(samples.back().raw_mw, 122'330);
}

TEST(ReplayMeter, samples_appear_as_their_time_comes) {
  VirtualClock clock;
  const auto meter = ReplayMeter::open(kSamples, kPolls, clock).value();
  EXPECT_EQ(meter->read_power_samples(0)->size(), 1U);
  clock.sleep_for(milliseconds(61));
  const auto four = meter->read_power_samples(0).value();
  ASSERT_EQ(four.size(), 4U);
  EXPECT_EQ(four[3].wall_us - four[0].wall_us, 59'650); // the stamps' own distances
  EXPECT_EQ(meter->read_power_samples(four[2].wall_us)->size(), 1U);
}

TEST(ReplayMeter, marks_are_the_traces_tags_in_order) {
  VirtualClock clock;
  const auto meter = ReplayMeter::open(kSamples, kPolls, clock).value();
  std::vector<std::string> tags;
  for (const auto& mark : meter->marks()) {
    tags.push_back(mark.tag);
    EXPECT_LT(mark.from, mark.to);
  }
  EXPECT_EQ(tags, (std::vector<std::string>{"idle", "load", "idle", "gemm", "idle", "sq0.02",
                                            "sq0.05", "sq0.1", "sq0.2", "sq0.5"}));
}

TEST(ReplayMeter, the_boards_counter_moves_about_every_100_ms) {
  std::vector<double> steps;
  double last = -1;
  for (std::size_t i = 1; i < rows().size(); ++i) {
    if (rows()[i].energy_mj == rows()[i - 1].energy_mj) continue;
    EXPECT_GT(rows()[i].energy_mj, rows()[i - 1].energy_mj);
    if (last > 0 && rows()[i].tag == rows()[i - 1].tag) steps.push_back(rows()[i].t - last);
    last = rows()[i].t;
  }
  ASSERT_GT(steps.size(), 300U);
  std::sort(steps.begin(), steps.end());
  EXPECT_NEAR(steps[steps.size() / 2], 0.1, 0.002);
  EXPECT_NEAR(steps[steps.size() / 10], 0.1, 0.004);
  EXPECT_NEAR(steps[steps.size() * 9 / 10], 0.1, 0.004);
}

// Counter and instant field over [first, last) between two updates of the counter, both in watts.
std::pair<double, double> powers(VirtualClock& clock, ReplayMeter& meter,
                                 const ReplayMeter::Mark& mark, std::size_t row) {
  std::optional<std::pair<Instant, std::int64_t>> first, last;
  std::int64_t previous = -1;
  double instant = 0, instant_at_last = 0;
  for (; row < rows().size() && rows()[row].tag == mark.tag && clock.now() <= mark.to; ++row) {
    const auto mj = *meter.read_boundary().value().energy_mj;
    if (previous >= 0 && mj != previous) {
      if (!first) first = {clock.now(), mj}, instant = 0;
      last = {clock.now(), mj};
      instant_at_last = instant;
    }
    previous = mj;
    if (row + 1 == rows().size()) break;
    const auto step = to_nanos(Seconds(rows()[row + 1].t - rows()[row].t));
    instant += rows()[row].instant_w * to_seconds(step).value();
    clock.sleep_for(step);
  }
  const double seconds = to_seconds(last->first - first->first).value();
  return {static_cast<double>(last->second - first->second) * 1e-3 / seconds,
          instant_at_last / seconds};
}

TEST(ReplayMeter, counter_and_instant_field_agree_over_a_long_stretch) {
  // Idle is constant: they agree within 0.5 %. The load steps up and down, and each end may be off
  // by one update of the counter: 2 x 0.1 s of 5 s.
  const std::tuple<std::size_t, double> table[] = {{0, 0.005}, {1, 0.04}};
  VirtualClock clock;
  const auto meter = ReplayMeter::open(kSamples, kPolls, clock).value();
  std::size_t row = 0;
  for (const auto& [index, bound] : table) {
    const auto& mark = meter->marks()[index];
    while (rows()[row].tag != mark.tag) ++row;
    clock.sleep_until(mark.from);
    const auto [counter_w, instant_w] = powers(clock, *meter, mark, row);
    EXPECT_GT(counter_w, 100);
    EXPECT_NEAR(counter_w / instant_w, 1, bound) << mark.tag;
  }
}

TEST(ReplayMeter, what_the_trace_lacks_is_unsupported_and_it_is_no_measurement) {
  VirtualClock clock;
  const auto meter = ReplayMeter::open(kSamples, kPolls, clock).value();
  const auto b = meter->read_boundary().value();
  for (const auto* field : {&b.temperature_c, &b.sm_clock_mhz, &b.memory_clock_mhz,
                            &b.event_reasons, &b.throttle.thermal_ns, &b.throttle.power_cap_ns})
    EXPECT_EQ(field->error().code, RefusalCode::meter_unsupported);
  EXPECT_EQ(meter->power_limit().error().code, RefusalCode::meter_unsupported);
  EXPECT_EQ(meter->board().provenance, Provenance::simulated);
}

TEST(ReplayMeter, a_bad_line_is_refused_by_file_and_line) {
  const test::ScratchFolder folder;
  const std::string good_samples = "1,2\n3,4\n",
                    header = "t,tag,avg_mw,inst_mw,usage_mw,energy_mj\n",
                    good_poll = header + "0.5,idle,1,2,3,4\n";
  struct Case {
    std::string samples, polls, where;
  };
  const Case table[] = {
      {"1,2\n3\n", good_poll, "samples.csv:2"},
      {"1,2\n\n3,x\n", good_poll, "samples.csv:3"},
      {"1,2,3\n", good_poll, "samples.csv:1"},
      {"1,2.5\n", good_poll, "samples.csv:1"},
      {"wall_us,power_mw\n1,2\n", good_poll, "samples.csv:1"},
      {good_samples, header + "0.5,idle,1,2,3\n", "poll.csv:2"},
      {good_samples, header + "0.5,idle,1,2,3,4\n0.6,idle,1,2,3,N/A\n", "poll.csv:3"},
      {good_samples, header + "soon,idle,1,2,3,4\n", "poll.csv:2"},
      {good_samples, "time,tag,avg_mw,inst_mw,usage_mw,energy_mj\n", "poll.csv:1"},
  };
  for (const auto& c : table) {
    test::overwrite(folder / "samples.csv", c.samples);
    test::overwrite(folder / "poll.csv", c.polls);
    VirtualClock clock;
    const auto meter = ReplayMeter::open(folder / "samples.csv", folder / "poll.csv", clock);
    ASSERT_FALSE(meter) << c.where;
    EXPECT_EQ(meter.error().code, RefusalCode::bad_schema);
    EXPECT_EQ(meter.error().where, (folder / c.where).string()) << meter.error().what;
  }
}

TEST(ReplayMeter, files_with_crlf_or_no_last_newline_are_read_and_empty_ones_refused) {
  const test::ScratchFolder folder;
  test::overwrite(folder / "samples.csv", "1,2\r\n3,4");
  test::overwrite(folder / "poll.csv",
                  "t,tag,avg_mw,inst_mw,usage_mw,energy_mj\r\n0,idle,1,2,3,4\r\n");
  VirtualClock clock;
  EXPECT_TRUE(ReplayMeter::open(folder / "samples.csv", folder / "poll.csv", clock));
  test::overwrite(folder / "samples.csv", "");
  EXPECT_EQ(ReplayMeter::open(folder / "samples.csv", folder / "poll.csv", clock).error().code,
            RefusalCode::meter_empty);
  EXPECT_EQ(ReplayMeter::open(folder / "absent.csv", folder / "poll.csv", clock).error().code,
            RefusalCode::io_failed);
}

} // namespace
} // namespace hebe::meter
