#include "meter/nvml_meter.hpp"

#include "meter/discovered.hpp"

#include "meter/nvml_library.hpp"
#include "meter/nvml_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <span>

namespace hebe::meter {
namespace {

// These numbers moved between NVML 12.9 (251-253) and 13.0: the pinned header's names are used. A
// driver that does not know them says so, and the event reasons at a window's edges judge it alone.
constexpr unsigned kFieldSwThermal = NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
                   kFieldHwThermal = NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
                   kFieldPowerBrake = NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN;

Result<std::int64_t> value_of(const nvmlFieldValue_t& f) {
  switch (f.valueType) {
  case NVML_VALUE_TYPE_DOUBLE:
    return static_cast<std::int64_t>(f.value.dVal);
  case NVML_VALUE_TYPE_UNSIGNED_INT:
    return f.value.uiVal;
  case NVML_VALUE_TYPE_UNSIGNED_LONG:
    return static_cast<std::int64_t>(f.value.ulVal);
  case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
    return static_cast<std::int64_t>(f.value.ullVal);
  case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
    return f.value.sllVal;
  case NVML_VALUE_TYPE_SIGNED_INT:
    return f.value.siVal;
  default:
    return refuse(RefusalCode::meter_failed,
                  fmt::format("NVML field {} has the unknown value type {}", f.fieldId,
                              static_cast<int>(f.valueType)));
  }
}

std::string host_process_name(std::int64_t pid) {
  std::ifstream comm(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(comm, name);
  return name;
}

class NvmlMeter final : public BoardMeter {
public:
  NvmlMeter(const NvmlLibrary& n, nvmlDevice_t device, BoardIdentity identity, Clock& clock)
      : n_(n), device_(device), identity_(std::move(identity)), clock_(clock) {
    xid_ = register_xid_events();
  }
  NvmlMeter(const NvmlMeter&) = delete;
  NvmlMeter& operator=(const NvmlMeter&) = delete;
  ~NvmlMeter() override {
    if (events_ != nullptr) n_.p_nvmlEventSetFree(events_);
  }

  [[nodiscard]] const BoardIdentity& board() const override { return identity_; }
  [[nodiscard]] SourceIdentity samples_source() const override {
    return {"nvml.samples.total_power", "nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)", "gpu",
            "mW"};
  }
  [[nodiscard]] SourceIdentity counter_source() const override {
    return {"nvml.counter.total_energy", "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION (83)", "gpu", "mJ"};
  }

  [[nodiscard]] Result<std::vector<PowerSample>> read_power_samples(std::int64_t since) override {
    if (n_.p_nvmlDeviceGetSamples == nullptr)
      return refuse(RefusalCode::meter_unsupported, "this driver has no nvmlDeviceGetSamples");
    constexpr std::string_view kCall = "nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)";
    nvmlValueType_t type{};
    unsigned count = 0;
    const auto last = static_cast<unsigned long long>(std::max<std::int64_t>(since, 0));
    auto status =
        n_.p_nvmlDeviceGetSamples(device_, NVML_TOTAL_POWER_SAMPLES, last, &type, &count, nullptr);
    if (status == NVML_ERROR_NOT_FOUND && since > 0)
      return std::vector<PowerSample>{}; // none newer
    HEBE_CHECK(n_.check(status, kCall));
    std::vector<nvmlSample_t> raw(count + 16U); // some more may arrive between the calls
    count = static_cast<unsigned>(raw.size());
    status = n_.p_nvmlDeviceGetSamples(device_, NVML_TOTAL_POWER_SAMPLES, last, &type, &count,
                                       raw.data());
    if (status == NVML_ERROR_NOT_FOUND && since > 0) return std::vector<PowerSample>{};
    HEBE_CHECK(n_.check(status, kCall));
    if (type != NVML_VALUE_TYPE_UNSIGNED_INT)
      return refuse(RefusalCode::meter_implausible,
                    fmt::format("power samples have value type {}, required unsigned int (0..1)",
                                static_cast<int>(type)));
    std::vector<PowerSample> out;
    for (const auto& s : std::span(raw).first(std::min<std::size_t>(count, raw.size())))
      out.push_back({static_cast<std::int64_t>(s.timeStamp), s.sampleValue.uiVal});
    std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.wall_us < b.wall_us; });
    return out;
  }

