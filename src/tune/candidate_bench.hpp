// A shape's candidates over one set of buffers on one device. In: candidates made ready; out: each
// checked against the baseline's outputs and captured as a graph of known length. Invariant: what
// is wrong, or does not load, is never measured; all that are measured read the same inputs at the
// same addresses.
#pragma once

#include "measure/arms.hpp"
#include "measure/window_series.hpp"
#include "qualify/launch_buffers.hpp"
#include "tune/backend.hpp"

namespace hebe::tune {

/// A candidate with why it is not measured, if it is not.
struct TriedCandidate {
  enum class State { ready, unavailable, failed, not_drawn } state = State::ready;
  Candidate candidate;
  std::optional<Refusal> why;       ///< unavailable, failed
  std::optional<Prepared> prepared; ///< ready, failed
};
[[nodiscard]] std::string_view name_of(TriedCandidate::State state);

class CandidateBench {
public:
  /// `baseline` outlives the bench.
  [[nodiscard]] static Result<CandidateBench> make(gpu::Device& device,
                                                   const campaign::PreparedCase& baseline);
  /// Loads, checks and sizes a candidate; its place among the loads. A refusal that does not end
  /// the shape is the candidate's: unavailable where it cannot run, failed where it is wrong.
  [[nodiscard]] Result<std::optional<std::size_t>> add(TriedCandidate& candidate);
  [[nodiscard]] measure::SteadyLoad load(std::size_t index) const;

private:
  struct Loaded {
    DeviceCode code;
    std::unique_ptr<gpu::Kernel> kernel;
    measure::SizedGraph graph;
  };
  CandidateBench(gpu::Device& device, const campaign::PreparedCase& baseline,
                 qualify::LaunchBuffers buffers)
      : device_(&device), baseline_(&baseline), buffers_(std::move(buffers)) {}
  [[nodiscard]] Status load_onto(Loaded& loaded) const;
  [[nodiscard]] Result<Loaded> checked(const TriedCandidate& candidate);
  /// After a kernel that wrote where it must not: new buffers, and all that are loaded on them.
  [[nodiscard]] Status renew_if_damaged();

  gpu::Device* device_;
  const campaign::PreparedCase* baseline_;
  qualify::LaunchBuffers buffers_;
  std::vector<Loaded> loads_;
};

} // namespace hebe::tune
