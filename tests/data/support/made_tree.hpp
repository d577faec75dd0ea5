// A made /sys and /proc for tests of file-based meters. In: files by their path; out: a root
// folder. Invariant: what the kernel links, this links, so that identities come from the links.
#pragma once

#include "meter/file_sources.hpp"

#include "scratch_folder.hpp"

#include <string>
#include <vector>

namespace hebe::test {

class MadeTree {
public:
  MadeTree() {
    namespace fs = std::filesystem;
    fs::permissions(root(), fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec |
                                fs::perms::group_read | fs::perms::others_read);
    put("proc/sys/kernel/osrelease", "6.1.0-test\n");
    put("proc/sys/kernel/perf_event_paranoid", "2\n");
    put("proc/cpuinfo", "vendor_id\t: GenuineIntel\n");
  }
  [[nodiscard]] const std::filesystem::path& root() const { return folder_.path(); }
  [[nodiscard]] std::filesystem::path at(std::string_view path) const { return folder_ / path; }

  void put(std::string_view path, std::string_view text) const {
    std::filesystem::create_directories(at(path).parent_path());
    overwrite(at(path), text);
  }
  void link(std::string_view name, std::string_view target) const {
    std::filesystem::create_directories(at(name).parent_path());
    std::filesystem::create_directory_symlink(at(target), at(name));
  }
  void remove(std::string_view path) const { std::filesystem::remove_all(at(path)); }

  /// A powercap zone, flat below the class as the kernel lists it.
  void zone(const std::string& id, const std::string& name, const std::string& energy,
            const std::string& range = "262143328850") const {
    const auto folder = "sys/class/powercap/" + id + "/";
    put(folder + "name", name + "\n");
    put(folder + "energy_uj", energy + "\n");
    put(folder + "max_energy_range_uj", range + "\n");
  }
  void perf_event(const std::string& name, const std::string& config,
                  const std::string& unit = "Joules",
                  const std::string& scale = "2.3283064365386962890625e-10") const {
    const auto event = std::string(kPmu) + "events/" + name;
    put(std::string(kPmu) + "type", "23\n");
    if (!std::filesystem::exists(at(std::string(kPmu) + "cpumask")))
      put(std::string(kPmu) + "cpumask", "0\n");
    put(event, config + "\n");
    put(event + ".unit", unit + "\n");
    put(event + ".scale", scale + "\n");
  }
  /// hwmon<n> of a PCI device, behind links as in sysfs; gives the folder below the root.
  [[nodiscard]] std::string pci_hwmon(int n, const std::string& pci,
                                      const std::string& chip) const {
    const auto device = "sys/devices/pci0000:00/" + pci;
    const auto folder = device + "/hwmon/hwmon" + std::to_string(n);
    put(folder + "/name", chip + "\n");
    link(folder + "/device", device);
    link("sys/class/hwmon/hwmon" + std::to_string(n), folder);
    return folder + "/";
  }
  [[nodiscard]] std::vector<meter::Discovered>
  discover(const meter::PerfOpen& perf_open = {}) const {
    return meter::discover_file_sources(root(), perf_open);
  }

  static constexpr const char* kPmu = "sys/bus/event_source/devices/power/";

private:
  ScratchFolder folder_;
};

/// The one of that name; throws where there is none or two.
inline meter::Discovered& named(std::vector<meter::Discovered>& all, const std::string& name) {
  meter::Discovered* hit = nullptr;
  std::string names;
  for (auto& d : all) {
    names += " " + d.name;
    if (d.name != name) continue;
    if (hit != nullptr) throw std::runtime_error("twice: " + name);
    hit = &d;
  }
  if (hit == nullptr) throw std::runtime_error("no " + name + " among" + names);
  return *hit;
}

} // namespace hebe::test
