// Where the user's Python keeps its packages: wheels of NVIDIA bring libraries with them. In: the
// context; out: folders, none where Python does not answer. Invariant: nothing is imported.
#pragma once

#include "cli/context.hpp"

namespace hebe::cli {

[[nodiscard]] std::vector<std::filesystem::path> python_packages(const Context& context);

} // namespace hebe::cli
