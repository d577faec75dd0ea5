#include "tune/tune.hpp"

#include "campaign/scratch_folder.hpp"
#include "core/build_identity.hpp"
#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/content_record.hpp"
#include "evidence/environment.hpp"
#include "tune/planned_time.hpp"
#include "tune/present_machine.hpp"
#include "tune/tune_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace hebe::tune {
namespace fs = std::filesystem;
namespace {

// What no other shape would be spared.
bool ends_the_tune(RefusalCode code) {
  switch (code) {
  case RefusalCode::interrupted:
  case RefusalCode::lease_lost:
  case RefusalCode::io_failed:
  case RefusalCode::no_space:
  case RefusalCode::unsafe_path:
  case RefusalCode::internal:
    return true;
  default:
    return false;
  }
}

class Tune {
public:
  Tune(const evidence::DataRoot& root, const TuneRequest& request,
       const campaign::JobCallbacks& callbacks)
      : root_(root), request_(request), spec_(request.spec), callbacks_(callbacks) {}

  Result<TuneOutcome> run() {
    HEBE_CHECK(check_protocol());
    HEBE_TRY(backends_, backends_of(spec_, request_.host));
    HEBE_TRY(auto machine, campaign::Machine::open(request_.job.machine));
    HEBE_CHECK(look_at_board(*machine));
    HEBE_TRY(const auto scratch, campaign::ScratchFolder::make(request_.job.scratch));
    preparer_.emplace(campaign::Preparation{request_.job.worker, root_.path(), root_.cache(),
                                            scratch.path(), machine->memory()});
    if (request_.dry_run) {
      HEBE_CHECK(offer_all(*machine));
      return preview();
    }
    HEBE_TRY(auto leased,
             campaign::lease_machine(root_, named_job(), std::move(machine), callbacks_));
    lease_ = &leased.lease;
    HEBE_TRY(const auto meter, search_meter(root_, *leased.machine)); // before a compile costs time
    HEBE_CHECK(check_meter(meter, "the profile"));
    HEBE_CHECK(prepare_all(*leased.machine));
    HEBE_TRY(own_processes_, campaign::our_processes(*leased.machine));
    HEBE_CHECK(tell_planned());
    leased.machine.reset(); // its context: every shape's search has one of its own
    HEBE_CHECK(tune_all());
    HEBE_CHECK(write());
    return std::move(out_);
  }

private:
  Status check_protocol() const {
    auto job = spec_.protocol;
    job.kind = "ab";
    job.subject_b = kernel::CaseRequest{};
    HEBE_CHECK(campaign::drafted(job));
    return {};
  }

  Status look_at_board(const campaign::Machine& machine) {
    if (!machine.simulated() && !spec_.faults.empty())
      return refuse(RefusalCode::bad_spec,
                    "simulated.faults are of the simulated GPU, this one is real",
                    "leave them out, or use --device sim");
    if (spec_.protocol.seed) {
      place_.seed = *spec_.protocol.seed;
    } else if (!machine.simulated()) { // a simulated tune is to be reproducible, a real one random
      std::random_device entropy;
      place_.seed = (std::uint64_t{entropy()} << 32) | entropy();
    }
    const auto& board = machine.meter().board();
    place_.board = machine.info().name;
    place_.provenance = board.provenance;
    place_.date = campaign::utc_text(machine.clock().wall_us());
    uuid_ = machine.info().uuid;
    place_.platform = {request_.job.redact ? evidence::redacted(uuid_) : uuid_,
                       board.driver,
                       operating_system(),
                       kVersion,
                       {}};
    selector_ = machine.simulated() ? request_.job.machine.selector : machine.info().uuid;
    if (machine.simulated() && !machine.why().empty()) selector_ = "sim";
    return {};
  }

  campaign::JobRequest named_job() const {
    auto out = request_.job;
    static_cast<campaign::JobSpec&>(out) = spec_.protocol;
    out.kind = "tune";
    out.subject.file = spec_.name;
    return out;
  }

