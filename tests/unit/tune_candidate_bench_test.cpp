#include "tune/candidate_bench.hpp"

#include "gpu/sim_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hebe::tune {
namespace {

using testing::HasSubstr;

kernel::Argument buffer(std::string name, kernel::Role role) {
  kernel::Argument a;
  a.name = std::move(name);
  a.dtype = kernel::DType::fp32;
  a.is_buffer = true;
  a.shape = {64};
  a.role = role;
  if (role == kernel::Role::in) a.init = kernel::Initialiser{};
  return a;
}

kernel::LaunchSpec launch(std::string name = "copy") {
  kernel::LaunchSpec out;
  out.name = std::move(name);
  out.arch = 90;
  out.arguments = {buffer("x_ptr", kernel::Role::in), buffer("y_ptr", kernel::Role::out)};
  out.work = kernel::DeclaredWork{{1 << 20}, {1 << 20}, {}};
  return out;
}

TEST(SameOperation, takes_the_same_buffers_in_any_order) {
  auto other = launch("other");
  std::swap(other.arguments[0], other.arguments[1]);
  EXPECT_TRUE(same_operation(launch(), other));
}

TEST(SameOperation, another_type_shape_role_or_value_is_another_operation) {
  const auto refused = [](auto change) {
    auto other = launch("other");
    change(other);
    const auto status = same_operation(launch(), other);
    return status ? std::string("accepted") : status.error().what;
  };
  EXPECT_THAT(refused([](auto& l) { l.arguments[0].dtype = kernel::DType::fp16; }),
              HasSubstr("x_ptr"));
  EXPECT_THAT(refused([](auto& l) { l.arguments[1].shape = {32}; }), HasSubstr("y_ptr"));
  EXPECT_THAT(refused([](auto& l) { l.arguments[1].role = kernel::Role::inout; }),
              HasSubstr("role"));
  EXPECT_THAT(refused([](auto& l) { l.arguments[0].init->seed = 7; }), HasSubstr("values"));
  EXPECT_THAT(refused([](auto& l) { l.arguments[0].init.reset(); }), HasSubstr("values"));
  EXPECT_THAT(refused([](auto& l) { l.arguments.pop_back(); }), HasSubstr("buffers"));
  EXPECT_THAT(refused([](auto& l) { l.arguments[0].name = "z"; }), HasSubstr("\"z\""));
}

TEST(SameOperation, a_candidate_is_held_to_the_baselines_tolerance_and_outputs) {
  campaign::PreparedCase baseline;
  baseline.compiled.launch = launch();
  baseline.compiled.launch.atol = 1e-6;
  baseline.inputs = {{"x_ptr", "digest"}};
  kernel::CompiledCase lax;
  lax.launch = launch("lax");
  lax.launch.atol = 1e9;
  const auto code = in_place_of(baseline, lax);
  ASSERT_TRUE(code) << to_text(code.error());
  EXPECT_EQ((*code)->compiled.launch.atol, 1e-6);
  EXPECT_EQ((*code)->inputs, baseline.inputs);
}

TEST(CannotRun, holds_for_what_the_platform_does_not_take_and_for_no_meter) {
  for (const auto code : {RefusalCode::case_failed, RefusalCode::compile_failed,
                          RefusalCode::unsupported, RefusalCode::driver_unavailable})
    EXPECT_TRUE(cannot_run(code)) << name_of(code);
  for (const auto code :
       {RefusalCode::meter_frozen, RefusalCode::meter_failed, RefusalCode::gate_failed,
        RefusalCode::wrong_output, RefusalCode::interrupted, RefusalCode::driver_call_failed})
    EXPECT_FALSE(cannot_run(code)) << name_of(code);
}

class Bench : public testing::Test {
protected:
  Bench() { baseline_.compiled.launch = launch(); }
  TriedCandidate candidate(DeviceCode code) {
    TriedCandidate out;
    out.candidate = {"made", "made.copy", {{"n", 1}}};
    out.prepared = Prepared{out.candidate, std::move(code), {}, {}, {}};
    return out;
  }
  VirtualClock clock_;
  gpu::SimBoard board_{clock_, {}, 1};
  gpu::SimDevice device_{board_, gpu::sim_device_info()};
  campaign::PreparedCase baseline_;
};

TEST_F(Bench, code_of_the_host_is_none_of_the_boards) {
  auto bench = CandidateBench::make(device_, baseline_);
  ASSERT_TRUE(bench) << to_text(bench.error());
  TriedCandidate host;
  host.candidate = {"openblas", "openblas.gemm", Json::object()};
  host.prepared = Prepared{host.candidate, HostCode{}, {}, {}, {}};
  const auto place = bench->add(host);
  ASSERT_TRUE(place) << to_text(place.error());
  EXPECT_FALSE(*place);
  EXPECT_EQ(host.state, TriedCandidate::State::unavailable);
}

TEST_F(Bench, what_the_device_cannot_price_or_load_is_unavailable) {
  auto bench = CandidateBench::make(device_, baseline_);
  ASSERT_TRUE(bench) << to_text(bench.error());
  auto unpriced = launch("unpriced");
  unpriced.work.reset();
  kernel::CompiledCase compiled;
  compiled.launch = unpriced;
  auto tried = candidate(in_place_of(baseline_, compiled).value());
  const auto place = bench->add(tried);
  ASSERT_TRUE(place) << to_text(place.error());
  EXPECT_FALSE(*place);
  EXPECT_EQ(tried.state, TriedCandidate::State::unavailable);
  EXPECT_THAT(tried.why->what, HasSubstr("declares no work"));
}

} // namespace
} // namespace hebe::tune
