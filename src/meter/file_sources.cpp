#include "meter/file_sources.hpp"

#include "meter/hwmon_source.hpp"
#include "meter/perf_source.hpp"
#include "meter/powercap_source.hpp"

#include <algorithm>
#include <iterator>

namespace hebe::meter {

std::vector<Discovered> discover_file_sources(const std::filesystem::path& root,
                                              const PerfOpen& perf_open) {
  auto all = discover_powercap(root);
  auto open = perf_open;
  if (!open && root == "/") open = open_perf_event;
  auto perf = discover_perf(root, open);
  auto hwmon = discover_hwmon(root);
  std::ranges::move(perf, std::back_inserter(all));
  std::ranges::move(hwmon, std::back_inserter(all));
  return all;
}

} // namespace hebe::meter
