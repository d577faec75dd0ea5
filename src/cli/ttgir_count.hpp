// hebe ttgir count. In: the `ttgir` command; out: its subcommand.
#pragma once

#include "cli/context.hpp"

#include <functional>

namespace hebe::cli {

void add_ttgir_count(CLI::App& app, Context& c, std::function<int()>& action);

} // namespace hebe::cli
