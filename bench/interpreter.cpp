// hebe_interpreter: is the interpreter fast and small enough to be a simulated GPU and an oracle?
// In: dumps of Triton; out: seconds, programs and elements a second, peak memory against the
// kernel's buffers, for one thread and for all. Exit code 0: every demand holds; 1: one does not.
#include "ttgir/interpreter.hpp"
#include "core/files.hpp"
#include "core/parallel.hpp"
#include "ttgir/reader.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace hebe::bench {
namespace {

constexpr double kDemandedSeconds = 20; // LayerNorm 2048 × 8192
constexpr double kDemandedMemory = 2;   // times the kernel's buffers

std::size_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  return 0;
}

struct Kernel {
  std::string name, dump;
  std::array<std::uint32_t, 3> grid{};
  std::vector<std::vector<std::byte>> buffers;
  std::vector<ttgir::LaunchArgument> scalars; ///< behind the buffers
  bool demanded = false;
};

ttgir::ScalarArgument scalar(std::uint32_t value) { return {ttgir::Scalar::i32, value}; }
ttgir::ScalarArgument scalar(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return {ttgir::Scalar::f32, bits};
}
/// f16 between 0.5 and 2, in no order.
std::vector<std::byte> halves(std::size_t count) {
  std::vector<std::byte> bytes(count * 2);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    const auto bits = static_cast<std::uint16_t>(0x3800 + (state >> 21));
    std::memcpy(bytes.data() + 2 * i, &bits, 2);
  }
  return bytes;
}

Kernel layer_norm(std::uint32_t rows, std::uint32_t columns) {
  const std::size_t all = std::size_t{rows} * columns;
  return {fmt::format("LayerNorm {}x{} fp16", rows, columns),
          "ln_fwd.ttir",
          {rows, 1, 1},
          {halves(all), std::vector<std::byte>(all * 2), halves(columns), halves(columns),
           std::vector<std::byte>(rows * 4), std::vector<std::byte>(rows * 4)},
          {scalar(columns), scalar(columns), scalar(1e-5F)},
          true};
}
Kernel softmax(std::uint32_t rows, std::uint32_t columns) {
  const std::size_t all = std::size_t{rows} * columns;
  return {fmt::format("softmax {}x{} fp32", rows, columns),
          "softmax.ttir",
          {rows, 1, 1},
          {std::vector<std::byte>(all * 4), halves(all * 2)},
          {scalar(columns), scalar(columns), scalar(rows), scalar(columns)},
          false};
}
Kernel matmul(const std::string& dump, std::uint32_t size) {
  const std::size_t all = std::size_t{size} * size;
  return {fmt::format("matmul {0}^3 fp16, {1}", size, dump.substr(dump.find('.') + 1)),
          dump,
          {size / 128 * (size / 128), 1, 1},
          {halves(all), halves(all), std::vector<std::byte>(all * 2)},
          {scalar(size), scalar(size), scalar(size), scalar(size), scalar(size), scalar(size)},
          false};
}

struct Measured {
  double seconds = 0;
  std::size_t peak = 0, before = 0, lanes = 0;
};

/// In a process of its own: its peak is this kernel's.
Measured measure(Kernel& kernel, unsigned threads, int repeats) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    Measured m;
    const auto text = read_file(std::string(HEBE_SOURCE_DIR) + "/tests/data/ttgir/" + kernel.dump);
    const auto module = text ? ttgir::read_module(*text) : std::unexpected(text.error());
    ttgir::Launch launch;
    launch.grid = kernel.grid;
    launch.threads = threads;
    for (auto& bytes : kernel.buffers)
      launch.arguments.emplace_back(ttgir::BufferArgument{bytes, true, ""});
    for (const auto& each : kernel.scalars) launch.arguments.push_back(each);
    m.seconds = 1e9;
    for (int i = 0; module && i < repeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const auto outcome = ttgir::interpret(**module, "", launch);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (!outcome) {
        fmt::print(stderr, "{}\n", to_text(outcome.error()));
        ::_exit(2);
      }
      m.seconds = std::min(m.seconds, took.count());
      m.lanes = outcome->lane_bytes;
    }
    m.peak = peak_bytes();
    if (!module || ::write(ends[1], &m, sizeof m) != sizeof m) ::_exit(2);
    ::_exit(0);
  }
  ::close(ends[1]);
  Measured m;
  const auto got = ::read(ends[0], &m, sizeof m);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0 || got != sizeof m) throw std::runtime_error(kernel.name + " could not be run");
  return m;
}

int run(int repeats) {
  bool good = true;
  fmt::print("{:32} {:>8} {:>10} {:>12} {:>12} {:>14}\n", "kernel", "threads", "seconds",
             "programs/s", "peak/buffers", "lanes, bytes");
  using Make = Kernel (*)();
  // One at a time: the memory of one must not lie under the peak of the next.
  constexpr Make kernels[] = {
      [] { return layer_norm(2048, 8192); }, [] { return softmax(4096, 1024); },
      [] { return matmul("matmul.ttir", 1024); }, [] { return matmul("matmul.ttgir", 1024); }};
  for (const Make make : kernels)
    for (const unsigned threads : {1U, core_count()}) {
      Kernel kernel = make();
      std::size_t buffers = 0;
      for (const auto& bytes : kernel.buffers) buffers += bytes.size();
      const Measured m = measure(kernel, threads, repeats);
      const double programs = static_cast<double>(kernel.grid[0]) * kernel.grid[1] * kernel.grid[2];
      const double memory = static_cast<double>(m.peak) / static_cast<double>(buffers);
      fmt::print("{:32} {:>8} {:>10.4f} {:>12.0f} {:>12.2f} {:>14}\n", kernel.name, threads,
                 m.seconds, programs / m.seconds, memory, m.lanes);
      if (kernel.demanded && (m.seconds > kDemandedSeconds || memory > kDemandedMemory))
        good = false;
    }
  fmt::print("demands on LayerNorm: at most {} s and {} times its buffers: {}\n", kDemandedSeconds,
             kDemandedMemory, good ? "hold" : "do not hold");
  return good ? 0 : 1;
}

} // namespace
} // namespace hebe::bench

int main(int argc, char** argv) {
  CLI::App app{"Speed and memory of the interpreter"};
  int repeats = 3;
  app.add_option("--repeats", repeats, "the best of so many");
  CLI11_PARSE(app, argc, argv);
  try {
    return hebe::bench::run(repeats);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
