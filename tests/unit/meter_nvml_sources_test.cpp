// Facts about NVML's single values, with a library made here: each field's own status and type
// decide, and an unread union member is never a number.
#include "meter/nvml_sources.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace hebe::meter {
namespace {

const char* error_string(nvmlReturn_t) { return "made"; }

// Field 83 answers as an H200 does; 191 with another type; 185 with no permission; 186 with a value
// that no board can have; 186 of the module and the memory is not supported. The call succeeds.
nvmlReturn_t field_values(nvmlDevice_t, int count, nvmlFieldValue_t* values) {
  for (int i = 0; i < count; ++i) {
    auto& v = values[i];
    v.nvmlReturn = NVML_SUCCESS;
    v.value.ullVal = 4'991'201'436'214'789'335ULL; // what lies there before anything is written
    if (v.fieldId == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION) {
      v.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
      v.value.ullVal = 2'857'338;
    } else if (v.fieldId == NVML_FI_DEV_ENERGY) {
      v.valueType = NVML_VALUE_TYPE_DOUBLE;
    } else if (v.fieldId == NVML_FI_DEV_POWER_AVERAGE) {
      v.nvmlReturn = NVML_ERROR_NO_PERMISSION;
    } else if (v.scopeId != NVML_POWER_SCOPE_GPU) {
      v.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    } else {
      v.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    }
  }
  return NVML_SUCCESS;
}

nvmlReturn_t power_usage(nvmlDevice_t, unsigned* mw) {
  *mw = 84'290;
  return NVML_SUCCESS;
}

TEST(NvmlSources, each_fields_own_status_type_and_size_decide) {
  NvmlLibrary library;
  library.p_nvmlErrorString = error_string;
  library.p_nvmlDeviceGetFieldValues = field_values;
  library.p_nvmlDeviceGetPowerUsage = power_usage; // and no nvmlDeviceGetTotalEnergyConsumption
  VirtualClock clock;
  const auto sources = nvml_sources(library, nullptr, {}, clock);
  const auto read = [&](const char* name) {
    const auto hit =
        std::find_if(sources.begin(), sources.end(), [&](auto& s) { return s.name == name; });
    EXPECT_NE(hit, sources.end()) << name;
    return hit->source->read();
  };
  EXPECT_EQ(read("nvml.counter.total_energy")->raw, 2'857'338);
  EXPECT_EQ(read("nvml.call.power_usage")->raw, 84'290);
  for (const auto& [name, code] :
       {std::pair("nvml.field.energy", RefusalCode::meter_implausible),
        {"nvml.field.power_average", RefusalCode::no_permission},
        {"nvml.field.power_instant", RefusalCode::meter_implausible},
        {"nvml.field.power_instant.module", RefusalCode::meter_unsupported},
        {"nvml.field.power_instant.memory", RefusalCode::meter_unsupported},
        {"nvml.call.total_energy", RefusalCode::meter_unsupported}}) {
    const auto r = read(name);
    ASSERT_FALSE(r) << name;
    EXPECT_EQ(hebe::name_of(r.error().code), hebe::name_of(code)) << name << r.error().what;
  }
}

TEST(NvmlSources, without_the_batched_call_every_field_is_unsupported_and_nothing_crashes) {
  const NvmlLibrary library;
  VirtualClock clock;
  for (const auto& s : nvml_sources(library, nullptr, {}, clock)) {
    const auto r = s.source->read();
    ASSERT_FALSE(r) << s.name;
    EXPECT_EQ(r.error().code, RefusalCode::meter_unsupported) << s.name;
  }
}

} // namespace
} // namespace hebe::meter
