// One job, written once. In: the parts of a run; out: a sealed directory. Invariant: a crash at any
// step leaves either no run or a whole one; the seal is the digest of the manifest, and the
// directory's name carries its first digits.
#pragma once

#include "evidence/data_root.hpp"
#include "measure/analysis.hpp"

#include <functional>

namespace hebe::evidence {

struct RunParts {
  measure::Plan plan;
  std::string plan_id;
  Json environment; ///< schema hebe.environment/1
  measure::Acquisition acquisition;
  std::vector<measure::Window> windows;
  std::vector<meter::AlignedSample> samples;
  measure::Analysis analysis;
};

struct SealedRun {
  std::filesystem::path directory;
  std::string run_id, seal;
  std::uint64_t bytes = 0;
};

/// Called before each step of sealing with its name; tests kill the process there.
using SealObserver = std::function<void(std::string_view step)>;

/// `wall_us` names the directory (UTC). Refuses, leaving nothing under the final name, when the
/// disk is full or read-only; what was half-written is removed where that is possible.
[[nodiscard]] Result<SealedRun> seal_run(const DataRoot& root, const RunParts& parts,
                                         std::int64_t wall_us, const SealObserver& observer = {});

inline constexpr std::size_t kSealDigitsInName = 16;

/// windows.jsonl: the acquisition, then one window a line.
[[nodiscard]] Result<std::string> windows_jsonl(const measure::Acquisition& acquisition,
                                                std::span<const measure::Window> windows);

} // namespace hebe::evidence
