// `run`, a part of `hebe ttgir`. In: the command it belongs to; out: an action, once its options
// are read. Invariant: nothing runs while options are read.
#pragma once

#include "cli/context.hpp"

#include <functional>

namespace hebe::cli {

/// Sets `action` when the user asks for it.
void add_ttgir_run(CLI::App& app, Context& c, std::function<int()>& action);

} // namespace hebe::cli
