#include "meter/hwmon_source.hpp"

#include "meter/sysfs_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace hebe::meter {
namespace {
namespace fs = std::filesystem;

/// One file: microwatts or microjoules, as the kernel's hwmon interface fixes them.
class FileSource final : public Source {
public:
  FileSource(fs::path file, SourceDescription description)
      : file_(std::move(file)), description_(std::move(description)) {}
  [[nodiscard]] const SourceDescription& description() const override { return description_; }
  [[nodiscard]] Result<SourceReading> read() override {
    return timed_reading([&] { return sysfs_integer(file_); });
  }

private:
  fs::path file_;
  SourceDescription description_;
};

/// A rail's millivolts times its milliamperes, read one after the other: microwatts, exactly.
class RailSource final : public Source {
public:
  RailSource(fs::path volts, fs::path amperes, SourceDescription description)
      : millivolts_(std::move(volts)), milliamperes_(std::move(amperes)),
        description_(std::move(description)) {}
  [[nodiscard]] const SourceDescription& description() const override { return description_; }
  [[nodiscard]] Result<SourceReading> read() override {
    return timed_reading([&]() -> Result<std::int64_t> {
      // A bound that no rail reaches and that keeps the product inside 64 bits.
      const SysfsNumber allowed{0, std::int64_t{1} << 31, {}};
      HEBE_TRY(const auto volts, sysfs_integer(millivolts_, allowed));
      HEBE_TRY(const auto amperes, sysfs_integer(milliamperes_, allowed));
      return volts * amperes;
    });
  }

private:
  fs::path millivolts_, milliamperes_;
  SourceDescription description_;
};

/// "0000:03:00.0"
bool is_pci_id(std::string_view text) {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  return text.size() == kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(), [](unsigned char c, char form) {
           return form == 'x' ? std::isxdigit(c) != 0 : c == form;
         });
}

/// The channel of "power1_average" for kind "power" and ending "_average".
std::optional<std::string> channel_of(std::string_view file, std::string_view kind,
                                      std::string_view ending) {
  if (!file.starts_with(kind) || !file.ends_with(ending) ||
      file.size() <= kind.size() + ending.size())
    return {};
  const auto digits = file.substr(kind.size(), file.size() - kind.size() - ending.size());
  if (!std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; })) return {};
  return std::string(digits);
}

bool is_reading(std::string_view file) {
  return channel_of(file, "power", "_average") || channel_of(file, "power", "_input") ||
         channel_of(file, "energy", "_input");
}

class Search {
public:
  explicit Search(const fs::path& root) : root_(root), kernel_(kernel_release(root)) {}

  std::vector<Discovered> all() {
    const auto top = root_ / "sys/class/hwmon";
    const auto names = names_in(top);
    if (!names) refused("hwmon", names.error());
    if (names)
      for (const auto& name : *names) visit(top / name);
    return std::move(found_);
  }

private:
  void visit(const fs::path& link) {
    // The device's own folder: hwmon numbers may be dealt out anew, this one keeps its PCI id.
    std::error_code error;
    auto folder = fs::canonical(link, error);
    if (error) folder = link;
    const auto chip = sysfs_text(folder / "name");
    const auto files = names_in(folder);
    if (!chip) return refused("hwmon." + link.filename().string(), chip.error());
    if (!files) return refused("hwmon." + *chip, files.error());
    const auto device_path = fs::canonical(folder / "device", error);
    const auto device = error ? std::string{} : device_path.filename().string();
    if (chip->starts_with("amdgpu"))
      board(folder, *chip, "AMD", device, *files);
    else if (chip->starts_with("i915") || *chip == "xe" || chip->starts_with("xe_"))
      board(folder, *chip, "Intel", device, *files);
    else if (chip->starts_with("ina3221"))
      rails(folder, *chip, device, *files);
    else if (std::ranges::any_of(*files, is_reading))
      refused(fmt::format("hwmon.{}.{}", *chip, device.empty() ? "no-device" : device),
              {RefusalCode::meter_unsupported,
               "the chip \"" + *chip + "\" has power or energy files, but Hebe does not know whose",
               folder.string(),
               "see docs/meters.md for the chips that are known",
               {}});
  }