  std::uint64_t seed_of(const std::string& what) const {
    return campaign::seed_for(std::to_string(place_.seed), what);
  }

  campaign::MachineRequest machine_for(const std::string& what) const {
    auto out = request_.job.machine;
    out.selector = selector_;
    out.seed = seed_of(what);
    if (const auto hit = spec_.faults.find(what); hit != spec_.faults.end())
      out.faults.insert(out.faults.end(), hit->second.begin(), hit->second.end());
    return out;
  }

  Status not_interrupted() const {
    if (callbacks_.interrupted && callbacks_.interrupted())
      return refuse(RefusalCode::interrupted, "interrupted; no profile was written",
                    "run it again: a tune starts over, its sealed runs stay");
    return {};
  }

  Status go_on(const campaign::Machine& machine) const {
    HEBE_CHECK(not_interrupted());
    return lease_ == nullptr ? Status{} : lease_->still_held(machine);
  }

  Status offer_all(campaign::Machine& machine) {
    HEBE_TRY(auto* device, machine.device());
    const Bench bench{*device, *preparer_, root_.path(), spec_.dtype, nullptr};
    for (const auto& shape : spec_.shapes) {
      HEBE_TRY(auto prepared, offered(spec_, shape, backends_, bench, seed_of(shape.shape.name)));
      out_.shapes.push_back({std::move(prepared), {}, {}, {}});
    }
    return {};
  }

  Status prepare_all(campaign::Machine& machine) {
    HEBE_CHECK(offer_all(machine));
    HEBE_TRY(auto* device, machine.device());
    const Bench bench{*device, *preparer_, root_.path(), spec_.dtype, nullptr};
    for (auto& shape : out_.shapes) {
      tell(fmt::format("{}: compiling {} candidates", shape.prepared.spec->shape.name,
                       shape.prepared.candidates.size()));
      HEBE_CHECK(prepare(shape.prepared, spec_, backends_, bench, [&] { return go_on(machine); }));
    }
    preparer_->stop_worker();
    return {};
  }

  void tell(const std::string& line) const {
    if (callbacks_.notice) callbacks_.notice(line);
  }

  Status tell_planned() const {
    Seconds all(0);
    for (const auto& shape : out_.shapes) {
      HEBE_TRY(const auto planned, planned_time(spec_, shape.prepared));
      all += planned.search + planned.finalists;
    }
    tell(fmt::format("measuring takes {:.0f} s at least", all.value()));
    return {};
  }

  // What was finished before an interruption is kept: the board worked minutes for it.
  Status tune_all() {
    for (auto shape = out_.shapes.begin(); shape != out_.shapes.end(); ++shape) {
      auto done = tune_or_void(*shape);
      if (done) continue;
      const bool kept =
          std::any_of(out_.shapes.begin(), shape, [](auto& s) { return !s.voided.has_value(); });
      if (done.error().code != RefusalCode::interrupted || !kept) return done;
      for (; shape != out_.shapes.end(); ++shape) {
        const auto& name = shape->prepared.spec->shape.name;
        shape->voided = Refusal{
            RefusalCode::interrupted, "interrupted before shape \"" + name + "\" was measured",
            spec_.name, "tune it alone with --shape " + name + ", and merge the profiles",
            "the profile's row of " + name};
      }
      break;
    }
    return {};
  }

  Status tune_or_void(TunedShape& shape) {
    auto done = tune(shape);
    if (done) return {};
    if (ends_the_tune(done.error().code)) return done;
    shape.voided = std::move(done).error();
    if (shape.voided->not_written.empty())
      shape.voided->not_written = "the profile's row of " + shape.prepared.spec->shape.name;
    tell(fmt::format("{}: voided, it has no row: {}", shape.prepared.spec->shape.name,
                     to_text(*shape.voided)));
    return {};
  }

