#include "evidence/dataset.hpp"

#include "core/parallel.hpp"
#include "evidence/dataset_verify.hpp"
#include "evidence/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

Result<std::vector<fs::path>> directories_for(const DataRoot& root, const DatasetRequest& r) {
  std::vector<fs::path> out;
  if (r.runs.empty()) return root.sealed();
  for (const auto& name : r.runs) {
    HEBE_TRY(auto directory, root.find_run(name));
    out.push_back(fs::absolute(directory).lexically_normal());
  }
  return out;
}

// Campaign of a run without verifying it: what is not of the campaign need not be whole.
bool is_of(const fs::path& directory, const std::string& campaign) {
  const auto run = read_stored_run(directory);
  return run && run->campaign_id() == campaign;
}

Result<DatasetPlan::Run> verified(const fs::path& directory) {
  const auto named = [&](Refusal r) {
    r.what = "run " + directory.filename().string() + " does not verify: " + r.what;
    r.next = "see `hebe run-verify " + directory.string() + "`";
    return std::unexpected(std::move(r));
  };
  HEBE_TRY(const auto report, verify_run(directory));
  if (!report.valid()) return named(report.problems.front());
  auto run = read_stored_run(directory);
  if (!run) return named(run.error());
  // It is read again when it is written: the seal says that it is still the verified one.
  if (run->seal != report.seal)
    return named({RefusalCode::digest_mismatch, "it changed while it was read", {}, {}, {}});
  return DatasetPlan::Run{directory, run->run_id, run->seal, run->provenance(), run->kind()};
}

// Runs of one seal hold the same bytes (a simulated run repeated with its seed): they count once,
// under the first name.
void keep_one_of_each(DatasetPlan& plan) {
  std::map<std::string, std::string> first; // seal to run id
  std::vector<DatasetPlan::Run> kept;
  for (auto& run : plan.runs) {
    const auto [hit, is_new] = first.emplace(run.seal, run.run_id);
    if (is_new)
      kept.push_back(std::move(run));
    else if (hit->second != run.run_id)
      plan.origin.same_content.emplace_back(run.run_id, run.seal);
  }
  plan.runs = std::move(kept);
}

Status one_way_of_asking(const DatasetRequest& r) {
  const int asked = int{!r.runs.empty()} + int{!r.campaign.empty()} + int{r.all};
  if (asked == 1) return {};
  return refuse(RefusalCode::bad_argument,
                asked == 0 ? "which runs the dataset is made from was not said"
                           : "runs, --campaign and --all exclude each other",
                "give run ids, or --campaign ID, or --all");
}

} // namespace

Result<DatasetPlan> plan_dataset(const DataRoot& root, const DatasetRequest& request) {
  HEBE_CHECK(one_way_of_asking(request));
  HEBE_TRY(auto directories, directories_for(root, request));
  const auto threads = request.threads == 0 ? core_count() : request.threads;
  DatasetPlan plan;
  plan.origin.campaign = request.campaign;
  std::vector<std::optional<DatasetPlan::Run>> found(directories.size());
  HEBE_CHECK(for_each_index(directories.size(), threads, [&](std::size_t i) -> Status {
    if (!request.campaign.empty() && !is_of(directories[i], request.campaign)) return {};
    HEBE_TRY(found[i], verified(directories[i]));
    return {};
  }));
  for (auto& run : found)
    if (run) plan.runs.push_back(std::move(*run));
  if (plan.runs.empty())
    return refuse(RefusalCode::not_found,
                  request.campaign.empty() ? "there is no run in this data root"
                                           : "no run is of campaign \"" + request.campaign + "\"",
                  "measure first, or give another --data-root", root.runs().string());
  std::sort(plan.runs.begin(), plan.runs.end(), [](auto& a, auto& b) {
    return std::tie(a.provenance, a.kind, a.run_id) < std::tie(b.provenance, b.kind, b.run_id);
  });
  keep_one_of_each(plan);
  return plan;
}

Result<StoredDataset> take_dataset(const DataRoot& root, const DatasetPlan& plan,
                                   PartBounds bounds) {
  auto taken = [&]() -> Result<StoredDataset> {
    DatasetWriter writer(root, plan.origin, bounds);
    for (const auto& r : plan.runs) {
      HEBE_TRY(const auto run, read_stored_run(r.directory, Telemetry::read));
      if (run.seal != r.seal)
        return refuse(RefusalCode::digest_mismatch, "the run changed since it was verified",
                      "see `hebe run-verify`", r.directory.string());
      HEBE_CHECK(writer.add(run));
    }
    return writer.finish();
  }();
  if (!taken) {
    if (taken.error().not_written.empty())
      taken.error().not_written =
          root.datasets().string() + "/" + std::string(kDatasetPrefix) + "…";
    return taken;
  }
  if (taken->existed) {
    DatasetVerifyRequest files_only;
    files_only.recompute = false;
    HEBE_TRY(const auto report, verify_dataset(root, taken->directory, files_only));
    if (!report.valid()) return std::unexpected(report.problems.front());
  }
  return taken;
}

Result<fs::path> find_dataset(const DataRoot& root, const std::string& name) {
  std::error_code ec;
  if (!name.empty() && fs::is_directory(name, ec)) {
    auto direct = fs::absolute(name).lexically_normal();
    return direct.has_filename() ? direct : direct.parent_path();
  }
  std::vector<std::pair<fs::file_time_type, fs::path>> hits;
  for (const auto& entry : fs::directory_iterator(root.datasets(), ec)) {
    const auto id = entry.path().filename().string();
    std::error_code gone;
    if (id.starts_with(kDatasetPrefix) && id.find(name) != std::string::npos)
      hits.emplace_back(entry.last_write_time(gone), entry.path());
  }
  std::sort(hits.begin(), hits.end());
  if (hits.empty())
    return refuse(RefusalCode::not_found,
                  name.empty() ? "there is no dataset in this data root"
                               : "no dataset is named \"" + name + "\"",
                  "take one with `hebe dataset-snapshot`", root.datasets().string());
  if (!name.empty() && hits.size() > 1)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("\"{}\" fits {} datasets", name, hits.size()), "give more of the id");
  return hits.back().second;
}

} // namespace hebe::evidence
