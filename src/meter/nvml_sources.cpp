#include "meter/nvml_sources.hpp"

#include "meter/called_source.hpp"

#include <fmt/format.h>

namespace hebe::meter {
namespace {

struct Field {
  const char* name;
  unsigned id, scope;
  Quantity quantity;
  const char* text;
};
// The same counter has two field ids and a call of its own: qualification tells whether they agree.
constexpr Field kFields[] = {
    {"nvml.counter.total_energy", NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0, Quantity::energy_counter,
     "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION (83)"},
    {"nvml.field.energy", NVML_FI_DEV_ENERGY, NVML_POWER_SCOPE_GPU, Quantity::energy_counter,
     "NVML_FI_DEV_ENERGY (191)"},
    {"nvml.field.power_average", NVML_FI_DEV_POWER_AVERAGE, NVML_POWER_SCOPE_GPU, Quantity::power,
     "NVML_FI_DEV_POWER_AVERAGE (185)"},
    {"nvml.field.power_instant", NVML_FI_DEV_POWER_INSTANT, NVML_POWER_SCOPE_GPU, Quantity::power,
     "NVML_FI_DEV_POWER_INSTANT (186)"},
    {"nvml.field.power_instant.module", NVML_FI_DEV_POWER_INSTANT, NVML_POWER_SCOPE_MODULE,
     Quantity::power, "NVML_FI_DEV_POWER_INSTANT (186), scope 1"},
    {"nvml.field.power_instant.memory", NVML_FI_DEV_POWER_INSTANT, NVML_POWER_SCOPE_MEMORY,
     Quantity::power, "NVML_FI_DEV_POWER_INSTANT (186), scope 2"},
};

const char* scope_name(unsigned scope) {
  return scope == NVML_POWER_SCOPE_MODULE   ? "module"
         : scope == NVML_POWER_SCOPE_MEMORY ? "memory"
                                            : "gpu";
}

Result<std::int64_t> read_field(const NvmlLibrary& n, nvmlDevice_t device, const Field& f) {
  if (n.p_nvmlDeviceGetFieldValues == nullptr)
    return refuse(RefusalCode::meter_unsupported, "this driver has no nvmlDeviceGetFieldValues");
  nvmlFieldValue_t value{};
  value.fieldId = f.id;
  value.scopeId = f.scope;
  HEBE_CHECK(n.check(n.p_nvmlDeviceGetFieldValues(device, 1, &value), "nvmlDeviceGetFieldValues"));
  return field_reading(n, value, f.quantity);
}

} // namespace

Result<std::int64_t> field_reading(const NvmlLibrary& n, const nvmlFieldValue_t& f,
                                   Quantity quantity) {
  HEBE_CHECK(n.check(f.nvmlReturn, fmt::format("NVML field {}", f.fieldId)));
  if (quantity == Quantity::power && f.valueType == NVML_VALUE_TYPE_UNSIGNED_INT)
    return f.value.uiVal;
  if (f.valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)
    return static_cast<std::int64_t>(f.value.ullVal);
  if (f.valueType == NVML_VALUE_TYPE_UNSIGNED_LONG) return static_cast<std::int64_t>(f.value.ulVal);
  return refuse(RefusalCode::meter_implausible,
                fmt::format("NVML field {} came with value type {}, required {}", f.fieldId,
                            static_cast<int>(f.valueType),
                            quantity == Quantity::power ? "unsigned int" : "unsigned long long"),
                "this driver gives the field another meaning: use another source",
                fmt::format("NVML field {}", f.fieldId));
}

std::vector<Discovered> nvml_sources(const NvmlLibrary& n, nvmlDevice_t device,
                                     const BoardIdentity& board, Clock& clock) {
  std::vector<Discovered> out;
  const auto add = [&](const char* name, std::string field, const char* scope, Quantity quantity,
                       CalledSource::Call read) {
    SourceDescription d{{name, std::move(field), scope, quantity == Quantity::power ? "mW" : "mJ"},
                        quantity,
                        1e-3,
                        board.vendor,
                        board.driver,
                        board.uuid,
                        std::nullopt};
    out.push_back(
        {std::make_unique<CalledSource>(std::move(d), clock, std::move(read)), name, std::nullopt});
  };
  for (const auto& f : kFields)
    add(f.name, f.text, scope_name(f.scope), f.quantity,
        [&n, device, f] { return read_field(n, device, f); });
  add("nvml.call.total_energy", "nvmlDeviceGetTotalEnergyConsumption", "gpu",
      Quantity::energy_counter, [&n, device]() -> Result<std::int64_t> {
        unsigned long long mj = 0;
        if (n.p_nvmlDeviceGetTotalEnergyConsumption == nullptr)
          return refuse(RefusalCode::meter_unsupported,
                        "this driver has no nvmlDeviceGetTotalEnergyConsumption");
        HEBE_CHECK(n.check(n.p_nvmlDeviceGetTotalEnergyConsumption(device, &mj),
                           "nvmlDeviceGetTotalEnergyConsumption"));
        return static_cast<std::int64_t>(mj);
      });
  add("nvml.call.power_usage", "nvmlDeviceGetPowerUsage", "gpu", Quantity::power,
      [&n, device]() -> Result<std::int64_t> {
        unsigned mw = 0;
        if (n.p_nvmlDeviceGetPowerUsage == nullptr)
          return refuse(RefusalCode::meter_unsupported,
                        "this driver has no nvmlDeviceGetPowerUsage");
        HEBE_CHECK(n.check(n.p_nvmlDeviceGetPowerUsage(device, &mw), "nvmlDeviceGetPowerUsage"));
        return mw;
      });
  return out;
}

} // namespace hebe::meter