  Status tune(TunedShape& shape) {
    const auto& name = shape.prepared.spec->shape.name;
    const auto not_written = "the profile's row of " + name;
    {
      HEBE_TRY(const auto machine, campaign::Machine::open(machine_for(name)));
      const SearchPlace place{root_, *machine, *lease_, callbacks_, request_.host, own_processes_};
      HEBE_TRY(shape.searched,
               search_shape(shape.prepared, spec_, place, seed_of(name), not_written));
      tell(fmt::format("{}: {}", name, shape.searched->outcome.stopped));
    }
    HEBE_TRY(shape.confirmed,
             confirm(*shape.searched, spec_.objective,
                     [&](std::size_t a, std::size_t b) -> Result<campaign::JobOutcome> {
                       auto done = paired(shape.prepared, a, b);
                       if (done) return done;
                       const auto& all = shape.prepared.candidates;
                       const auto pair = text_of(all[b].candidate) + " against " +
                                         (a == b ? "itself" : text_of(all[a].candidate));
                       return std::unexpected(with_meter(pair, std::move(done).error(),
                                                         shape.searched->meter, not_written));
                     }));
    HEBE_CHECK(weigh_hosts(shape, not_written));
    HEBE_CHECK(row_of(shape, spec_, place_, "-", not_written)); // or it is voided
    return {};
  }

  Status weigh_hosts(TunedShape& shape, const std::string& not_written) {
    const auto measure = [&](std::size_t candidate) {
      return measure_host(candidate, shape.prepared.candidates[candidate],
                          {request_.host, confirming_windows(spec_), spec_.objective,
                           [&] { return not_interrupted(); }, not_written});
    };
    return weigh_best_host(*shape.confirmed, *shape.searched, spec_.objective, measure,
                           not_written);
  }

  Result<campaign::JobOutcome> paired(const PreparedShape& shape, std::size_t a, std::size_t b) {
    const auto code = [&](std::size_t i) {
      return std::get<DeviceCode>(shape.candidates[i].prepared->code);
    };
    auto job = request_.job;
    static_cast<campaign::JobSpec&>(job) = spec_.protocol;
    job.kind = a == b ? "aa" : "ab";
    job.subject = code(a)->compiled.request;
    if (a != b) job.subject_b = code(b)->compiled.request;
    job.own_processes = own_processes_;
    job.seed = seed_of(fmt::format("{}.{}.{}", shape.spec->shape.name, a, b));
    job.arms = [&](campaign::CasePreparer& preparer) -> Result<campaign::PreparedArms> {
      HEBE_CHECK(preparer.start()); // who compiled: for the record
      campaign::PreparedArms arms;
      arms.a = *code(a);
      if (a != b) arms.b = *code(b);
      return arms;
    };
    auto machine_request = machine_for(shape.spec->shape.name + ".finalists");
    machine_request.seed = *job.seed;
    job.machine = machine_request;
    HEBE_TRY(const auto machine, campaign::Machine::open(machine_request));
    tell(fmt::format("{}: {} against {}", shape.spec->shape.name,
                     text_of(shape.candidates[b].candidate),
                     a == b ? "itself" : text_of(shape.candidates[a].candidate)));
    auto done = campaign::run_leased(root_, job, *machine, *lease_, callbacks_);
    if (done || done.error().code != RefusalCode::not_stable) return done;
    // Not the candidates' fault, and by now the board is warmer: a search is not given up for it.
    tell(fmt::format("{}: {}; the pair is measured once more", shape.spec->shape.name,
                     done.error().what));
    return campaign::run_leased(root_, job, *machine, *lease_, callbacks_);
  }

