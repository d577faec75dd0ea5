#include "evidence/dataset_tables.hpp"

#include <algorithm>

namespace hebe::evidence {
namespace {
using enum ColumnType;

constexpr Column kRuns[] = {
    {"run_id", text, "", "name of the run's directory", "/run_id"},
    {"seal", text, "", "SHA-256 of the run's manifest", "/manifest_sha256"},
    {"plan_id", text, "", "content id of the frozen plan", "/manifest/plan_id"},
    {"campaign", text, "", "campaign it was measured in", "/manifest/campaign/id"},
    {"job", text, "", "job of that campaign", "/manifest/campaign/job"},
    {"tier", text, "", "protocol tier", "/plan/tier/name"},
    {"case_name", text, "", "kernel case", "/plan/subject/launch/name"},
    {"case_source", text, "", "file the case was read from", "/plan/subject/source"},
    {"seed", text, "", "of order and phases (64 bits, so as text)", "/plan/seed"},
    {"pairs_planned", integer, "", "pairs in the plan", "/plan/pairs"},
    {"window_s", real, "s", "planned length of a window", "/plan/window_s"},
    {"warm_up_s", real, "s", "planned warm-up", "/plan/warm_up_s"},
    {"board", text, "", "board as its meter names it", "/facts/board.name"},
    {"board_uuid", text, "", "board, or a digest of it", "/facts/board.uuid"},
    {"driver", text, "", "driver's version", "/facts/board.driver"},
    {"hebe_version", text, "", "Hebe that measured", "/facts/hebe.version"},
    {"verdict", text, "", "lower, higher, equivalent, inconclusive or invalid",
     "/analysis/verdict"},
    {"claim_holds", boolean, "", "the run's claim holds", "/analysis/claim_holds"},
    {"qualified", boolean, "", "the claim and every condition hold", "/analysis/qualified"},
    {"energy_effect_percent", real, "%", "energy a launch, B against A",
     "/analysis/energy/effect_percent"},
    {"energy_low_percent", real, "%", "lower end of the shown interval",
     "/shown/energy/low_percent"},
    {"energy_high_percent", real, "%", "upper end of the shown interval",
     "/shown/energy/high_percent"},
    {"energy_interval", text, "", "which interval is shown: bca or t",
     "/analysis/energy/interval_shown"},
    {"energy_sign_flip_p", real, "", "two-sided p of the sign-flip test",
     "/analysis/energy/sign_flip/p"},
    {"energy_equivalence_p", real, "", "p of the equivalence test",
     "/analysis/energy/equivalence/p"},
    {"energy_verdict", text, "", "of energy alone", "/analysis/energy/verdict"},
    {"latency_effect_percent", real, "%", "time a launch, B against A",
     "/analysis/latency/effect_percent"},
    {"latency_low_percent", real, "%", "lower end of the shown interval",
     "/shown/latency/low_percent"},
    {"latency_high_percent", real, "%", "upper end of the shown interval",
     "/shown/latency/high_percent"},
    {"latency_sign_flip_p", real, "", "two-sided p of the sign-flip test",
     "/analysis/latency/sign_flip/p"},
    {"latency_verdict", text, "", "of latency alone", "/analysis/latency/verdict"},
    {"power_effect_percent", real, "%", "mean power, B against A",
     "/analysis/power/effect_percent"},
    {"power_low_percent", real, "%", "lower end of the shown interval", "/shown/power/low_percent"},
    {"power_high_percent", real, "%", "upper end of the shown interval",
     "/shown/power/high_percent"},
    {"power_verdict", text, "", "of power alone", "/analysis/power/verdict"},
    {"energy_per_launch_a_j", real, "J", "mean over the accepted windows of arm A",
     "/analysis/arms/A/energy_per_launch_j"},
    {"energy_per_launch_b_j", real, "J", "mean over the accepted windows of arm B",
     "/analysis/arms/B/energy_per_launch_j"},
    {"latency_a_s", real, "s", "time a launch of arm A", "/analysis/arms/A/latency_s"},
    {"latency_b_s", real, "s", "time a launch of arm B", "/analysis/arms/B/latency_s"},
    {"power_a_w", real, "W", "mean power of arm A", "/analysis/arms/A/power_w"},
    {"power_b_w", real, "W", "mean power of arm B", "/analysis/arms/B/power_w"},
    {"pairs_accepted", integer, "", "pairs that count", "/counts/pairs"},
    {"windows_attempted", integer, "", "windows measured, failed ones too",
     "/analysis/windows/attempted"},
    {"windows_failed", integer, "", "windows that failed a gate",
     "/analysis/windows/failed_a_gate"},
    {"failed_pairs", integer, "", "failed attempts of pairs", "/analysis/windows/failed_pairs"},
    {"coldest_c", integer, "Cel", "lowest temperature at a window's edge",
     "/analysis/windows/coldest_c"},
    {"warmest_c", integer, "Cel", "highest temperature at a window's edge",
     "/analysis/windows/warmest_c"},
    {"primary_source", text, "", "meter of the energies", "/acquisition/primary/name"},
    {"cross_check_source", text, "", "meter they were compared with",
     "/acquisition/cross_check/name"},
    {"sample_period_s", real, "s", "measured period of the primary source",
     "/acquisition/meter/sample_period_s"},
    {"meter_lag_s", real, "s", "measured lag of the primary source", "/acquisition/meter/lag_s"},
    {"power_limit_w", real, "W", "board's power limit", "/acquisition/reference/power_limit_w"},
    {"warm_up_measured_s", real, "s", "warm-up as it was", "/acquisition/warm_up/duration_s"},
    {"warm_up_stable", boolean, "", "it ended stable", "/acquisition/warm_up/stable"},
    {"wall_s", real, "s", "from warm-up to the last window", "/acquisition/wall_s"},
};

constexpr Column kWindows[] = {
    {"run_id", text, "", "name of the run's directory", "/run_id"},
    {"seal", text, "", "SHA-256 of the run's manifest", "/manifest_sha256"},
    {"window", integer, "", "index in the order of execution; joins telemetry", "/window/index"},
    {"pair", integer, "", "pair it belongs to", "/window/pair"},
    {"attempt", integer, "", "attempt of that pair, from 1", "/window/attempt"},
    {"position", integer, "", "0: first of its pair, 1: second", "/window/position"},
    {"arm", text, "", "A or B", "/window/arm"},
    {"pair_order", text, "", "AB: arm A first", "/order"},
    {"passed", boolean, "", "passed every gate", "/window/passed"},
    {"accepted", boolean, "", "its pair counts", "/window/pair_accepted"},
    {"failed_gates", text, "", "names of the failed gates, comma-separated", "/failed_gates"},
    {"gates", text, "", "every gate as JSON: name, passed, value, limit", "/gates"},
    {"begin_ns", integer, "ns", "host monotonic time at its begin event", "/window/begin_ns"},
    {"end_ns", integer, "ns", "host monotonic time at its end event", "/window/end_ns"},
    {"elapsed_s", real, "s", "between those events, by the device", "/window/elapsed_s"},
    {"launches_per_replay", integer, "", "launches in one replay of the graph",
     "/window/launches_per_replay"},
    {"replays", integer, "", "replays in the window", "/window/replays"},
    {"replay_cv_ratio", real, "", "coefficient of variation of the replays' times",
     "/window/replay_cv_ratio"},
    {"pre_roll_s", real, "s", "same arm before its begin", "/window/pre_roll_s"},
    {"idle_before_s", real, "s", "GPU idleness since the window before", "/window/idle_before_s"},
    {"samples", integer, "", "power samples in it", "/window/estimate/samples"},
    {"coverage_ratio", real, "", "samples found / expected", "/window/estimate/coverage_ratio"},
    {"max_gap_s", real, "s", "longest time between samples", "/window/estimate/max_gap_s"},
    {"longest_repeat_s", real, "s", "longest stretch of one value",
     "/window/estimate/longest_repeat_s"},
    {"latency_s", real, "s", "time a launch", "/window/estimate/latency_s"},
    {"power_w", real, "W", "mean power by the primary source", "/window/estimate/mean_power_w"},
    {"energy_per_launch_j", real, "J", "mean power times time a launch",
     "/window/estimate/energy_per_launch_j"},
    {"counter_power_w", real, "W", "mean power by the cross-check",
     "/window/estimate/counter_power_w"},
#define HEBE_EDGE(edge)                                                                            \
  {#edge "_before_ns", integer, "ns", "host time before its readings",                             \
   "/window/" #edge "/before_ns"},                                                                 \
      {#edge "_after_ns", integer, "ns", "host time after them", "/window/" #edge "/after_ns"},    \
      {#edge "_energy_mj", integer, "mJ", "cumulative energy counter",                             \
       "/window/" #edge "/energy_mj"},                                                             \
      {#edge "_temperature_c", integer, "Cel", "GPU temperature",                                  \
       "/window/" #edge "/temperature_c"},                                                         \
      {#edge "_sm_clock_mhz", integer, "MHz", "SM clock", "/window/" #edge "/sm_clock_mhz"},       \
      {#edge "_memory_clock_mhz", integer, "MHz", "memory clock",                                  \
       "/window/" #edge "/memory_clock_mhz"},                                                      \
      {#edge "_power_average_mw", integer, "mW", "driver's average power",                         \
       "/window/" #edge "/power_average_mw"},                                                      \
      {#edge "_event_reasons", integer, "", "driver's bit mask of clock event reasons",            \
       "/window/" #edge "/event_reasons"},                                                         \
      {#edge "_power_cap_ns", integer, "ns", "time so far under the power cap",                    \
       "/window/" #edge "/power_cap_ns"},                                                          \
      {#edge "_thermal_ns", integer, "ns", "time so far slowed by temperature",                    \
       "/window/" #edge "/thermal_ns"},                                                            \
      {#edge "_hw_thermal_ns", integer, "ns", "time so far slowed by the hardware",                \
       "/window/" #edge "/hw_thermal_ns"},                                                         \
      {#edge "_power_brake_ns", integer, "ns", "time so far under the power brake",                \
       "/window/" #edge "/power_brake_ns"},                                                        \
  {                                                                                                \
#edge "_sync_ns", integer, "ns", "time so far waiting for other boards",                       \
        "/window/" #edge "/sync_ns"                                                                \
  }
    HEBE_EDGE(begin),
    HEBE_EDGE(end),
#undef HEBE_EDGE
};

constexpr Column kMechanism[] = {
    {"run_id", text, "", "name of the run's directory", "/run_id"},
    {"seal", text, "", "SHA-256 of the run's manifest", "/manifest_sha256"},
    {"plan_id", text, "", "content id of the frozen plan", "/manifest/plan_id"},
    {"arm", text, "", "A or B", "/arm"},
    {"case_name", text, "", "kernel case", "/subject/launch/name"},
    {"entry", text, "", "kernel's symbol", "/subject/launch/entry"},
    {"parameters", text, "", "the case's parameters as JSON", "/parameters"},
    {"arch", integer, "", "compute capability compiled for, e.g. 90",
     "/subject/launch/target/arch"},
    {"cubin_sha256", text, "", "the machine code", "/cubin"},
    {"source_sha256", text, "", "the case's source", "/subject/artifacts/source"},
    {"ttgir_sha256", text, "", "Triton's GPU IR", "/subject/artifacts/ttgir"},
    {"ptx_sha256", text, "", "PTX", "/subject/artifacts/ptx"},
    {"triton", text, "", "Triton's version", "/subject/compile/triton"},
    {"ptxas", text, "", "assembler's version", "/subject/compile/ptxas"},
    {"registers", integer, "", "registers a thread", "/occupancy/registers"},
    {"local_bytes", integer, "By", "local memory a thread: spills and stack",
     "/occupancy/local_bytes"},
    {"spills", integer, "", "spilled registers a thread, where the compiler says",
     "/subject/compile/metadata/n_spills"},
    {"static_shared_bytes", integer, "By", "static shared memory a block",
     "/occupancy/static_shared_bytes"},
    {"shared_bytes", integer, "By", "dynamic shared memory a block",
     "/subject/launch/shared_bytes"},
    {"num_warps", integer, "", "warps a block", "/subject/launch/num_warps"},
    {"num_ctas", integer, "", "blocks a cluster", "/subject/launch/num_ctas"},
    {"num_stages", integer, "", "software-pipeline stages", "/subject/compile/metadata/num_stages"},
    {"grid_x", integer, "", "programs along x", "/subject/launch/grid/0"},
    {"grid_y", integer, "", "programs along y", "/subject/launch/grid/1"},
    {"grid_z", integer, "", "programs along z", "/subject/launch/grid/2"},
    {"block_threads", integer, "", "threads a block", "/block_threads"},
    {"blocks_per_multiprocessor", integer, "", "resident blocks, by the driver",
     "/occupancy/blocks_per_multiprocessor"},
    {"warps_per_multiprocessor", integer, "", "resident warps, by the driver",
     "/warps_per_multiprocessor"},
    {"bytes_read", integer, "By", "declared by the case, a launch",
     "/subject/launch/work/bytes_read"},
    {"bytes_written", integer, "By", "declared by the case, a launch",
     "/subject/launch/work/bytes_written"},
    {"operations", text, "", "declared by the case, a launch: JSON of kind to count",
     "/operations"},
    {"qualification_record", text, "", "id of the record that qualified the arms",
     "/qualification/record", 2},
    {"qualification_name", text, "", "its name", "/qualification/name", 2},
    {"point", text, "", "point of that record", "/qualification/point", 2},
    {"variant", text, "", "kernel of that point: baseline, or a candidate", "/variant", 2},
#define HEBE_LEVEL(level, text_of)                                                                 \
  {"loads_" #level,                                                                                \
   integer,                                                                                        \
   "",                                                                                             \
   "static global loads in the " text_of,                                                          \
   "/subject/mechanism/loads/" #level,                                                             \
   2},                                                                                             \
  {                                                                                                \
    "stores_" #level, integer, "", "static global stores in the " text_of,                         \
        "/subject/mechanism/stores/" #level, 2                                                     \
  }
    HEBE_LEVEL(ttgir, "TTGIR"),
    HEBE_LEVEL(ptx, "PTX"),
    HEBE_LEVEL(sass, "machine code"),
#undef HEBE_LEVEL
    {"sass_instructions", integer, "", "static instructions of the machine code",
     "/subject/mechanism/instructions", 2},
    {"occupancy_ratio", real, "", "resident warps / those that a multiprocessor can hold",
     "/subject/mechanism/occupancy_ratio", 2},
    {"loaded_bytes", integer, "By", "global bytes that the counted launch asks for",
     "/subject/mechanism/bytes/loaded", 2},
    {"stored_bytes", integer, "By", "global bytes that the counted launch stores",
     "/subject/mechanism/bytes/stored", 2},
    {"unique_loaded_bytes", integer, "By", "of the loaded bytes, each once",
     "/subject/mechanism/bytes/unique_loaded", 2},
    {"unique_stored_bytes", integer, "By", "of the stored bytes, each once",
     "/subject/mechanism/bytes/unique_stored", 2},
    {"counted_at", text, "", "parameters of the counted launch as JSON; null: this launch",
     "/counted_at", 2},
    {"counted_programs", integer, "", "programs of the counted launch", "/counted_programs", 2},
};

constexpr Column kTelemetry[] = {
    {"run_id", text, "", "name of the run's directory", nullptr},
    {"source", text, "", "name of the source", nullptr},
    {"t_mono_ns", integer, "ns", "host monotonic time", nullptr},
    {"t_source_us", integer, "us", "the driver's own time stamp, host wall time", nullptr},
    {"window", integer, "", "index of the window it lies in, null between windows", nullptr},
    {"power_raw_mw", integer, "mW", "as the device gave it", nullptr},
    {"power_w", real, "W", "power_raw_mw in watts", nullptr},
    {"energy_raw_mj", integer, "mJ", "cumulative counter as the device gave it", nullptr},
    {"energy_j", real, "J", "energy_raw_mj in joules", nullptr},
    {"temperature_c", integer, "Cel", "GPU temperature", nullptr},
};

} // namespace

std::string_view name_of(ColumnType type) {
  switch (type) {
  case text:
    return "string";
  case integer:
    return "int64";
  case real:
    return "double";
  case boolean:
    return "bool";
  }
  return "?";
}

std::string_view name_of(DatasetTable table) {
  switch (table) {
  case DatasetTable::mechanism:
    return "mechanism";
  case DatasetTable::runs:
    return "runs";
  case DatasetTable::telemetry:
    return "telemetry";
  case DatasetTable::windows:
    return "windows";
  }
  return "?";
}

namespace {
std::span<const Column> all_columns_of(DatasetTable table) {
  switch (table) {
  case DatasetTable::mechanism:
    return kMechanism;
  case DatasetTable::runs:
    return kRuns;
  case DatasetTable::telemetry:
    return kTelemetry;
  case DatasetTable::windows:
    return kWindows;
  }
  return {};
}
} // namespace

// A layout adds its columns at the end, so that an older one is what stands before them.
std::span<const Column> columns_of(DatasetTable table, int layout) {
  const auto all = all_columns_of(table);
  const auto newer =
      std::ranges::find_if(all, [&](const Column& c) { return c.since > layout; }) - all.begin();
  return all.first(static_cast<std::size_t>(newer));
}

} // namespace hebe::evidence
