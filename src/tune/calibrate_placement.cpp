#include "tune/calibrate_placement.hpp"

#include "campaign/scratch_folder.hpp"
#include "core/build_identity.hpp"
#include "core/sha256.hpp"
#include "evidence/environment.hpp"
#include "meter/file_sources.hpp"
#include "tune/openblas_backend.hpp"
#include "tune/present_machine.hpp"
#include "tune/shape_search.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

class Calibration {
public:
  Calibration(const evidence::DataRoot& root, const CalibrationRequest& request,
              const campaign::JobCallbacks& callbacks)
      : root_(root), request_(request),
        callbacks_(callbacks), sizes_{{"m", request.m}, {"n", request.n}, {"k", request.k}} {}

  Result<Placement> run() {
    for (const auto& member : request_.members)
      if (member != "cpu" && member != "triton" && member != "cublaslt")
        return refuse(RefusalCode::bad_argument, "there is no member \"" + member + "\"",
                      "members: cpu, triton, cublaslt");
    // The CPU first: no context of a GPU is open yet, and nothing waits for one.
    if (wanted("cpu")) HEBE_CHECK(calibrate_cpu());
    if (wanted("triton") || wanted("cublaslt")) HEBE_CHECK(calibrate_gpu());
    if (out_.rows.empty())
      return refuse(RefusalCode::bad_argument, "no member was named", "say --members cpu,triton");
    HEBE_CHECK(check_placement(out_, request_.not_written));
    return std::move(out_);
  }

private:
  bool wanted(const char* member) const {
    return std::ranges::find(request_.members, member) != request_.members.end();
  }

  Status go_on() const {
    if (callbacks_.interrupted && callbacks_.interrupted())
      return refuse(RefusalCode::interrupted, "interrupted; nothing was written");
    return {};
  }

  void add(PlacementRow row, Implementation implementation, const std::string& dtype,
           const std::string& board, Platform platform, std::int64_t wall_us) {
    row.sizes = sizes_;
    row.row.key = {"matmul", fmt::format("m={},n={},k={}", request_.m, request_.n, request_.k),
                   dtype, board};
    row.row.implementation = std::move(implementation);
    row.row.platform = std::move(platform);
    row.row.platform.os = operating_system();
    row.row.platform.hebe = kVersion;
    row.row.date = campaign::utc_text(wall_us);
    out_.rows.push_back(std::move(row));
  }

  // Inputs as the case's initialisers would make them: uniform in [-1, 1).
  Result<std::shared_ptr<HostMatmul>> host_work(const std::shared_ptr<const OpenBlas>& library) {
    HEBE_TRY(auto work,
             HostMatmul::make(library, {request_.m, request_.n, request_.k, kernel::DType::fp32}));
    for (const bool second : {false, true}) {
      kernel::Argument a;
      a.name = second ? "b" : "a";
      a.dtype = kernel::DType::fp32;
      a.is_buffer = true;
      a.shape = second ? std::vector{request_.k, request_.n} : std::vector{request_.m, request_.k};
      a.init = kernel::Initialiser{kernel::Initialiser::Kind::uniform, -1, 1, second ? 2U : 1U};
      HEBE_CHECK(fill_input(*work, second, a));
    }
    HEBE_CHECK(work->check()); // a shape that is refused would meter an empty loop
    return work;
  }

  Result<HostMeter> host_meter() {
    const HostWindows windows{request_.idle, request_.window, request_.windows};
    if (request_.host_meter) return request_.host_meter(windows);
    return HostMeter::open(meter::discover_file_sources(), clock_, Provenance::measured, windows);
  }

  Status calibrate_cpu() {
    auto measured = measure_cpu();
    if (measured || measured.error().code == RefusalCode::interrupted) return measured;
    return std::unexpected(without_figure("cpu", std::move(measured).error()));
  }

