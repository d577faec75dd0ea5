#include "meter/file_sources.hpp"

#include "meter/powercap_source.hpp"

#include <iterator>

namespace hebe::meter {

std::vector<Discovered> discover_file_sources(const std::filesystem::path& root, const PerfOpen&) {
  return discover_powercap(root);
}

} // namespace hebe::meter
