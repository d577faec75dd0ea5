#include "campaign/job.hpp"

#include "measure/workload.hpp"

#include <fmt/format.h>

#include <ctime>
#include <random>
#include <set>

#include <unistd.h>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

std::string utc_text(std::int64_t wall_us) {
  const std::time_t t = wall_us / 1'000'000;
  std::tm out{};
  gmtime_r(&t, &out);
  char text[32];
  text[std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &out)] = '\0';
  return text;
}

// A private folder, gone when this is.
class ScratchFolder {
public:
  static Result<ScratchFolder> make(const fs::path& parent) {
    auto name = (parent / "hebe-job-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return std::unexpected(io_refusal(errno, "create directory", name));
    return ScratchFolder(name);
  }
  ScratchFolder(ScratchFolder&& o) noexcept : path_(std::exchange(o.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&& o) noexcept {
    std::swap(path_, o.path_);
    return *this;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

class Job {
public:
  Job(const evidence::DataRoot& root, const JobRequest& request, const JobCallbacks& callbacks)
      : root_(root), request_(request), callbacks_(callbacks) {}

  Result<JobPreview> preview() {
    HEBE_CHECK(check_request());
    HEBE_TRY(machine_, Machine::open(request_.machine));
    HEBE_TRY(scratch_, ScratchFolder::make(request_.scratch));
    HEBE_CHECK(compile());
    HEBE_CHECK(freeze());
    const double pair = 2 * (plan_.window.value() + 0.4);
    return JobPreview{to_json(plan_), plan_id_,
                      Seconds(plan_.warm_up.value() + pair * plan_.pairs)};
  }

  Result<JobOutcome> run() {
    HEBE_CHECK(check_request());
    HEBE_TRY(machine_, Machine::open(request_.machine));
    if (!machine_->why().empty())
      notice("no GPU here (" + machine_->why() +
             "): running on the simulated GPU; its values are simulated, never measured");
    HEBE_CHECK(root_.initialise());
    for (const auto& half : root_.unsealed())
      notice("found a half-written run, left by a process that died; it is never read: " +
             half.string());
    HEBE_CHECK(lease());
    HEBE_CHECK(board_is_free());
    HEBE_TRY(scratch_, ScratchFolder::make(request_.scratch));
    HEBE_CHECK(compile());
    HEBE_CHECK(freeze());
    return measure_and_seal();
  }

private:
  void notice(const std::string& text) const {
    if (callbacks_.notice) callbacks_.notice(text);
  }

  // Counts and lengths first: a usage error must not cost a compile.
  Status check_request() {
    plan_.kind = request_.kind;
    plan_.tier = request_.tier;
    plan_.pairs = request_.pairs;
    plan_.window = request_.window;
    plan_.warm_up = request_.warm_up;
    plan_.seed = request_.seed.value_or(0);
    plan_.margins = request_.margins;
    return complete_plan(plan_);
  }

  // The data root's lease is for people to see; two data roots must not share a board either, so a
  // real board is also locked for the whole machine.
  Status lease() {
    const RealClock wall;
    char host[256] = "unknown host";
    ::gethostname(host, sizeof host - 1);
    const auto since = utc_text(wall.wall_us());
    const auto what =
        fmt::format("run-{} {}", request_.kind, request_.subject.file.stem().string());
    HEBE_TRY(lease_, Lease::acquire(root_.leases(), machine_->info().uuid, host, since, what));
    if (!machine_->simulated()) {
      HEBE_TRY(machine_lease_,
               Lease::acquire(machine_wide_leases(), machine_->info().uuid, host, since, what));
    }
    return {};
  }

  // Before our own context exists, so that every process on the board is somebody else's.
  Status board_is_free() {
    auto& meter = machine_->meter();
    HEBE_TRY(const bool mig, meter.mig_enabled());
    if (mig)
      return refuse(RefusalCode::mig_enabled,
                    "MIG is on: the board's power is that of all its slices together",
                    "measure on a board whose administrator has MIG off", meter.board().uuid);
    HEBE_TRY(const auto processes, meter.processes());
    if (processes.empty()) return {};
    std::string who;
    for (const auto& p : processes)
      who += fmt::format("{}{} ({})", who.empty() ? "" : ", ", p.pid,
                         p.name.empty() ? "name unknown" : p.name);
    return refuse(RefusalCode::gpu_busy, "other processes use the GPU: " + who,
                  "end them, or choose another --device", meter.board().uuid);
  }

  // With our context open and nobody else on the board, the one process listed is ours, whatever
  // its number is in the meter's eyes. None: the meter cannot see processes, and the record says
  // so.
  Status find_ourselves() {
    HEBE_TRY(const auto processes, machine_->meter().processes());
    if (processes.size() > 1)
      return refuse(
          RefusalCode::gpu_busy,
          fmt::format("{} processes use the GPU just after it was free", processes.size()),
          "end them, or choose another --device", machine_->meter().board().uuid);
    for (const auto& p : processes) own_pids_.insert(p.pid);
    return {};
  }

  Status compile() {
    HEBE_TRY(worker_, kernel::Worker::start(request_.worker));
    HEBE_TRY(hello_, worker_->request("hello", Json::object(), Seconds(60)));
    auto subject = request_.subject;
    subject.arch = machine_->info().arch;
    const kernel::ArtifactStore store(root_.path());
    HEBE_TRY(compiled_, kernel::compile_case(*worker_, store, subject, root_.cache() / "triton"));
    HEBE_CHECK(fits());
    HEBE_TRY(inputs_, measure::write_inputs(compiled_.launch, scratch_->path()));
    if (!compiled_.launch.has_reference)
      return refuse(
          RefusalCode::bad_spec, "case \"" + compiled_.launch.name + "\" has no reference",
          "give the case a reference: an unchecked kernel is not measured", subject.file.string());
    HEBE_TRY(expected_,
             kernel::reference_outputs(*worker_, compiled_, inputs_.paths, scratch_->path()));
    worker_.reset(); // its memory and its CPU time are not to be there while we measure
    return {};
  }

  // Before gigabytes are written: do the buffers fit the GPU, and the inputs and oracle outputs the
  // disk?
  Status fits() const {
    std::uint64_t buffers = 0, files = 0;
    for (const auto& a : compiled_.launch.arguments) {
      if (!a.is_buffer) continue;
      buffers += a.bytes().count;
      files += a.role == kernel::Role::out ? 2 * a.bytes().count
                                           : a.bytes().count; // an oracle may be wider
    }
    auto memory = machine_->info().memory.count;
    if (machine_->simulated()) // its memory is the host's
      memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
               static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
    if (buffers > memory)
      return refuse(RefusalCode::bad_spec,
                    fmt::format("the case's buffers take {} bytes, there are {}", buffers, memory),
                    "make the case smaller (--set)", compiled_.launch.name);
    std::error_code ec;
    const auto space = fs::space(scratch_->path(), ec);
    if (!ec && files > space.available)
      return refuse(RefusalCode::no_space,
                    fmt::format("inputs and oracle outputs take {} bytes, {} are free", files,
                                space.available),
                    "set TMPDIR to a larger file system, or make the case smaller (--set)",
                    scratch_->path().string());
    return {};
  }

  Status freeze() {
    plan_.subject = {{"launch", compiled_.launch.json},
                     {"artifacts", compiled_.artifacts},
                     {"source", compiled_.provenance.value("source_name", "")},
                     {"compile", compiled_.provenance}};
    plan_.cubins = {compiled_.artifacts.at("cubin"), compiled_.artifacts.at("cubin")};
    plan_.inputs = inputs_.digests;
    Json faults = Json::array();
    for (const auto& f : request_.machine.faults) faults.push_back(gpu::to_string(f));
    plan_.device =
        machine_->simulated()
            ? Json{{"provenance", "simulated"},
                   {"outputs", "taken from the case's reference, not computed from the cubin"},
                   {"price", "declared bytes and operations through a roofline and an energy "
                             "table, not counted from the TTGIR"},
                   {"faults", faults}}
            : Json{{"provenance", "measured"}, {"arch", machine_->info().arch}};
    if (!request_.seed &&
        !machine_->simulated()) { // a simulated run is to be reproducible, a real one random
      std::random_device entropy;
      plan_.seed = (std::uint64_t{entropy()} << 32) | entropy();
      plan_.order = measure::random_order(plan_.pairs, plan_.seed);
    }
    HEBE_TRY(plan_id_, content_id(to_json(plan_)));
    return {};
  }

  Status may_continue() const {
    if (callbacks_.interrupted && callbacks_.interrupted())
      return refuse(RefusalCode::interrupted, "interrupted; nothing was recorded",
                    "run again to measure");
    if (const auto* board = machine_->sim_board();
        board && board->active(gpu::FaultKind::lease_removed, machine_->clock().now())) {
      std::error_code ignored;
      fs::remove(lease_->path(), ignored);
    }
    HEBE_CHECK(lease_->still_held());
    return machine_lease_ ? machine_lease_->still_held() : Status{};
  }

  Json environment() {
    std::vector<Fact> facts = evidence::build_facts();
    Json argv = Json::array();
    for (const auto& a : request_.argv) argv.push_back(a);
    facts.push_back(known("run.argv", argv, "command line; the data root's place is left out"));
    facts.push_back(
        machine_->simulated()
            ? unknown("run.started", "clock", "the simulated GPU runs in virtual time")
            : known("run.started", utc_text(machine_->clock().wall_us()), "wall clock"));
    for (auto&& more : {evidence::host_facts(machine_->simulated(), request_.variables),
                        evidence::toolchain_facts(hello_), evidence::device_facts(machine_->info()),
                        evidence::meter_facts(machine_->meter())})
      facts.insert(facts.end(), more.begin(), more.end());
    if (request_.redact) evidence::redact(facts);
    return evidence::environment_json(facts);
  }

  Result<JobOutcome> measure_and_seal() {
    evidence::RunParts parts;
    parts.environment = environment();
    HEBE_CHECK(
        canonical_json(parts.environment)); // text that cannot be stored is refused before the run
    HEBE_CHECK(may_continue());
    HEBE_CHECK(board_is_free()); // again: the compile took a while
    HEBE_TRY(auto* device, machine_->device());
    HEBE_CHECK(find_ourselves());
    HEBE_TRY(auto workload, measure::Workload::make(*device, {&compiled_, &compiled_}, expected_));
    HEBE_TRY(auto check, workload.check());
    HEBE_TRY(auto arms, measure::prepare_arms(*device, workload.kernels(),
                                              plan_.cubins[0] == plan_.cubins[1]));
    const measure::Supervision supervision{[this] { return may_continue(); }, callbacks_.progress,
                                           own_pids_};
    HEBE_TRY(auto raw,
             measure::run_experiment(plan_, *device, arms, machine_->meter(), supervision));

    HEBE_CHECK(workload.still_right());
    parts.acquisition = acquisition_of(raw, machine_->meter(), machine_->clock().is_virtual());
    parts.acquisition.check = std::move(check);
    parts.acquisition.occupancy = workload.occupancy();
    parts.plan = plan_;
    parts.plan_id = plan_id_;
    parts.windows = std::move(raw.windows);
    parts.samples = std::move(raw.sampler.samples);
    HEBE_CHECK(judge_windows(parts.windows, parts.samples, plan_, parts.acquisition));
    HEBE_TRY(parts.analysis, analyse(plan_, plan_id_, parts.acquisition, parts.windows));
    HEBE_CHECK(may_continue());
    const RealClock wall; // the directory's name says when, also for a simulated run
    HEBE_TRY(auto sealed, evidence::seal_run(root_, parts, wall.wall_us()));
    return JobOutcome{std::move(sealed), std::move(parts.analysis), std::move(parts.acquisition),
                      plan_id_, machine_->simulated()};
  }

  const evidence::DataRoot& root_;
  const JobRequest& request_;
  const JobCallbacks& callbacks_;
  measure::Plan plan_;
  std::string plan_id_;
  std::unique_ptr<Machine> machine_;
  std::optional<Lease> lease_, machine_lease_;
  std::set<std::int64_t> own_pids_;
  std::optional<ScratchFolder> scratch_;
  std::unique_ptr<kernel::Worker> worker_;
  Json hello_;
  kernel::CompiledCase compiled_;
  measure::InputFiles inputs_;
  measure::ExpectedOutputs expected_;
};

} // namespace

Result<JobOutcome> run_job(const evidence::DataRoot& root, const JobRequest& request,
                           const JobCallbacks& callbacks) {
  return Job(root, request, callbacks).run();
}

Result<JobPreview> preview_job(const evidence::DataRoot& root, const JobRequest& request,
                               const JobCallbacks& callbacks) {
  return Job(root, request, callbacks).preview();
}

} // namespace hebe::campaign
