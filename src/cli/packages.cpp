#include "cli/packages.hpp"

#include "core/command.hpp"

#include <sstream>

namespace hebe::cli {

std::vector<std::filesystem::path> python_packages(const Context& context) {
  const auto asked =
      run_command({context.worker().argv.front(), "-c",
                   "import sys; print('\\n'.join(p for p in sys.path if p.endswith('-packages')))"},
                  Seconds(20));
  std::vector<std::filesystem::path> out;
  if (!asked || asked->exit != 0) return out;
  std::istringstream lines(asked->out);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) out.emplace_back(line);
  return out;
}

} // namespace hebe::cli
