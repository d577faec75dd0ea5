// Facts about an external meter beside a probe: gain and offset of the buffer are found from its
// log, and a log of something else is refused.
#include "measure/external_findings.hpp"

#include <gtest/gtest.h>

#include "../data/support/probed_gpu.hpp"

namespace hebe::measure {
namespace {

TEST(ExternalFindings, gain_and_offset_of_the_buffer_are_found_with_the_clocks_distance) {
  VirtualClock clock;
  gpu::SimBoard board(clock, {}, 1);
  gpu::SimDevice device(board, gpu::sim_device_info());
  meter::SimMeter meter(board, device.info());
  ProbeSchedule schedule;
  schedule.signature_slot = Seconds(0.3);
  auto recording = test::probe(board, device, meter, schedule).value();
  EXPECT_TRUE(external_findings(recording).is_null());
  const auto signature = std::find_if(recording.phases.begin(), recording.phases.end(),
                                      [](auto& p) { return p.name == "signature"; });
  ASSERT_NE(signature, recording.phases.end());
  // What an external meter would have logged: the true power, with a load of its own of 20 W before
  // the board and a gain of 0.95 on it, on a clock 3.5 s behind.
  std::vector<double> t, w;
  for (auto at = Instant(Nanos(signature->begin_ns));
       at.time_since_epoch().count() < signature->end_ns; at += std::chrono::milliseconds(50)) {
    const double seconds = static_cast<double>(at.time_since_epoch().count() - signature->begin_ns);
    t.push_back(seconds * 1e-9 + 3.5);
    w.push_back((board.mean_power(at - std::chrono::milliseconds(50), at).value() - 20) / 0.95);
  }
  recording.sources.push_back(external_record(t, w));
  const auto found = external_findings(recording);
  ASSERT_TRUE(found.at("aligned").get<bool>()) << found.dump(1);
  EXPECT_NEAR(found.at("clock_offset_s").get<double>(), 3.5, 0.05);
  EXPECT_NEAR(found.at("gain_ratio").get<double>(), 0.95, 0.005);
  EXPECT_NEAR(found.at("offset_w").get<double>(), 20, 2);
}

TEST(ExternalFindings, a_log_without_the_signature_is_refused_with_a_reason) {
  auto recording = test::probed();
  std::vector<double> t, w;
  for (int i = 0; i < 600; ++i) t.push_back(0.1 * i), w.push_back(100 + i % 3);
  recording.sources.push_back(external_record(t, w));
  const auto found = external_findings(recording);
  EXPECT_FALSE(found.at("aligned").get<bool>());
  EXPECT_FALSE(found.at("refused").at("what").get<std::string>().empty());
}

} // namespace
} // namespace hebe::measure
