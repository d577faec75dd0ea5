// Sealed simulated runs of one data root, for tests of what is made from them. In: seeds; out: run
// directories. Invariant: run n is sealed n minutes after the first, so that ids sort as they were
// made.
#pragma once

#include "evidence/sealed_run.hpp"

#include "core/sha256.hpp"

#include "made_run.hpp"
#include "scratch_folder.hpp"

#include <map>

namespace hebe::test {

/// A plan with the whole subject of a real one, so that every mechanism column has a source.
inline measure::Plan plan_with_subject(std::uint64_t seed) {
  auto plan = smoke_plan(3, seed);
  plan.subject["launch"] = vector_launch();
  plan.subject["source"] = "vector_add.py";
  plan.subject["compile"] = {{"triton", "3.6.0"}, {"metadata", {{"num_stages", 3}}}};
  return plan;
}

inline const evidence::RunParts& parts_of_seed(std::uint64_t seed) {
  static std::map<std::uint64_t, evidence::RunParts> made;
  if (const auto hit = made.find(seed); hit != made.end()) return hit->second;
  auto parts = made_run(plan_with_subject(seed));
  parts.acquisition.occupancy = {{"A",
                                  {{"registers", 26},
                                   {"local_bytes", 0},
                                   {"static_shared_bytes", 0},
                                   {"blocks_per_multiprocessor", 16}}},
                                 {"B", {{"unavailable", "the test says so"}}}};
  return made.emplace(seed, std::move(parts)).first->second;
}

inline std::filesystem::path sealed_with_seed(const evidence::DataRoot& root, std::uint64_t seed,
                                              int minute = 0) {
  constexpr std::int64_t kWhen = 1'790'000'123'456'789;
  return evidence::seal_run(root, parts_of_seed(seed), kWhen + minute * std::int64_t{60'000'000})
      .value()
      .directory;
}

/// What a forger does: a document changed, digests put right, the directory named after the seal.
inline std::filesystem::path reseal(const std::filesystem::path& run,
                                    const std::function<void(Json&)>& change_manifest) {
  auto manifest = Json::parse(bytes_of(run / "manifest.json"));
  change_manifest(manifest);
  const auto text = canonical_json(manifest).value() + "\n";
  overwrite(run / "manifest.json", text);
  const auto name = run.filename().string();
  auto renamed =
      run.parent_path() / (name.substr(0, name.rfind('-') + 1) + sha256_hex(text).substr(0, 16));
  std::filesystem::rename(run, renamed);
  return renamed;
}

} // namespace hebe::test