  Status measure_cpu() {
    HEBE_TRY(auto meter, host_meter());
    HEBE_TRY(const auto library, OpenBlas::open({request_.openblas, OpenBlas::names(), {}}));
    HEBE_TRY(const auto work, host_work(library));
    HEBE_TRY(const auto got, meter.measure(
                                 [&](std::int64_t times) -> Status {
                                   work->run(times);
                                   return {};
                                 },
                                 [&] { return go_on(); }, request_.not_written));
    HEBE_CHECK(work->check()); // nor did it stop meanwhile
    auto row = placement_row("cpu", got.idle, got.cost);
    row.version = library->version();
    HEBE_TRY(const auto sha256, sha256_of_file(library->file()));
    add(std::move(row), {"openblas.matmul", {{"threads", library->threads()}}, sha256}, "fp32",
        processor().value_or("not known"), {{}, meter.driver(), {}, {}, {}}, clock_.wall_us());
    return {};
  }

  TuneSpec spec() const {
    TuneSpec out;
    out.name = "placement";
    out.operation = "matmul";
    out.dtype = request_.dtype;
    out.method = Method::exhaustive;
    out.packages = request_.packages;
    BackendSpec triton;
    triton.name = triton.kind = "triton";
    triton.subject = request_.subject;
    triton.where = "--case";
    for (const char* d : {"m", "n", "k"}) triton.sizes[d] = d;
    out.backends.push_back(triton);
    if (wanted("cublaslt")) {
      BackendSpec lt;
      lt.name = lt.kind = "cublaslt";
      lt.where = "member \"cublaslt\"";
      lt.sizes = triton.sizes;
      lt.library = request_.cublaslt;
      lt.heuristics = 1; // what the library itself would run
      out.backends.push_back(std::move(lt));
    }
    ShapeSpec shape;
    shape.shape = {"reference", sizes_};
    shape.baseline = {"triton", Json::object()};
    out.shapes.push_back(std::move(shape));
    return out;
  }

  Status calibrate_gpu() {
    const auto asked = spec();
    HEBE_TRY(auto opened, campaign::Machine::open(request_.job.machine));
    HEBE_TRY(const auto scratch, campaign::ScratchFolder::make(request_.job.scratch));
    campaign::CasePreparer preparer(
        {request_.job.worker, root_.path(), root_.cache(), scratch.path(), opened->memory()});
    auto named = request_.job;
    named.kind = "placement";
    named.subject = request_.subject;
    HEBE_TRY(auto leased, campaign::lease_machine(root_, named, std::move(opened), callbacks_));
    auto& machine = *leased.machine;
    HEBE_TRY(const auto meter, search_meter(root_, machine));
    HEBE_CHECK(check_meter(meter, request_.not_written));
    const auto held = [&]() -> Status {
      HEBE_CHECK(go_on());
      return leased.lease.still_held(machine);
    };
    HEBE_CHECK(campaign::board_is_free(machine));
    HEBE_TRY(auto* device, machine.device());
    const Bench bench{*device, preparer, root_.path(), asked.dtype, nullptr};
    HEBE_TRY(const auto backends, backends_of(asked));
    HEBE_TRY(auto shape, offered(asked, asked.shapes[0], backends, bench, 0));
    // A case that is wrong is wrong usage; one that this device cannot run has no figure.
    if (auto made = prepare(shape, asked, backends, bench, held); !made) {
      if (made.error().code != RefusalCode::unsupported) return made;
      return std::unexpected(without_figure("triton", std::move(made).error()));
    }
    preparer.stop_worker();
    return measure_gpu(shape, machine, meter, held);
  }

  // A member that cannot run here has no figure, and then there is no file.
  static Status is_ready(const TriedCandidate& tried) {
    if (tried.state == TriedCandidate::State::ready) return {};
    return std::unexpected(without_figure(tried.candidate.backend, *tried.why));
  }

