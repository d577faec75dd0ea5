#include "campaign/doctor.hpp"

#include "campaign/scratch_folder.hpp"
#include "core/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

class Examination {
public:
  Examination(const evidence::DataRoot& root, const DoctorRequest& request)
      : root_(root), request_(request) {}

  DoctorReport run() {
    facts(evidence::build_facts());
    toolchain();
    machine();
    data_root();
    return std::move(report_);
  }

private:
  void facts(std::vector<Fact> more) {
    report_.facts.insert(report_.facts.end(), more.begin(), more.end());
  }
  void pass(std::string name, std::string detail) {
    report_.checks.push_back({std::move(name), true, std::move(detail), {}});
  }
  void fail(std::string name, std::string detail, std::string fix) {
    report_.checks.push_back({std::move(name), false, std::move(detail), std::move(fix)});
  }
  void fail(std::string name, const Refusal& r) {
    fail(std::move(name), r.what, r.next.empty() ? "see above" : r.next);
  }

  void toolchain() {
    auto worker = kernel::Worker::start(request_.worker);
    if (!worker) return fail("compile worker", worker.error());
    const auto hello = (*worker)->request("hello", Json::object(), Seconds(60));
    if (!hello) {
      auto r = hello.error();
      r.next = "run ./check, or set HEBE_PYTHON to a Python that has Triton 3.6.0 and numpy";
      return fail("compile worker", r);
    }
    const auto tools = evidence::toolchain_facts(*hello);
    facts(tools);
    for (const auto& f : tools)
      if (f.name == "toolchain.triton" && f.value != "3.6.0")
        fail("Triton version", f.unavailable.empty() ? "found " + f.value.dump() : f.unavailable,
             "install triton==3.6.0 for the Python that HEBE_PYTHON names");
    compiles(**worker);
  }

  void compiles(kernel::Worker& worker) {
    // Into a folder of its own: a doctor leaves no artifact behind.
    const auto folder = ScratchFolder::make(request_.scratch);
    if (!folder) return fail("tool chain compiles", folder.error());
    kernel::CaseRequest subject;
    subject.file = request_.probe_case;
    const auto compiled = kernel::compile_case(worker, kernel::ArtifactStore(folder->path()),
                                               subject, folder->path() / "cache");
    if (!compiled) return fail("tool chain compiles", compiled.error());
    pass("tool chain compiles", fmt::format("{} for sm_90, cubin sha256 {}", compiled->launch.entry,
                                            compiled->artifacts.at("cubin").substr(0, 16)));
  }

  void machine() {
    auto machine = Machine::open(request_.machine);
    const bool explicit_sim = request_.machine.selector == "sim";
    facts(evidence::host_facts(explicit_sim, request_.variables));
    if (!machine) return fail("GPU", machine.error());
    auto& m = **machine;
    report_.simulated = m.simulated();
    if (m.simulated() && !explicit_sim)
      return fail("GPU", m.why(),
                  "install the NVIDIA driver and a GPU to measure; `--device sim` runs everything "
                  "simulated");
    pass("GPU", fmt::format("{} ({}, {})", m.info().name, m.info().uuid, m.info().pci_bus_id));
    facts(evidence::device_facts(m.info()));
    facts(evidence::meter_facts(m.meter()));
    board(m);
    meters(m);
  }

  void board(Machine& m) {
    auto& meter = m.meter();
    if (const auto mig = meter.mig_enabled(); !mig)
      fail("MIG is off", mig.error());
    else if (*mig)
      fail("MIG is off", "MIG is on: board power is not a slice's power",
           "ask the administrator for a board with MIG off");
    else
      pass("MIG is off", "board power is the GPU's");
    const auto processes = meter.processes();
    if (!processes) {
      fail("GPU is free", processes.error());
    } else if (!processes->empty()) {
      std::string who;
      for (const auto& p : *processes)
        who += fmt::format("{}{} ({})", who.empty() ? "" : ", ", p.pid,
                           p.name.empty() ? "name unknown" : p.name);
      fail("GPU is free", "in use by " + who, "end them, or choose another --device");
    } else {
      pass("GPU is free", "no other process");
    }
  }

