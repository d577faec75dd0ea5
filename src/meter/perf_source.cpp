#include "meter/perf_source.hpp"

#include "meter/sysfs_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hebe::meter {
namespace {
namespace fs = std::filesystem;

template <class T> bool whole_number(std::string_view text, T& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc{} && end == text.data() + text.size();
}

std::unexpected<Refusal> implausible(std::string what, const fs::path& where) {
  return refuse(RefusalCode::meter_implausible, std::move(what), "do not use this source",
                where.string());
}

class PerfSource final : public Source {
public:
  PerfSource(FileDescriptor fd, SourceDescription description)
      : fd_(std::move(fd)), description_(std::move(description)) {}
  [[nodiscard]] const SourceDescription& description() const override { return description_; }
  [[nodiscard]] Result<SourceReading> read() override {
    return timed_reading([&]() -> Result<std::int64_t> {
      std::uint64_t count = 0;
      const auto got = ::read(fd_.get(), &count, sizeof count);
      const auto& where = description_.identity.name;
      if (got < 0)
        return refuse(RefusalCode::meter_failed,
                      fmt::format("reading the event failed: {}", std::strerror(errno)),
                      "look for the event's driver in the kernel log", where);
      if (got != sizeof count) // the end of the file: the kernel put the event into its error state
        return refuse(RefusalCode::meter_failed,
                      fmt::format("the event gave {} of {} bytes", got, sizeof count),
                      "look for the event's driver in the kernel log", where);
      if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return implausible(fmt::format("{} does not fit a signed 64-bit integer", count), where);
      return static_cast<std::int64_t>(count);
    });
  }

private:
  FileDescriptor fd_;
  SourceDescription description_;
};

/// "event=0x02": the only form the power PMU has had; another one would be another event.
Result<std::uint64_t> config_of(const fs::path& file) {
  const auto read = sysfs_text(file);
  if (!read) return std::unexpected(read.error());
  const std::string& text = *read;
  std::uint64_t config = 0;
  constexpr std::string_view kBefore = "event=0x";
  if (!text.starts_with(kBefore) ||
      !whole_number(std::string_view(text).substr(kBefore.size()), config, 16))
    return refuse(RefusalCode::meter_unsupported,
                  "\"" + text.substr(0, 80) + "\" is not of the form event=0x<number>",
                  "report this event's description", file.string());
  return config;
}

/// The text goes into the unit's name, the number is what it says.
struct Scale {
  std::string text;
  double joules = 0;
};
Result<Scale> scale_of(const fs::path& event) {
  const fs::path unit_file = event.string() + ".unit", scale_file = event.string() + ".scale";
  const auto unit = sysfs_text(unit_file);
  if (!unit) return std::unexpected(unit.error());
  if (*unit != "Joules")
    return refuse(RefusalCode::meter_unsupported,
                  "the unit is \"" + unit->substr(0, 40) + "\", only Joules is known",
                  "report this event's unit", unit_file.string());
  Scale scale;
  HEBE_TRY(scale.text, sysfs_text(scale_file));
  const auto* last = scale.text.data() + scale.text.size();
  const auto [end, error] = std::from_chars(scale.text.data(), last, scale.joules);
  if (error != std::errc{} || end != last || !std::isfinite(scale.joules) || scale.joules <= 0)
    return implausible("the scale \"" + scale.text.substr(0, 80) + "\" is not a positive number",
                       scale_file);
  return scale;
}

/// "0", "0,16", "0-1": one CPU of each package.
Result<std::vector<int>> cpus_of(const fs::path& file) {
  constexpr int kMostCpus = 65536;
  HEBE_TRY(const auto text, sysfs_text(file));
  std::vector<int> cpus;
  for (std::string_view rest = text; !rest.empty();) {
    const auto part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const auto dash = part.find('-');
    int from = 0, to = 0;
    if (!whole_number(part.substr(0, dash), from) ||
        !whole_number(dash == std::string_view::npos ? part : part.substr(dash + 1), to) ||
        from < 0 || to < from || to >= kMostCpus)
      return implausible("\"" + text.substr(0, 80) + "\" is not a list of CPUs", file);
    for (int cpu = from; cpu <= to; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string scope_of(std::string_view event) {
  if (event == "energy-pkg") return "cpu-package";
  if (event == "energy-cores") return "cpu-cores";
  if (event == "energy-gpu") return "cpu-graphics";
  if (event == "energy-ram") return "dram";
  if (event == "energy-psys") return "platform";
  return "unknown";
}

std::unexpected<Refusal> not_opened(int error, const fs::path& root, const std::string& name) {
  const auto what = fmt::format("perf_event_open failed: {}", std::strerror(error));
  if (error == EACCES || error == EPERM) {
    const auto file = root / "proc/sys/kernel/perf_event_paranoid";
    const auto level = sysfs_text(file);
    return refuse(RefusalCode::no_permission,
                  fmt::format("{}; perf_event_paranoid is {}, events of a whole CPU need 0 or less",
                              what, level ? *level : "unknown"),
                  "sudo sysctl kernel.perf_event_paranoid=0 (until the next boot), or run with the "
                  "capability CAP_PERFMON; a container must also allow the system call",
                  file.string());
  }
  if (error == EMFILE || error == ENFILE)
    return refuse(RefusalCode::meter_failed, what, "raise the limit of open files (ulimit -n)",
                  name);
  return refuse(RefusalCode::meter_unsupported, what + ", though the kernel lists the event",
                "use another source", name);
}

struct Pmu {
  fs::path root, folder;
  std::string vendor, kernel;
  std::uint32_t type = 0;
  std::vector<int> cpus;
};

Result<Pmu> pmu_below(const fs::path& root) {
  Pmu pmu{root, root / "sys/bus/event_source/devices/power", {}, kernel_release(root), 0, {}};
  HEBE_TRY(const auto type,
           sysfs_integer(pmu.folder / "type", {.at_least = 0,
                                               .at_most = std::numeric_limits<std::uint32_t>::max(),
                                               .permission_fix = {}}));
  pmu.type = static_cast<std::uint32_t>(type);
  HEBE_TRY(pmu.cpus, cpus_of(pmu.folder / "cpumask"));
  pmu.vendor = cpu_vendor(root);
  return pmu;
}

Result<std::unique_ptr<Source>> open_event(const Pmu& pmu, const std::string& event, int cpu,
                                           const std::string& name, const PerfOpen& open) {
  const auto file = pmu.folder / "events" / event;
  HEBE_TRY(const auto config, config_of(file));
  HEBE_TRY(const auto scale, scale_of(file));
  if (!open)
    return refuse(RefusalCode::meter_unsupported,
                  "the event of a made tree says nothing about the kernel that runs",
                  "read perf events with the root /", name);
  const int opened = open(pmu.type, config, cpu);
  if (opened < 0) return not_opened(-opened, pmu.root, name);
  SourceDescription d;
  d.identity = {name, fmt::format("{} (config {:#x}, cpu {})", event, config, cpu), scope_of(event),
                scale.text + " J"};
  d.quantity = Quantity::energy_counter;
  d.si_per_unit = scale.joules;
  d.vendor = pmu.vendor;
  d.driver = "perf power, " + pmu.kernel;
  d.device = below_root(pmu.root, file);
  auto source = std::make_unique<PerfSource>(FileDescriptor(opened), std::move(d));
  HEBE_CHECK(source->read());
  return source;
}

} // namespace

std::vector<Discovered> discover_perf(const fs::path& root, const PerfOpen& open) {
  const auto folder = root / "sys/bus/event_source/devices/power";
  std::vector<Discovered> found;
  if (!is_there(folder)) return found;
  const auto pmu = pmu_below(root);
  const auto events = names_in(folder / "events");
  if (!pmu || !events) {
    found.push_back({nullptr, "perf.power", pmu ? events.error() : pmu.error()});
    return found;
  }
  for (const auto& event : *events) {
    if (!event.starts_with("energy-") || event.contains('.')) continue; // its .scale, its .unit
    for (const int cpu : pmu->cpus) {
      const auto name = fmt::format("perf.{}.cpu{}", event, cpu);
      auto source = open_event(*pmu, event, cpu, name, open);
      if (source)
        found.push_back({*std::move(source), name, {}});
      else
        found.push_back({nullptr, name, std::move(source).error()});
    }
  }
  return found;
}

int open_perf_event(std::uint32_t type, std::uint64_t config, int cpu) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  const auto fd = ::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

} // namespace hebe::meter
