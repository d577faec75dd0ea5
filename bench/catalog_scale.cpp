// hebe_catalog_scale: is a catalog of many runs made quickly, in memory that does not grow? In:
// options; out: time and peak memory of a rebuild for a tenth of the runs and for all, each in a
// process of its own. Exit code 0: every demand holds; 1: one does not; 2: it could not be run.
#include "core/parallel.hpp"
#include "evidence/catalog.hpp"
#include "sealed_copies.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

namespace hebe::bench {
namespace {
namespace fs = std::filesystem;

constexpr double kDemandedSecondsPerRun = 1e-3; // 10 000 runs in 10 s
constexpr double kDemandedMebibytes = 256;
constexpr double kDemandedGrowth = 1.25; // of memory, ten times the runs: the list of their names

struct Measured {
  double seconds = 0, mebibytes = 0;
  std::int64_t runs = 0, problems = 0;
};

double peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

/// In the child: one rebuild, its figures to stdout.
int rebuild(const fs::path& folder, unsigned threads) {
  const auto begin = std::chrono::steady_clock::now();
  const auto report = evidence::rebuild_catalog(evidence::DataRoot(folder), threads);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!report) {
    fmt::print(stderr, "{}\n", to_text(report.error()));
    return 2;
  }
  fmt::print("{} {} {} {}\n", took.count(), peak_mebibytes(), report->runs, report->problems);
  return 0;
}

Measured measure_in_child(const fs::path& folder, unsigned threads) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    const auto count = std::to_string(threads);
    ::execl("/proc/self/exe", "hebe_catalog_scale", "--rebuild", folder.c_str(), "--threads",
            count.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  Measured m;
  std::istringstream words(said);
  if (status != 0 || !(words >> m.seconds >> m.mebibytes >> m.runs >> m.problems))
    throw std::runtime_error("a rebuild failed");
  return m;
}

void generate(const fs::path& folder, CopiesRequest request) {
  const auto made = make_sealed_copies(evidence::DataRoot(folder), request);
  if (!made) throw std::runtime_error(to_text(made.error()));
}

int scale(const fs::path& folder, CopiesRequest request) {
  const auto all = request.runs;
  bool holds = true;
  double small = 0;
  for (const auto runs : {all / 10, all}) {
    const auto root = folder / std::to_string(runs);
    request.runs = runs;
    generate(root, request);
    const auto m = measure_in_child(root, request.threads);
    const bool whole = m.runs == static_cast<std::int64_t>(runs) && m.problems == 0;
    fmt::print("{:7} runs: rebuilt in {:6.2f} s on {} threads, {:6.1f} MiB at most{}\n", runs,
               m.seconds, request.threads, m.mebibytes,
               whole ? "" : fmt::format("; found {} runs, {} problems", m.runs, m.problems));
    if (runs == all) {
      const double allowed = kDemandedSecondsPerRun * static_cast<double>(runs);
      fmt::print("demanded: {:.1f} s, {} MiB, and {} times the memory of {} runs at most: {:.2f}\n",
                 allowed, kDemandedMebibytes, kDemandedGrowth, all / 10, m.mebibytes / small);
      holds &= m.seconds <= allowed && m.mebibytes <= kDemandedMebibytes &&
               m.mebibytes <= kDemandedGrowth * small;
    }
    small = m.mebibytes;
    holds &= whole;
  }
  return holds ? 0 : 1;
}

} // namespace
} // namespace hebe::bench

int main(int argc, char** argv) {
  using namespace hebe::bench;
  CLI::App app{"Time and memory of catalog-rebuild over many sealed, simulated runs."};
  CopiesRequest request;
  request.threads = hebe::core_count();
  std::string generated, rebuilt;
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  app.add_option("--runs", request.runs, "how many")->check(CLI::Range(10, 10'000'000));
  app.add_option("--campaign", request.campaign, "campaign id in every manifest");
  app.add_option("--threads", request.threads)->check(CLI::Range(1, 1024));
  app.add_option("--generate", generated, "only make this data root");
  app.add_option("--rebuild", rebuilt, "only rebuild this root's catalog: seconds, MiB, counts");
  app.add_option("--folder", folder, "where the data roots are made, and removed again");
  CLI11_PARSE(app, argc, argv);
  const auto own = folder / fmt::format("hebe-catalog-{}", ::getpid());
  int code = 2;
  try {
    if (!rebuilt.empty()) return rebuild(rebuilt, request.threads);
    if (!generated.empty()) return generate(generated, request), 0;
    code = scale(own, request);
  } catch (const std::exception& e) {
    fmt::print(stderr, "hebe_catalog_scale: {}\n", e.what());
  }
  std::error_code ignored;
  std::filesystem::remove_all(own, ignored);
  return code;
}
