// How a user names a kernel case. In: "vector-add", or file.py[:function]; out: where it is.
#pragma once

#include "cli/context.hpp"
#include "kernel/compiled_case.hpp"

namespace hebe::cli {

/// "vector-add" is kernels/vector_add.py; anything with a slash or .py is a file, relative to
/// `base`.
[[nodiscard]] Result<kernel::CaseRequest>
case_named(const Context& context, const std::string& name, const std::filesystem::path& base);

} // namespace hebe::cli