  [[nodiscard]] Result<Boundary> read_boundary() override {
    Boundary b;
    b.before = clock_.now();
    std::array<unsigned, 8> ids = {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
                                   NVML_FI_DEV_POWER_AVERAGE,
                                   NVML_FI_DEV_PERF_POLICY_POWER,
                                   kFieldSwThermal,
                                   kFieldHwThermal,
                                   kFieldPowerBrake,
                                   NVML_FI_DEV_PERF_POLICY_SYNC_BOOST,
                                   NVML_FI_DEV_PERF_POLICY_THERMAL};
    const auto values = fields(ids);
    b.energy_mj = values[0];
    b.power_average_mw = values[1];
    // The thermal policy's counter stands in where the newer field is not known.
    b.throttle = {values[2], values[3] ? values[3] : values[7], values[4], values[5], values[6]};
    b.temperature_c = one("nvmlDeviceGetTemperature", [&](unsigned* out) {
      return n_.p_nvmlDeviceGetTemperature(device_, NVML_TEMPERATURE_GPU, out);
    });
    b.sm_clock_mhz = clock_mhz(NVML_CLOCK_SM);
    b.memory_clock_mhz = clock_mhz(NVML_CLOCK_MEM);
    unsigned long long reasons = 0;
    if (n_.p_nvmlDeviceGetCurrentClocksEventReasons == nullptr)
      b.event_reasons =
          refuse(RefusalCode::meter_unsupported, "no clock event reasons in this driver");
    else if (auto s = n_.check(n_.p_nvmlDeviceGetCurrentClocksEventReasons(device_, &reasons),
                               "nvmlDeviceGetCurrentClocksEventReasons");
             s)
      b.event_reasons = static_cast<std::int64_t>(reasons);
    else
      b.event_reasons = std::unexpected(s.error());
    b.after = clock_.now();
    if (!b.energy_mj && b.energy_mj.error().code == RefusalCode::device_error)
      return std::unexpected(b.energy_mj.error());
    return b;
  }

  [[nodiscard]] Result<std::vector<GpuProcess>> processes() override {
    std::vector<GpuProcess> out;
    for (const auto call :
         {n_.p_nvmlDeviceGetComputeRunningProcesses, n_.p_nvmlDeviceGetGraphicsRunningProcesses}) {
      if (call == nullptr)
        return refuse(RefusalCode::meter_unsupported,
                      "this driver does not list the GPU's processes", "install a newer driver");
      std::vector<nvmlProcessInfo_t> raw(64);
      auto count = static_cast<unsigned>(raw.size());
      auto status = call(device_, &count, raw.data());
      if (status == NVML_ERROR_INSUFFICIENT_SIZE) {
        raw.resize(count + 64U);
        count = static_cast<unsigned>(raw.size());
        status = call(device_, &count, raw.data());
      }
      if (status == NVML_ERROR_NOT_SUPPORTED && call == n_.p_nvmlDeviceGetGraphicsRunningProcesses)
        continue;
      HEBE_CHECK(n_.check(status, "nvmlDeviceGet…RunningProcesses"));
      for (const auto& p : std::span(raw).first(count)) {
        if (std::any_of(out.begin(), out.end(), [&](auto& q) { return q.pid == p.pid; })) continue;
        out.push_back({p.pid, host_process_name(p.pid)});
        if (out.back().name.empty() && n_.p_nvmlSystemGetProcessName != nullptr) {
          std::array<char, 256> name{};
          if (n_.p_nvmlSystemGetProcessName(p.pid, name.data(), 255) == NVML_SUCCESS)
            out.back().name = name.data();
        }
      }
    }
    return out;
  }

  [[nodiscard]] Result<Watts> power_limit() override {
    unsigned mw = 0;
    HEBE_CHECK(n_.check(n_.p_nvmlDeviceGetPowerManagementLimit(device_, &mw),
                        "nvmlDeviceGetPowerManagementLimit"));
    return from_milliwatts(mw);
  }

  [[nodiscard]] Result<bool> mig_enabled() override {
    unsigned now = 0, pending = 0;
    if (n_.p_nvmlDeviceGetMigMode == nullptr) return false; // a driver older than MIG
    const auto status = n_.p_nvmlDeviceGetMigMode(device_, &now, &pending);
    if (status == NVML_ERROR_NOT_SUPPORTED) return false;
    HEBE_CHECK(n_.check(status, "nvmlDeviceGetMigMode"));
    return now == NVML_DEVICE_MIG_ENABLE;
  }