  Status measure_gpu(PreparedShape& shape, campaign::Machine& machine, const MeterIdentity& meter,
                     const std::function<Status()>& held) {
    HEBE_TRY(auto* device, machine.device());
    HEBE_TRY(const auto tier, measure::tier_named("smoke-v1"));
    measure::Supervision supervision;
    HEBE_TRY(supervision.response, campaign::known_response(root_, machine, tier, request_.window));
    supervision.may_continue = held;
    HEBE_TRY(supervision.own_pids, campaign::our_processes(machine));
    HEBE_TRY(auto bench, CandidateBench::make(*device, shape.baseline()));
    for (auto& tried : shape.candidates) { // each is checked against the case's reference
      HEBE_CHECK(is_ready(tried));
      HEBE_CHECK(bench.add(tried));
      HEBE_CHECK(is_ready(tried));
    }
    measure::WindowSeries series(*device, machine.meter(), tier, supervision,
                                 request_.job.machine.seed);
    // By the member's name, as where a member cannot run.
    const auto figure = [&](std::size_t c, const char* what, auto result) {
      if (!result && result.error().code != RefusalCode::interrupted)
        result = std::unexpected(without_figure(
            shape.candidates[c].candidate.backend,
            with_meter(what, std::move(result).error(), meter, request_.not_written)));
      return result;
    };
    HEBE_CHECK(figure(0, "warm-up", series.warm_up(bench.load(0), request_.warm_up)));
    std::vector<measure::IdleStretch> idles(2);
    HEBE_TRY(idles[0], figure(0, "idle power", series.idle(request_.idle)));
    std::vector<std::vector<measure::SeriesWindow>> windows(shape.candidates.size());
    for (int i = 0; i < request_.windows; ++i)
      for (std::size_t c = 0; c < windows.size(); ++c) {
        HEBE_TRY(const auto seen,
                 figure(c, "a window", series.window(bench.load(c), request_.window)));
        windows[c].push_back(seen);
      }
    HEBE_TRY(idles[1], figure(0, "idle power", series.idle(request_.idle)));
    HEBE_TRY(const auto idle, idle_power(idles, series.loaded_clock_mhz()));
    for (std::size_t c = 0; c < windows.size(); ++c)
      HEBE_CHECK(add_gpu(shape.candidates[c], windows[c], idle, meter, machine));
    return {};
  }

  Status add_gpu(const TriedCandidate& tried, std::span<const measure::SeriesWindow> windows,
                 const IdlePower& idle, const MeterIdentity& meter,
                 const campaign::Machine& machine) {
    if (!wanted(tried.candidate.backend.c_str())) return {}; // measured for its inputs only
    const auto noise = noise_of(windows).value_or(WindowNoise{});
    std::vector<CandidateWindow> priced;
    for (const auto& w : windows) priced.push_back(with_noise(w, noise));
    HEBE_TRY(const auto cost,
             cost_of(priced, {idle, meter, Objective::energy, request_.not_written}));
    auto row = placement_row(tried.candidate.backend, idle, cost);
    row.version = tried.prepared->version;
    const auto& uuid = machine.info().uuid;
    add(std::move(row),
        {tried.candidate.name, tried.candidate.configuration, tried.prepared->artifact_sha256},
        request_.dtype, machine.info().name,
        {request_.job.redact ? evidence::redacted(uuid) : uuid,
         machine.meter().board().driver,
         {},
         {},
         tried.prepared->triton},
        machine.clock().wall_us());
    return {};
  }

  const evidence::DataRoot& root_;
  const CalibrationRequest& request_;
  const campaign::JobCallbacks& callbacks_;
  std::vector<NamedSize> sizes_;
  RealClock clock_;
  Placement out_;
};

} // namespace

Refusal without_figure(const std::string& member, Refusal why) {
  if (exit_code_of(why.code) == ExitCode::usage) why.code = RefusalCode::toolchain_unavailable;
  why.what = "member \"" + member + "\": " + why.what;
  return why;
}

Result<Placement> calibrate_placement(const evidence::DataRoot& root,
                                      const CalibrationRequest& request,
                                      const campaign::JobCallbacks& callbacks) {
  auto done = Calibration(root, request, callbacks).run();
  if (!done && done.error().not_written.empty()) done.error().not_written = request.not_written;
  return done;
}

} // namespace hebe::tune
