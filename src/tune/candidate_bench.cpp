#include "tune/candidate_bench.hpp"

#include "qualify/kernel_check.hpp"

namespace hebe::tune {

std::string_view name_of(TriedCandidate::State state) {
  switch (state) {
  case TriedCandidate::State::ready:
    return "ready";
  case TriedCandidate::State::unavailable:
    return "unavailable";
  case TriedCandidate::State::failed:
    return "failed";
  case TriedCandidate::State::not_drawn:
    return "not_drawn";
  }
  return "failed";
}

Result<CandidateBench> CandidateBench::make(gpu::Device& device,
                                            const campaign::PreparedCase& baseline) {
  HEBE_TRY(auto buffers, qualify::LaunchBuffers::make(device, baseline.compiled.launch));
  return CandidateBench(device, baseline, std::move(buffers));
}

Status CandidateBench::load_onto(Loaded& out) const {
  const auto& compiled = out.code->compiled;
  HEBE_TRY(const auto places, qualify::same_buffers(baseline_->compiled.launch, compiled.launch));
  const auto all = buffers_.pointers();
  std::vector<gpu::DevicePointer> own;
  for (const auto place : places) own.push_back(all[place]);
  const auto image =
      qualify::image_of(compiled, qualify::LaunchBuffers::functional_model(
                                      *device_, compiled.launch, baseline_->expected, own));
  HEBE_TRY(out.kernel, device_->load(image, own));
  return {};
}

Result<CandidateBench::Loaded> CandidateBench::checked(const TriedCandidate& tried) {
  if (std::holds_alternative<HostCode>(tried.prepared->code))
    return refuse(RefusalCode::unsupported,
                  "it runs on the host: the board's meter does not see its energy");
  Loaded out;
  out.code = std::get<DeviceCode>(tried.prepared->code);
  HEBE_CHECK(load_onto(out));
  HEBE_CHECK(qualify::check_kernel(*device_, buffers_, *out.kernel, out.code->compiled.launch,
                                   baseline_->expected, text_of(tried.candidate)));
  HEBE_TRY(out.graph, measure::size_graph(*device_, *out.kernel));
  return out;
}

Status CandidateBench::renew_if_damaged() {
  if (buffers_.canaries_intact() && buffers_.inputs_intact()) return {};
  HEBE_TRY(buffers_, qualify::LaunchBuffers::make(*device_, baseline_->compiled.launch));
  for (auto& l : loads_) {
    l.graph = {};
    HEBE_CHECK(load_onto(l));
    HEBE_CHECK(device_->launch_once(*l.kernel)); // the simulated GPU prices what it counted then
    HEBE_TRY(l.graph, measure::size_graph(*device_, *l.kernel));
  }
  return {};
}

Result<std::optional<std::size_t>> CandidateBench::add(TriedCandidate& tried) {
  auto made = checked(tried);
  if (made) {
    loads_.push_back(std::move(*made));
    return std::optional(loads_.size() - 1);
  }
  const auto code = made.error().code;
  const bool wrong = code == RefusalCode::wrong_output || code == RefusalCode::out_of_bounds ||
                     code == RefusalCode::kernel_failed;
  if (!wrong && !cannot_run(code)) return std::unexpected(std::move(made).error());
  tried.state = wrong ? TriedCandidate::State::failed : TriedCandidate::State::unavailable;
  tried.why = std::move(made).error();
  HEBE_CHECK(renew_if_damaged());
  return std::optional<std::size_t>();
}

measure::SteadyLoad CandidateBench::load(std::size_t index) const {
  const auto& l = loads_[index];
  return {l.graph.graph.get(), l.graph.launches, l.graph.replay_time};
}

} // namespace hebe::tune