  Status write() {
    if (const auto* first = out_.first_void(); first && all_voided()) {
      auto r = *first;
      if (r.not_written.empty()) r.not_written = "the profile";
      return std::unexpected(std::move(r));
    }
    HEBE_TRY(out_.record, record_of(out_.shapes, spec_, place_));
    if (request_.job.redact) evidence::redact(out_.record, uuid_); // reasons name the board
    HEBE_CHECK(check_schema(out_.record, "hebe.tune/1", "the record of this tune"));
    HEBE_TRY(out_.record_id, content_id(out_.record));
    for (const auto& shape : out_.shapes) {
      if (shape.voided) continue;
      HEBE_TRY(auto row, row_of(shape, spec_, place_, out_.record_id, "the profile"));
      HEBE_CHECK(out_.profile.record(std::move(row), "the profile"));
    }
    HEBE_TRY(const auto stored, evidence::store_record(root_, tunes_of(root_), out_.record));
    out_.record_file = stored.file;
    HEBE_TRY(const auto bytes, canonical_json(json_of(out_.profile)));
    constexpr std::size_t kDigits = 16;
    HEBE_CHECK(make_directories(profiles_of(root_)));
    out_.profile_file =
        profiles_of(root_) /
        fmt::format("{}-{}.json", spec_.name, sha256_hex(bytes + "\n").substr(0, kDigits));
    HEBE_CHECK(check_inside(root_.path(), out_.profile_file));
    return write_profile(out_.profile_file, out_.profile);
  }

  bool all_voided() const {
    return std::ranges::all_of(out_.shapes, [](auto& s) { return s.voided.has_value(); });
  }

  // A dry run compiles nothing: what is not refused by then may be later.
  static std::string state_before_compiling(TriedCandidate::State state) {
    return state == TriedCandidate::State::ready ? "not compiled" : std::string(name_of(state));
  }

  Result<TuneOutcome> preview() {
    Json shapes = Json::array();
    for (const auto& shape : out_.shapes) {
      HEBE_TRY(const auto planned, planned_time(spec_, shape.prepared));
      Json candidates = Json::array();
      for (const auto& c : shape.prepared.candidates)
        candidates.push_back({{"backend", c.candidate.backend},
                              {"name", c.candidate.name},
                              {"configuration", c.candidate.configuration},
                              {"state", state_before_compiling(c.state)},
                              {"why", c.why ? Json(c.why->what) : Json()}});
      shapes.push_back({{"name", shape.prepared.spec->shape.name},
                        {"candidates", candidates},
                        {"search_s", planned.search.value()},
                        {"finalists_s", planned.finalists.value()}});
    }
    out_.record = {{"tune", spec_.name}, {"shapes", shapes}};
    return std::move(out_);
  }

  const evidence::DataRoot& root_;
  const TuneRequest& request_;
  const TuneSpec& spec_;
  const campaign::JobCallbacks& callbacks_;
  Backends backends_;
  std::optional<campaign::CasePreparer> preparer_;
  const campaign::BoardLease* lease_ = nullptr;
  TunePlace place_;
  std::set<std::int64_t> own_processes_;
  std::string selector_, uuid_;
  TuneOutcome out_;
};

} // namespace

const Refusal* TuneOutcome::first_void() const {
  for (const auto& shape : shapes)
    if (shape.voided) return &*shape.voided;
  return nullptr;
}

bool TuneOutcome::interrupted() const {
  const auto is = [](const std::optional<Refusal>& r) {
    return r && r->code == RefusalCode::interrupted;
  };
  return std::ranges::any_of(shapes, [&](auto& s) {
    return is(s.voided) || (!s.voided && s.confirmed && is(s.confirmed->not_compared));
  });
}

fs::path profiles_of(const evidence::DataRoot& root) { return root.path() / "profiles"; }
fs::path tunes_of(const evidence::DataRoot& root) { return root.path() / "tunes"; }

Result<TuneOutcome> run_tune(const evidence::DataRoot& root, const TuneRequest& request,
                             const campaign::JobCallbacks& callbacks) {
  return Tune(root, request, callbacks).run();
}

} // namespace hebe::tune