  [[nodiscard]] Result<std::int64_t> uncorrected_errors() override {
    unsigned long long count = 0;
    if (n_.p_nvmlDeviceGetTotalEccErrors == nullptr)
      return refuse(RefusalCode::meter_unsupported, "this driver has no ECC counters");
    HEBE_CHECK(n_.check(n_.p_nvmlDeviceGetTotalEccErrors(
                            device_, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &count),
                        "nvmlDeviceGetTotalEccErrors"));
    return static_cast<std::int64_t>(count);
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> new_xid_events() override {
    HEBE_CHECK(xid_);
    std::vector<std::int64_t> out;
    nvmlEventData_t event{};
    while (n_.p_nvmlEventSetWait(events_, &event, 0) == NVML_SUCCESS)
      out.push_back(static_cast<std::int64_t>(event.eventData));
    return out;
  }

  [[nodiscard]] std::vector<Discovered> sources() override {
    return nvml_sources(n_, device_, identity_, clock_);
  }
  [[nodiscard]] std::vector<Fact> facts() override;

private:
  // One batched call; every field's own status decides, as the call succeeds if any field does.
  std::vector<Result<std::int64_t>> fields(std::span<const unsigned> ids) {
    std::vector<nvmlFieldValue_t> raw(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) raw[i] = {}, raw[i].fieldId = ids[i];
    Status call =
        refuse(RefusalCode::meter_unsupported, "this driver has no nvmlDeviceGetFieldValues");
    if (n_.p_nvmlDeviceGetFieldValues != nullptr)
      call =
          n_.check(n_.p_nvmlDeviceGetFieldValues(device_, static_cast<int>(raw.size()), raw.data()),
                   "nvmlDeviceGetFieldValues");
    std::vector<Result<std::int64_t>> out;
    for (const auto& f : raw) {
      if (!call)
        out.emplace_back(std::unexpected(call.error()));
      else if (auto own = n_.check(f.nvmlReturn, fmt::format("NVML field {}", f.fieldId)); !own)
        out.emplace_back(std::unexpected(own.error()));
      else
        out.push_back(value_of(f));
    }
    return out;
  }

  // A call with one unsigned result, read only after the call has said that it is there.
  template <class Call> Result<std::int64_t> one(std::string_view name, Call call) const {
    unsigned value = 0;
    HEBE_CHECK(n_.check(call(&value), name));
    return value;
  }
  Result<std::int64_t> clock_mhz(nvmlClockType_t type) const {
    return one("nvmlDeviceGetClockInfo",
               [&](unsigned* out) { return n_.p_nvmlDeviceGetClockInfo(device_, type, out); });
  }

  Status register_xid_events() {
    if (n_.p_nvmlEventSetCreate == nullptr || n_.p_nvmlDeviceRegisterEvents == nullptr ||
        n_.p_nvmlEventSetWait == nullptr || n_.p_nvmlEventSetFree == nullptr)
      return refuse(RefusalCode::meter_unsupported, "this driver has no NVML events");
    HEBE_CHECK(n_.check(n_.p_nvmlEventSetCreate(&events_), "nvmlEventSetCreate"));
    return n_.check(n_.p_nvmlDeviceRegisterEvents(device_, nvmlEventTypeXidCriticalError, events_),
                    "nvmlDeviceRegisterEvents");
  }

  const NvmlLibrary& n_;
  nvmlDevice_t device_;
  BoardIdentity identity_;
  Clock& clock_;
  nvmlEventSet_t events_ = nullptr;
  Status xid_;
};

// Facts are gathered by small callables: each makes its call first and gives its value afterwards.
class FactList {
public:
  FactList(const NvmlLibrary& n, nvmlDevice_t device) : n_(n), device_(device) {}

