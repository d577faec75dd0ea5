// One job, written once. In: the parts of a run; out: a sealed directory. Invariant: a crash at any
// step leaves either no run or a whole one; the seal is the digest of the manifest, and the
// directory's name carries its first digits.
#pragma once

#include "evidence/data_root.hpp"
#include "measure/analysis.hpp"

#include <functional>

namespace hebe::evidence {

/// The campaign's job that a run is the result of.
struct JobIdentity {
  std::string campaign, job;
  bool operator==(const JobIdentity&) const = default;
};
[[nodiscard]] Json to_json(const JobIdentity& identity);
/// The "campaign" member of a manifest or capture record; none: a run of its own.
[[nodiscard]] std::optional<JobIdentity> job_identity_in(const Json& record);

struct RunParts {
  measure::Plan plan;
  std::string plan_id;
  Json environment; ///< schema hebe.environment/1
  measure::Acquisition acquisition;
  std::vector<measure::Window> windows;
  std::vector<meter::AlignedSample> samples;
  measure::Analysis analysis;
  std::optional<JobIdentity> campaign;
};

struct SealedRun {
  std::filesystem::path directory;
  std::string run_id, seal;
  std::uint64_t bytes = 0;
};

struct NamedBytes {
  std::string name, bytes;
};

/// What goes under one seal.
struct RunFiles {
  std::string kind, plan_id, provenance;
  std::optional<JobIdentity> campaign;
  std::vector<NamedBytes> files; ///< all but the manifest
};

/// `wall_us` names the directory (UTC). Refuses, leaving nothing under the final name, when the
/// disk is full or read-only; what was half-written is removed where that is possible. `accept`
/// sees the whole directory under its temporary name; when it refuses nothing is sealed.
using Acceptance = std::function<Status(const std::filesystem::path& unsealed)>;
[[nodiscard]] Result<SealedRun> seal_files(const DataRoot& root, RunFiles files,
                                           std::int64_t wall_us, const Acceptance& accept = {});

/// Everything at once, with no capture before (evidence/captured_run.hpp).
[[nodiscard]] Result<SealedRun> seal_run(const DataRoot& root, const RunParts& parts,
                                         std::int64_t wall_us);

inline constexpr std::size_t kSealDigitsInName = 16;

/// windows.jsonl: the acquisition, then one window a line.
[[nodiscard]] Result<std::string> windows_jsonl(const measure::Acquisition& acquisition,
                                                std::span<const measure::Window> windows);
/// plan.json, environment.json, windows.jsonl and analysis.json.
[[nodiscard]] Result<std::vector<NamedBytes>> text_files_of(const RunParts& parts);
/// [{"path", "bytes", "sha256"}], as manifests list files.
[[nodiscard]] Json file_list(const std::vector<NamedBytes>& files);
/// "20260921T141523Z" and the like; `format` as in strftime, UTC.
[[nodiscard]] std::string utc_stamp(const char* format, std::int64_t wall_us);
/// runs/YYYY/MM/DD of that time.
[[nodiscard]] std::filesystem::path day_folder(const DataRoot& root, std::int64_t wall_us);

} // namespace hebe::evidence
