#include "evidence/data_root.hpp"

#include "core/files.hpp"
#include "evidence/run_tree.hpp"
#include "evidence/sealed_run.hpp"

#include <algorithm>

#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;

std::vector<fs::path> DataRoot::folders() const {
  std::vector<fs::path> out;
  for (const char* name : {"artifacts", "qualifications", "campaigns", "runs", "studies",
                           "analyses", "datasets", "profiles", "receipts", "leases", "cache"})
    out.push_back(path_ / name);
  return out;
}

Status DataRoot::initialise() const {
  for (const auto& folder : folders()) {
    HEBE_CHECK(check_inside(path_, folder));
    HEBE_CHECK(make_directories(folder));
    // A file system that went read-only still lets existing folders be "created".
    if (::access(folder.c_str(), W_OK) != 0)
      return std::unexpected(io_refusal(errno, "write to", folder));
  }
  return {};
}

std::vector<fs::path> DataRoot::in_days(TreeKind kind, const std::string& first_day) const {
  std::vector<fs::path> out; // in the order of names
  (void)walk_run_tree(runs(), [&](TreeEntry entry) -> Status {
    if (entry.kind == kind &&
        (first_day.empty() ||
         entry.path.parent_path().lexically_relative(runs()).string() >= first_day))
      out.push_back(std::move(entry.path));
    return {};
  });
  return out;
}

std::vector<fs::path> DataRoot::unsealed() const {
  auto out = in_days(TreeKind::half_written);
  for (const auto& folder : {campaigns(), datasets(), analyses(), studies()})
    if (const auto entries = list_folder(folder))
      for (const auto& entry : *entries)
        if (entry.name.starts_with(kUnsealedPrefix)) out.push_back(folder / entry.name);
  std::sort(out.begin(), out.end());
  return out;
}
std::vector<fs::path> DataRoot::links() const { return in_days(TreeKind::symbolic_link); }
std::vector<fs::path> DataRoot::captured() const { return in_days(TreeKind::captured); }
std::vector<fs::path> DataRoot::sealed(const std::string& first_day) const {
  return in_days(TreeKind::run, first_day);
}

Result<fs::path> DataRoot::find_run(const std::string& name) const {
  std::error_code ec;
  if (fs::path direct = fs::path(name).lexically_normal(); fs::is_directory(direct, ec)) {
    if (!direct.has_filename()) direct = direct.parent_path();
    if (direct.filename().string().starts_with(kUnsealedPrefix))
      return refuse(RefusalCode::half_written,
                    "this run was never sealed: the process that wrote it died",
                    "measure again; the directory may be deleted", direct.string());
    if (direct.filename().string().starts_with(kCapturedPrefix))
      return refuse(RefusalCode::half_written, "this measurement is finished but not sealed yet",
                    "seal it with `hebe ingest`", direct.string());
    return direct;
  }
  std::vector<fs::path> hits;
  for (const auto& run : sealed())
    if (run.filename().string().find(name) != std::string::npos) hits.push_back(run);
  if (hits.empty())
    return refuse(RefusalCode::not_found, "no run is named \"" + name + "\"",
                  "give a run directory, or part of a run id below " + runs().string());
  if (hits.size() > 1)
    return refuse(RefusalCode::bad_argument,
                  "\"" + name + "\" fits " + std::to_string(hits.size()) + " runs",
                  "give more of the run id, e.g. " + hits.front().filename().string());
  return hits.front();
}

std::optional<fs::path> DataRoot::find_sealed(const std::string& seal) const {
  const auto ending = "-" + seal.substr(0, kSealDigitsInName);
  std::optional<fs::path> newest; // names sort by time
  for (auto& run : sealed())
    if (run.filename().string().ends_with(ending)) newest = std::move(run);
  return newest;
}

std::optional<fs::path> DataRoot::newest_run() const {
  const auto all = sealed(); // names sort by time
  if (all.empty()) return std::nullopt;
  return all.back();
}

std::optional<DataRoot> root_of_run(const fs::path& run) {
  auto folder = fs::absolute(run).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  for (int i = 0; i < 4; ++i) folder = folder.parent_path(); // DD, MM, YYYY, runs
  if (folder.filename() != "runs") return std::nullopt;
  return DataRoot(folder.parent_path());
}

} // namespace hebe::evidence
