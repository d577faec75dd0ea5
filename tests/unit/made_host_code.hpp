// Host code of a made package: its runs take time and energy of it. In: what its output is to be;
// out: a candidate, a meter that reads the package, the baseline that it is held against.
// Invariant: what is metered follows from the made clock and the runs alone.
#pragma once

#include "core/files.hpp"
#include "tune/host_search.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "../data/support/scratch_folder.hpp"
#include "made_package.hpp"
#include "matmul_launch.hpp"

namespace hebe::test {

inline constexpr float kRight = 3;

// Host code with one output of six elements, "c_ptr", whose runs take time and energy of a package.
class HostCodes : public testing::Test {
protected:
  void SetUp() override {
    baseline_.compiled.launch = test::matmul_launch(2, 3, 4, "fp32");
    baseline_.compiled.launch.atol = 1e-3;
    const std::vector<float> right(6, kRight);
    const auto bytes = std::as_bytes(std::span(right));
    const auto file = folder_ / "expected";
    ASSERT_TRUE(write_file_whole(
        file, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
    baseline_.expected["c_ptr"].dtype = kernel::DType::fp32;
    baseline_.expected["c_ptr"].file = file;
  }

  tune::HostCode code() {
    return {[this](std::int64_t times) -> Status {
              runs_ += times;
              if (runs_ >= wrong_from_) value_ = kRight + 1;
              return package_.work(times);
            },
            [this](const std::string& name) -> Result<std::vector<std::byte>> {
              EXPECT_EQ(name, "c_ptr");
              const std::vector<float> made(elements_, value_ + step_ * static_cast<float>(runs_));
              const auto bytes = std::as_bytes(std::span(made));
              return std::vector<std::byte>(bytes.begin(), bytes.end());
            }};
  }
  static tune::TriedCandidate tried(tune::HostCode made) {
    tune::TriedCandidate out;
    out.candidate = {"host", "openblas.matmul", {{"threads", 3}}};
    out.prepared = tune::Prepared{out.candidate, std::move(made), std::string(64, 'e'), "made", {}};
    return out;
  }
  tune::HostSearch how() {
    tune::HostSearch out;
    out.metering = metering();
    out.may_continue = []() -> Status { return {}; };
    out.not_written = "the profile's row of made";
    return out;
  }
  tune::HostMetering metering() {
    return {Provenance::simulated, [this](const tune::HostWindows& windows) {
              auto meter = tune::HostMeter::open(package_.sources(), package_.clock,
                                                 Provenance::simulated, windows);
              if (freeze_after_open_) package_.frozen = true;
              return meter;
            }};
  }

  ScratchFolder folder_;
  MadePackage package_;
  campaign::PreparedCase baseline_;
  std::int64_t runs_ = 0, wrong_from_ = std::numeric_limits<std::int64_t>::max();
  float value_ = kRight, step_ = 0;
  std::size_t elements_ = 6;
  bool freeze_after_open_ = false;
};

} // namespace hebe::test
