// How long a lookup by a profile takes: a hit of a bucket, a hit behind an exact row, a miss.
#include "tune/profile.hpp"

#include <hebe/dispatch.hpp>

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

namespace {
using namespace hebe;

// Ten operations with every power of two of m for eight n: as many rows as a service has.
tune::Profile made_profile() {
  tune::Profile profile;
  for (int operation = 0; operation < 10; ++operation)
    for (std::int64_t n = 1024; n <= 8192; n += 1024)
      for (std::int64_t m = 1; m <= 8192; m *= 2) {
        tune::ProfileRow row;
        row.key = {"matmul." + std::to_string(operation),
                   "m<=" + std::to_string(m) + ",n=" + std::to_string(n) + ",k=4096", "bf16",
                   "NVIDIA H200"};
        row.implementation.name = "triton";
        row.energy_nj = row.time_ns = {1000, 999, 1001};
        row.meter = {"made", "usable", Provenance::simulated};
        row.platform = {{}, "0", "none", "0", {}};
        row.date = "2026-01-01T00:00:00Z";
        if (const auto taken = profile.record(row, "made"); !taken) std::abort();
        if (m == 1) {
          row.key.shape = "m=4096,n=" + std::to_string(n) + ",k=4096";
          if (const auto taken = profile.record(row, "made"); !taken) std::abort();
        }
      }
  return profile;
}

void lookup(benchmark::State& state, std::int64_t m, const char* dtype, bool there) {
  std::int64_t sizes[] = {m, 4096, 4096};
  for (auto _ : state) {
    benchmark::DoNotOptimize(sizes);
    const auto* choice = dispatch::find("matmul.7", sizes, dtype);
    if ((choice != nullptr) != there) state.SkipWithError("the wrong row");
    benchmark::DoNotOptimize(choice);
  }
}

} // namespace

BENCHMARK_CAPTURE(lookup, exact, 4096, "bf16", true);
BENCHMARK_CAPTURE(lookup, bucket, 200, "bf16", true);
BENCHMARK_CAPTURE(lookup, missing_size, 100000, "bf16", false);
BENCHMARK_CAPTURE(lookup, missing_dtype, 200, "int8", false);
BENCHMARK_CAPTURE(lookup, bucket_on_2_threads, 200, "bf16", true)->Threads(2);

int main(int argc, char** argv) {
  const auto file = (std::filesystem::temp_directory_path() /
                     ("hebe_dispatch_bench_" + std::to_string(::getpid()) + ".json"))
                        .string();
  const auto written = tune::write_profile(file, made_profile());
  const auto loaded = dispatch::load(file, "NVIDIA H200");
  std::filesystem::remove(file);
  if (!written || !loaded.ok) {
    std::fprintf(stderr, "%s\n", loaded.why.c_str());
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
