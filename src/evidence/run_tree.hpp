// What lies below runs/. In: a data root's runs folder; out: every run directory, and everything
// else that is there. Invariant: nothing is opened but folders, and a symbolic link is never
// followed; what vanishes while it is looked at was never there.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::evidence {

enum class TreeKind { run, half_written, captured, foreign, symbolic_link, unreadable };

struct TreeEntry {
  TreeKind kind = TreeKind::run;
  std::filesystem::path path;
  std::string what; ///< for people; empty for a run
};

/// Everything below runs/, one at a time in the order of names, so that memory does not grow with
/// their number: run directories (four levels down, not hidden), and what does not belong. A folder
/// that cannot be listed is one entry, and not fatal. Ends at the first refusal of `visit`.
[[nodiscard]] Status walk_run_tree(const std::filesystem::path& runs,
                                   const std::function<Status(TreeEntry)>& visit);

struct FolderEntry {
  std::string name;
  std::filesystem::file_type type = std::filesystem::file_type::unknown; ///< of the entry itself
};
/// A folder's entries by name. A folder that is a symbolic link is refused, not followed.
[[nodiscard]] Result<std::vector<FolderEntry>> list_folder(const std::filesystem::path& folder);

} // namespace hebe::evidence
