#include "meter/powercap_source.hpp"

#include "meter/sysfs_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hebe::meter {
namespace {
namespace fs = std::filesystem;

// Linux took this right away from ordinary users in 2020 (CVE-2020-8694): fine-grained power tells
// what other programs compute.
std::string permission_fix(const fs::path& file) {
  return fmt::format(
      "readable by root only since Linux 5.10 (2020), because CPU energy can leak what other "
      "programs compute (CVE-2020-8694); where all users are trusted: sudo chmod a+r {} (until the "
      "next boot), or run with the capability CAP_DAC_READ_SEARCH",
      file.string());
}

class PowercapSource final : public Source {
public:
  PowercapSource(fs::path file, SourceDescription description)
      : file_(std::move(file)),
        description_(std::move(description)), allowed_{0, *description_.wraps_at,
                                                       permission_fix(file_)} {}
  [[nodiscard]] const SourceDescription& description() const override { return description_; }
  [[nodiscard]] Result<SourceReading> read() override {
    // Opened each time: a descriptor that outlives its device would keep the last value.
    return timed_reading([&] { return sysfs_integer(file_, allowed_); });
  }

private:
  fs::path file_;
  SourceDescription description_;
  SysfsNumber allowed_;
};

std::string scope_of(std::string_view zone) {
  if (zone.starts_with("package")) return "cpu-package";
  if (zone == "core") return "cpu-cores";
  if (zone == "uncore") return "cpu-uncore";
  if (zone == "dram") return "dram";
  if (zone == "psys") return "platform";
  return "unknown";
}

class Search {
public:
  explicit Search(const fs::path& root)
      : root_(root), vendor_(cpu_vendor(root)), kernel_(kernel_release(root)) {}

  std::vector<Discovered> all() {
    const auto top = root_ / "sys/class/powercap";
    if (const auto names = names_in(top); !names)
      found_.push_back({nullptr, "powercap", names.error()});
    else
      for (const auto& name : *names) visit(top / name);
    return std::move(found_);
  }

private:
  // A zone is "<type>:<n>[:<n>...]". All zones are listed flat; a tree may also nest them.
  void visit(const fs::path& zone) {
    const auto id = zone.filename().string();
    if (!id.contains(':') || !visited_.insert(id).second) return; // a control type holds no counter
    auto name = name_of_zone(zone);
    if (std::ranges::any_of(found_, [&](const auto& d) { return d.name == name; }))
      name += "@" + id;
    auto source = open(zone, name);
    if (source)
      found_.push_back({*std::move(source), name, {}});
    else
      found_.push_back({nullptr, name, std::move(source).error()});
    if (const auto children = names_in(zone))
      for (const auto& child : *children)
        if (child.starts_with(id + ":")) visit(zone / child);
  }

  // "powercap.intel-rapl.package-0.core": the names of all zones above are part of it, for two
  // packages each have a "core".
  [[nodiscard]] std::string name_of_zone(const fs::path& zone) const {
    const auto id = zone.filename().string();
    const auto colon = id.rfind(':');
    const auto own = sysfs_text(zone / "name");
    const bool top = id.find(':') == colon;
    auto above = "powercap." + id.substr(0, colon);
    if (!top) {
      const auto parent = zone.parent_path().filename() == id.substr(0, colon)
                              ? zone.parent_path()
                              : zone.parent_path() / id.substr(0, colon);
      above = name_of_zone(parent);
    }
    return above + "." + (own ? *own : id.substr(colon + 1));
  }

  [[nodiscard]] Result<std::unique_ptr<Source>> open(const fs::path& zone,
                                                     const std::string& name) const {
    HEBE_TRY(const auto own, sysfs_text(zone / "name"));
    const auto file = zone / "energy_uj", range_file = zone / "max_energy_range_uj";
    if (!is_there(file))
      return refuse(RefusalCode::meter_unsupported, "the zone \"" + own + "\" counts no energy",
                    "use another zone", file.string());
    const auto range = sysfs_integer(range_file, {.at_least = 1, .permission_fix = {}});
    if (!range) {
      auto why = range.error();
      why.what = "without its range a wrap cannot be told from a reset: " + why.what;
      return std::unexpected(std::move(why));
    }
    SourceDescription d;
    d.identity = {name, "energy_uj", scope_of(own), "uJ"};
    d.quantity = Quantity::energy_counter;
    d.si_per_unit = 1e-6;
    d.vendor = vendor_;
    const auto id = zone.filename().string();
    d.driver = id.substr(0, id.find(':')) + ", " + kernel_;
    d.device = below_root(root_, file);
    d.wraps_at = *range;
    auto source = std::make_unique<PowercapSource>(file, std::move(d));
    HEBE_CHECK(source->read());
    return source;
  }

  fs::path root_;
  std::string vendor_, kernel_;
  std::set<std::string> visited_;
  std::vector<Discovered> found_;
};

} // namespace

std::vector<Discovered> discover_powercap(const fs::path& root) { return Search(root).all(); }

} // namespace hebe::meter