  // Reads each source, waits for two of the counter's updates, reads again.
  void meters(Machine& m) {
    auto& meter = m.meter();
    const auto first = meter.read_boundary();
    if (!first) return fail("meters", first.error());
    m.clock().sleep_for(std::chrono::milliseconds(350));
    const auto second = meter.read_boundary();
    if (!second) return fail("meters", second.error());
    if (!first->energy_mj)
      fail("energy counter", first->energy_mj.error());
    else if (!second->energy_mj)
      fail("energy counter", second->energy_mj.error());
    else if (*second->energy_mj <= *first->energy_mj)
      fail("energy counter",
           fmt::format("went from {} to {} mJ in 0.35 s: a board draws power doing nothing, so "
                       "this is not metering",
                       *first->energy_mj, *second->energy_mj),
           "another driver version may meter this board");
    else
      pass("energy counter",
           fmt::format("{}: +{} mJ in 0.35 s, a call takes {:.1f} ms", meter.counter_source().name,
                       *second->energy_mj - *first->energy_mj,
                       to_seconds(second->after - second->before).value() * 1e3));
    const auto samples = meter.read_power_samples(0);
    if (!samples)
      fail("power samples", samples.error());
    else if (samples->size() < 2)
      fail("power samples", "the driver's buffer is empty",
           "another driver version may meter this board");
    else
      pass("power samples",
           fmt::format("{}: {} in the buffer, {:.1f} ms apart, newest {:.1f} W",
                       meter.samples_source().name, samples->size(),
                       static_cast<double>(samples->back().wall_us - samples->front().wall_us) *
                           1e-3 / static_cast<double>(samples->size() - 1),
                       static_cast<double>(samples->back().raw_mw) * 1e-3));
    throttle(*second);
  }

  void throttle(const meter::Boundary& b) {
    if (!b.event_reasons) return fail("not throttled", b.event_reasons.error());
    constexpr std::int64_t kVoiding = 0x08 | 0x10 | 0x20 | 0x40 | 0x80;
    if ((*b.event_reasons & kVoiding) != 0)
      fail("not throttled", fmt::format("clock event reasons 0x{:x}", *b.event_reasons),
           "let the board cool; see nvidia-smi -q -d PERFORMANCE");
    else
      pass("not throttled", fmt::format("clock event reasons 0x{:x}", *b.event_reasons));
  }

  // Asked by writing: permissions alone do not show a full disk, or a file system of the kernel's.
  static Status can_be_written(const fs::path& folder) {
    std::error_code ec;
    if (!fs::is_directory(folder, ec))
      return refuse(RefusalCode::io_failed, "the data root is to be a folder, and this is none",
                    "name another with --data-root or HEBE_DATA_ROOT", folder.string());
    auto name = (folder / ".hebe-doctor-XXXXXX").string(); // nobody else's: it is removed again
    const auto failed = [&](const char* what) -> Status {
      auto r = io_refusal(errno, what, folder);
      if (r.next.empty()) r.next = "name another folder with --data-root or HEBE_DATA_ROOT";
      return std::unexpected(std::move(r));
    };
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) return failed("making a file in it");
    Status written;
    const std::string block(4096, '\n');
    if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size()) ||
        ::fsync(fd) != 0)
      written = failed("writing to it");
    ::close(fd);
    ::unlink(name.c_str());
    return written;
  }

  void data_root() {
    std::error_code ec;
    fs::path existing = fs::absolute(root_.path());
    while (!fs::exists(existing, ec) && existing.has_relative_path())
      existing = existing.parent_path();
    if (const auto usable = can_be_written(existing); usable)
      pass("data root", root_.path().string());
    else
      fail("data root", usable.error().what + ": " + existing.string(), usable.error().next);
    for (const auto& half : root_.unsealed())
      report_.facts.push_back(known("data_root.half_written", half.string(), "directory name"));
  }

  const evidence::DataRoot& root_;
  const DoctorRequest& request_;
  DoctorReport report_;
};

} // namespace

bool DoctorReport::can_measure() const {
  return std::all_of(checks.begin(), checks.end(), [](auto& c) { return c.passed; });
}

DoctorReport examine(const evidence::DataRoot& root, const DoctorRequest& request) {
  return Examination(root, request).run();
}

} // namespace hebe::campaign
