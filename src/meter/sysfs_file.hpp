// One number in one small kernel file. In: a path; out: the integer, or a refusal that names the
// file and the fix. Invariant: a file that is missing, empty, no text file, or holds anything but
// one integer in the allowed range never gives a number, and reading never waits for a writer.
#pragma once

#include "core/files.hpp"
#include "meter/source.hpp"

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace hebe::meter {

/// What may be in a file, and what to do where the file may not be read.
struct SysfsNumber {
  std::int64_t at_least = 0;
  std::int64_t at_most = std::numeric_limits<std::int64_t>::max();
  std::string permission_fix; ///< empty: a chmod of the file
};

/// Two steps, so that what happens between them can be tested.
[[nodiscard]] Result<FileDescriptor> open_sysfs(const std::filesystem::path& path,
                                                const std::string& permission_fix = {});
/// Text without the white space around it; refuses an empty file and one that was removed.
[[nodiscard]] Result<std::string> read_sysfs(const FileDescriptor& fd,
                                             const std::filesystem::path& path);

[[nodiscard]] Result<std::string> sysfs_text(const std::filesystem::path& path,
                                             const std::string& permission_fix = {});
[[nodiscard]] Result<std::int64_t> sysfs_integer(const std::filesystem::path& path,
                                                 const SysfsNumber& allowed = {});

/// Names in a folder, sorted; an absent folder has none.
[[nodiscard]] Result<std::vector<std::string>> names_in(const std::filesystem::path& folder);
[[nodiscard]] bool is_there(const std::filesystem::path& path);
/// "Linux 6.1.0-18-amd64", or "Linux" where the tree does not say.
[[nodiscard]] std::string kernel_release(const std::filesystem::path& root);
/// "Intel", "AMD" or "unknown".
[[nodiscard]] std::string cpu_vendor(const std::filesystem::path& root);
/// The path as the tree's own root sees it: "/sys/class/...".
[[nodiscard]] std::string below_root(const std::filesystem::path& root,
                                     const std::filesystem::path& path);

/// Calls `read` with the host's monotonic time around it.
[[nodiscard]] Result<SourceReading>
timed_reading(const std::function<Result<std::int64_t>()>& read);

} // namespace hebe::meter