  void board(const fs::path& folder, const std::string& chip, const std::string& vendor,
             const std::string& device, const std::vector<std::string>& files) {
    if (!is_pci_id(device))
      return refused(fmt::format("hwmon.{}.{}", chip, device.empty() ? "no-device" : device),
                     {RefusalCode::meter_unsupported,
                      "its device link names no PCI id: it cannot be told which board this is",
                      (folder / "device").string(),
                      "use another source",
                      {}});
    bool any = false;
    for (const auto& file : files) {
      if (!is_reading(file)) continue; // limits: power1_max, power1_cap, power1_crit
      any = true;
      const bool energy = file.starts_with("energy");
      const auto label = sysfs_text(folder / (file.substr(0, file.rfind('_')) + "_label"));
      auto d = description(fmt::format("hwmon.{}.{}", chip, file), chip, vendor, device);
      d.identity.field = label ? fmt::format("{} ({})", file, *label) : file;
      d.identity.scope = label && *label == "card" ? "gpu-card" : "gpu";
      d.identity.unit = energy ? "uJ" : "uW";
      d.quantity = energy ? Quantity::energy_counter : Quantity::power;
      add(fmt::format("hwmon.{}.{}.{}", chip, device, file),
          std::make_unique<FileSource>(folder / file, std::move(d)));
    }
    if (!any)
      refused(fmt::format("hwmon.{}.{}", chip, device),
              {RefusalCode::meter_unsupported,
               "this board offers neither power nor energy",
               folder.string(),
               "a newer kernel may offer it",
               {}});
  }

  void rails(const fs::path& folder, const std::string& chip, const std::string& device,
             const std::vector<std::string>& files) {
    for (const auto& file : files) {
      const auto channel = channel_of(file, "in", "_input");
      if (!channel) continue;
      const auto volts = folder / file, amperes = folder / ("curr" + *channel + "_input"),
                 switched = folder / ("in" + *channel + "_enable");
      const auto label = sysfs_text(folder / ("in" + *channel + "_label"));
      auto name = fmt::format("hwmon.{}.{}.{}", chip, device.empty() ? "no-device" : device,
                              label ? *label : "in" + *channel);
      if (std::ranges::any_of(found_, [&](const auto& d) { return d.name == name; }))
        name += ".in" + *channel; // unused rails share the label "NC"
      const auto no = [&](std::string what, const fs::path& where) {
        refused(name, {RefusalCode::meter_unsupported,
                       std::move(what),
                       where.string(),
                       "use another rail",
                       {}});
      };
      if (!label) {
        no("a rail without a label: it cannot be told what it feeds", volts);
      } else if (!is_there(amperes)) {
        no("a voltage without a current: no power", amperes);
      } else if (is_there(switched) && sysfs_text(switched).value_or("0") == "0") {
        no("the channel is switched off", switched);
      } else {
        auto d = description(fmt::format("hwmon.{}.{}", chip, *label), chip, "NVIDIA", device);
        d.identity.field = fmt::format(
            "in{0}_input [mV] * curr{0}_input [mA], read one after the other", *channel);
        d.identity.scope = "rail " + *label;
        d.identity.unit = "uW";
        add(name, std::make_unique<RailSource>(volts, amperes, std::move(d)));
      }
    }
  }

  [[nodiscard]] SourceDescription description(std::string name, const std::string& chip,
                                              std::string vendor, std::string device) const {
    SourceDescription d;
    d.identity.name = std::move(name);
    d.quantity = Quantity::power;
    d.si_per_unit = 1e-6;
    d.vendor = std::move(vendor);
    d.driver = chip + ", " + kernel_;
    d.device = std::move(device);
    return d;
  }

  void add(const std::string& name, std::unique_ptr<Source> source) {
    if (const auto first = source->read(); !first) return refused(name, first.error());
    found_.push_back({std::move(source), name, {}});
  }
  void refused(std::string name, Refusal why) {
    found_.push_back({nullptr, std::move(name), std::move(why)});
  }

  fs::path root_;
  std::string kernel_;
  std::vector<Discovered> found_;
};

} // namespace

std::vector<Discovered> discover_hwmon(const fs::path& root) { return Search(root).all(); }

} // namespace hebe::meter
