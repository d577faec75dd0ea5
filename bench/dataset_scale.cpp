// Writes a dataset of many runs through the real dataset writer. In: one sealed run and a number of
// telemetry rows; out: a dataset that says it is synthetic: the run's rows repeated under made-up
// run ids, enough times for that many rows. For speed and memory only, never for a result.
#include "evidence/dataset_writer.hpp"

#include "core/sha256.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include <sys/resource.h>

namespace {
using namespace hebe;

struct Asked {
  std::filesystem::path run, data_root;
  std::int64_t rows = 10'000'000;
};

// The largest this process ever was.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Result<evidence::StoredDataset> write(const Asked& asked) {
  const evidence::DataRoot root(asked.data_root);
  HEBE_TRY(auto run, evidence::read_stored_run(asked.run, evidence::Telemetry::read));
  const auto original = run.run_id, seal = run.seal;
  evidence::DatasetOrigin origin;
  origin.synthetic = "rows of run " + original + " repeated under made-up run ids";
  evidence::DatasetWriter writer(root, origin);
  std::int64_t written = 0;
  for (int i = 0; written < asked.rows; ++i) {
    run.run_id = fmt::format("synthetic-{:06}", i);
    run.seal = sha256_hex(seal + run.run_id);
    HEBE_TRY(const auto rows, writer.add(run));
    if (rows == 0) return refuse(RefusalCode::bad_argument, "the run has no telemetry");
    written += rows;
    if (i == 9 || i == 99)
      std::fprintf(stderr, "%d runs: peak memory %.0f MiB\n", i + 1, peak_mib());
  }
  return writer.finish();
}

} // namespace

int main(int argc, char** argv) {
  CLI::App app{"A synthetic dataset of one run repeated, for benches of queries and memory."};
  Asked asked;
  app.add_option("run", asked.run, "a sealed run's directory")->required();
  app.add_option("data_root", asked.data_root, "the dataset goes to <data root>/datasets")
      ->required();
  app.add_option("--rows", asked.rows, "telemetry rows at least")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto begin = std::chrono::steady_clock::now();
  const auto dataset = write(asked);
  if (!dataset) {
    std::fprintf(stderr, "%s\n", to_text(dataset.error()).c_str());
    return static_cast<int>(exit_code_of(dataset.error().code));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "%zu runs, %lld telemetry rows, %.1f MiB in %.1f s: peak memory %.0f MiB\n",
               dataset->runs,
               static_cast<long long>(dataset->rows.at(evidence::DatasetTable::telemetry)),
               static_cast<double>(dataset->bytes) / (1 << 20), took.count(), peak_mib());
  std::printf("%s\n", dataset->directory.c_str());
  return 0;
}
