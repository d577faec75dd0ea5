#include "evidence/data_root.hpp"

#include "core/files.hpp"

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

std::vector<fs::path> DataRoot::in_days(std::string_view prefix,
                                        const std::string& first_day) const {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::recursive_directory_iterator
           it(runs(), fs::directory_options::skip_permission_denied, ec),
       end;
       !ec && it != end; it.increment(ec)) {
    if (it.depth() == 2 && !first_day.empty() &&
        it->path().lexically_relative(runs()).string() < first_day)
      it.disable_recursion_pending();
    if (it.depth() != 3) continue;
    it.disable_recursion_pending();
    const auto name = it->path().filename().string();
    const bool wanted = prefix.empty() ? !name.starts_with('.') : name.starts_with(prefix);
    if (wanted && it->is_directory(ec) && !it->is_symlink(ec)) out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> DataRoot::unsealed() const {
  auto out = in_days(kUnsealedPrefix);
  std::error_code ec;
  for (const auto& folder : {campaigns(), datasets(), analyses()})
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
      if (it->path().filename().string().starts_with(kUnsealedPrefix)) out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}
std::vector<fs::path> DataRoot::captured() const { return in_days(kCapturedPrefix); }
std::vector<fs::path> DataRoot::sealed(const std::string& first_day) const {
  return in_days({}, first_day);
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