  template <class Function, class Call>
  void add(std::string name, const char* what, Function function, Call call) {
    if (function == nullptr)
      return list.push_back(unknown(std::move(name), what, "not in this driver"));
    Json value;
    const auto status = n_.check(call(value), what);
    list.push_back(status ? known(std::move(name), std::move(value), what)
                          : unknown(std::move(name), what, status.error().what));
  }
  /// function(device, T*), scaled for numbers with a unit.
  template <class T, class Function>
  void value(std::string name, const char* what, Function function, double scale = 0) {
    add(std::move(name), what, function, [&](Json& out) {
      T raw{};
      const auto status = function(device_, &raw);
      out = scale == 0 ? Json(static_cast<std::int64_t>(raw))
                       : Json(static_cast<double>(raw) * scale);
      return status;
    });
  }
  /// call(char*, length)
  template <class Function, class Call>
  void text(std::string name, const char* what, Function function, Call call) {
    add(std::move(name), what, function, [&](Json& out) {
      std::array<char, 96> buffer{};
      const auto status = call(buffer.data(), static_cast<unsigned>(buffer.size()));
      out = buffer.data();
      return status;
    });
  }

  std::vector<Fact> list;

private:
  const NvmlLibrary& n_;
  nvmlDevice_t device_;
};

std::vector<Fact> NvmlMeter::facts() {
  FactList f(n_, device_);
  const auto& n = n_;
  f.text("board.driver", "nvmlSystemGetDriverVersion", n.p_nvmlSystemGetDriverVersion,
         [&](char* out, unsigned size) { return n.p_nvmlSystemGetDriverVersion(out, size); });
  f.text("board.nvml", "nvmlSystemGetNVMLVersion", n.p_nvmlSystemGetNVMLVersion,
         [&](char* out, unsigned size) { return n.p_nvmlSystemGetNVMLVersion(out, size); });
  f.text(
      "board.vbios", "nvmlDeviceGetVbiosVersion", n.p_nvmlDeviceGetVbiosVersion,
      [&](char* out, unsigned size) { return n.p_nvmlDeviceGetVbiosVersion(device_, out, size); });
  f.value<unsigned>("board.power_limit_w", "nvmlDeviceGetPowerManagementLimit",
                    n.p_nvmlDeviceGetPowerManagementLimit, 1e-3);
  f.value<unsigned>("board.power_limit_default_w", "nvmlDeviceGetPowerManagementDefaultLimit",
                    n.p_nvmlDeviceGetPowerManagementDefaultLimit, 1e-3);
  f.value<unsigned>("board.power_limit_enforced_w", "nvmlDeviceGetEnforcedPowerLimit",
                    n.p_nvmlDeviceGetEnforcedPowerLimit, 1e-3);
  f.add("board.power_limit_range_w", "nvmlDeviceGetPowerManagementLimitConstraints",
        n.p_nvmlDeviceGetPowerManagementLimitConstraints, [&](Json& out) {
          unsigned low = 0, high = 0;
          const auto status =
              n.p_nvmlDeviceGetPowerManagementLimitConstraints(device_, &low, &high);
          out = {low * 1e-3, high * 1e-3};
          return status;
        });
  constexpr std::array<std::pair<const char*, nvmlClockType_t>, 2> kDomains = {
      {{"sm", NVML_CLOCK_SM}, {"memory", NVML_CLOCK_MEM}}};
  for (const auto& [domain, type] : kDomains) {
    f.list.push_back(fact_of(fmt::format("board.clock_{}_mhz", domain), clock_mhz(type),
                             "nvmlDeviceGetClockInfo"));
    for (const auto& [suffix, what, function] :
         {std::tuple("max", "nvmlDeviceGetMaxClockInfo", n.p_nvmlDeviceGetMaxClockInfo),
          std::tuple("application", "nvmlDeviceGetApplicationsClock",
                     n.p_nvmlDeviceGetApplicationsClock)})
      f.add(fmt::format("board.clock_{}_{}_mhz", domain, suffix), what, function,
            [&, call = function, clock = type](Json& out) {
              unsigned mhz = 0;
              const auto status = call(device_, clock, &mhz);
              out = mhz;
              return status;
            });
  }
  f.list.push_back(fact_of("board.temperature_c",
                           one("nvmlDeviceGetTemperature",
                               [&](unsigned* out) {
                                 return n.p_nvmlDeviceGetTemperature(device_, NVML_TEMPERATURE_GPU,
                                                                     out);
                               }),
                           "nvmlDeviceGetTemperature"));
  f.value<unsigned long long>("board.event_reasons", "nvmlDeviceGetCurrentClocksEventReasons",
                              n.p_nvmlDeviceGetCurrentClocksEventReasons);
  f.value<nvmlEnableState_t>("board.persistence_mode", "nvmlDeviceGetPersistenceMode",
                             n.p_nvmlDeviceGetPersistenceMode);
  f.value<nvmlComputeMode_t>("board.compute_mode", "nvmlDeviceGetComputeMode",
                             n.p_nvmlDeviceGetComputeMode);
  f.value<nvmlPstates_t>("board.performance_state", "nvmlDeviceGetPerformanceState",
                         n.p_nvmlDeviceGetPerformanceState);
  f.add("board.ecc_mode", "nvmlDeviceGetEccMode", n.p_nvmlDeviceGetEccMode, [&](Json& out) {
    nvmlEnableState_t current{}, pending{};
    const auto status = n.p_nvmlDeviceGetEccMode(device_, &current, &pending);
    out = static_cast<int>(current);
    return status;
  });
  f.list.push_back(fact_of("board.mig_enabled", mig_enabled(), "nvmlDeviceGetMigMode"));
  f.list.push_back(
      fact_of("board.ecc_uncorrected", uncorrected_errors(), "nvmlDeviceGetTotalEccErrors"));
  return std::move(f.list);
}

} // namespace

std::string normal_pci_id(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // NVML prints an eight-digit domain, CUDA and sysfs four.
  if (const auto colon = text.find(':'); colon == 8 && text.starts_with("0000")) text.erase(0, 4);
  return text;
}

namespace {
Result<std::pair<nvmlDevice_t, BoardIdentity>> board_at(const NvmlLibrary& n, unsigned index) {
  nvmlDevice_t device = nullptr;
  HEBE_CHECK(n.check(n.p_nvmlDeviceGetHandleByIndex(index, &device), "nvmlDeviceGetHandleByIndex"));
  BoardIdentity b;
  b.vendor = "nvidia";
  b.provenance = Provenance::measured;
  std::array<char, 96> text{};
  HEBE_CHECK(n.check(n.p_nvmlDeviceGetUUID(device, text.data(), 96), "nvmlDeviceGetUUID"));
  b.uuid = text.data();
  HEBE_CHECK(n.check(n.p_nvmlDeviceGetName(device, text.data(), 96), "nvmlDeviceGetName"));
  b.name = text.data();
  HEBE_CHECK(
      n.check(n.p_nvmlSystemGetDriverVersion(text.data(), 96), "nvmlSystemGetDriverVersion"));
  b.driver = text.data();
  nvmlPciInfo_t pci{};
  HEBE_CHECK(n.check(n.p_nvmlDeviceGetPciInfo(device, &pci), "nvmlDeviceGetPciInfo"));
  b.pci_bus_id = normal_pci_id(pci.busId);
  return std::pair{device, b};
}
} // namespace

Result<std::vector<BoardIdentity>> list_nvml_boards() {
  HEBE_TRY(const auto* n, NvmlLibrary::instance());
  unsigned count = 0;
  HEBE_CHECK(n->check(n->p_nvmlDeviceGetCount(&count), "nvmlDeviceGetCount"));
  std::vector<BoardIdentity> out;
  for (unsigned i = 0; i < count; ++i) {
    HEBE_TRY(auto board, board_at(*n, i));
    out.push_back(std::move(board.second));
  }
  return out;
}

Result<std::unique_ptr<BoardMeter>> open_nvml_meter(const std::string& uuid,
                                                    const std::string& pci_bus_id, Clock& clock) {
  HEBE_TRY(const auto* n, NvmlLibrary::instance());
  HEBE_TRY(const auto boards, list_nvml_boards());
  for (unsigned i = 0; i < boards.size(); ++i) {
    if (boards[i].uuid != uuid) continue;
    if (boards[i].pci_bus_id != normal_pci_id(pci_bus_id))
      return refuse(RefusalCode::no_device,
                    fmt::format("CUDA says {} is at {}, NVML says at {}", uuid, pci_bus_id,
                                boards[i].pci_bus_id),
                    "the two libraries see different boards: check the container's device mapping");
    HEBE_TRY(auto board, board_at(*n, i));
    return std::make_unique<NvmlMeter>(*n, board.first, std::move(board.second), clock);
  }
  return refuse(RefusalCode::no_device, "NVML knows no board with UUID " + uuid,
                "the CUDA device may be a MIG instance: its power cannot be told apart");
}

} // namespace hebe::meter
