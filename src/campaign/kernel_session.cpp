#include "campaign/kernel_session.hpp"

#include "qualify/mechanism.hpp"
#include "qualify/static_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {

using qualify::Check;
using qualify::Variant;

struct KernelSession::Trials {
  qualify::Trial interpreter, gpu;
};

struct KernelSession::Built {
  PreparedCase prepared; ///< inputs and oracle only of another case
  std::optional<rewrite::Account> account;
};

namespace {

void append(std::vector<Check>& to, const std::vector<Check>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Not the candidate's fault: the whole command cannot go on.
bool of_environment(const Refusal& refusal) {
  return exit_code_of(refusal.code) == ExitCode::unfit_environment;
}

/// A failed check that makes a launch on a GPU pointless or dangerous.
const Check* forbids_launch(const std::vector<Check>& checks) {
  for (const auto& check : checks)
    for (const auto* name :
         {"accesses_in_bounds", "runs", "same_abi", "same_buffers", "abi_matches"})
      if (check.outcome == Check::Outcome::failed && check.name == name) return &check;
  return nullptr;
}

} // namespace

KernelSession::KernelSession(const evidence::DataRoot& root, const KernelSessionRequest& request,
                             const KernelCallbacks& callbacks, std::unique_ptr<Machine> machine,
                             std::optional<BoardLease> lease, ScratchFolder scratch)
    : root_(root), request_(request), callbacks_(callbacks), machine_(std::move(machine)),
      lease_(std::move(lease)), scratch_(std::move(scratch)),
      preparer_({request.worker, root.path(), root.cache(), scratch_.path(), machine_->memory()}) {}

Result<std::unique_ptr<KernelSession>> KernelSession::open(const evidence::DataRoot& root,
                                                           const KernelSessionRequest& request,
                                                           const KernelCallbacks& callbacks,
                                                           const std::string& what) {
  HEBE_TRY(auto machine, Machine::open(request.machine));
  if (!machine->why().empty() && callbacks.notice)
    callbacks.notice("no GPU here (" + machine->why() +
                     "): kernels run in the interpreter, and checks that need a GPU are not run");
  HEBE_CHECK(root.initialise());
  std::optional<BoardLease> lease;
  if (!machine->simulated()) {
    HEBE_TRY(lease, BoardLease::acquire(root, *machine, what));
  }
  HEBE_TRY(auto scratch, ScratchFolder::make(request.scratch));
  std::unique_ptr<KernelSession> session(new KernelSession(
      root, request, callbacks, std::move(machine), std::move(lease), std::move(scratch)));
  if (session->lease_) {
    HEBE_TRY(session->device_, session->machine_->device());
  }
  return session;
}

void KernelSession::tell(const std::string& line) const {
  if (callbacks_.notice) callbacks_.notice(line);
}

Status KernelSession::go_on() const {
  if (callbacks_.interrupted && callbacks_.interrupted())
    return refuse(RefusalCode::interrupted, "interrupted; nothing was recorded", "run it again");
  return {};
}

Json KernelSession::when() const {
  return machine_->simulated() ? Json(nullptr) : Json(utc_text(machine_->clock().wall_us()));
}

Json KernelSession::environment() const {
  auto facts = evidence::build_facts();
  for (auto& more :
       {evidence::host_facts(machine_->simulated(), request_.variables),
        evidence::device_facts(machine_->info()), evidence::toolchain_facts(preparer_.hello())})
    facts.insert(facts.end(), more.begin(), more.end());
  if (request_.redact) evidence::redact(facts);
  return evidence::environment_json(facts);
}

void KernelSession::redact_board(Json& record) const {
  if (request_.redact) evidence::redact(record, machine_->info().uuid);
}

Result<qualify::PointResult> KernelSession::qualify(const qualify::Point& point,
                                                    const Candidates& candidates, int launches) {
  launches_ = launches;
  HEBE_CHECK(go_on());
  tell(fmt::format("{}: the kernel as it is", point.name));
  qualify::PointResult out;
  out.name = point.name;
  out.primary = point.primary;
  auto subject = point.subject;
  subject.arch = machine_->info().arch;
  HEBE_TRY(const auto prepared, preparer_.prepare(subject));
  out.inputs = prepared.inputs;
  out.baseline.name = "baseline";
  out.baseline.why = "the case as it is";
  out.baseline.compiled = prepared.compiled;
  out.baseline.checks = {qualify::no_side_effects(prepared.compiled)};
  HEBE_TRY(const auto reduced, interpreted_launch(point, prepared));
  const PreparedCase* small = reduced ? &*reduced : nullptr;
  if (small) out.interpreted = small->compiled.launch.json.at("parameters");
  Trials base;
  HEBE_CHECK(try_variant(out.baseline, prepared, small, nullptr, base));
  for (const auto& spec : candidates(out)) {
    if (!spec.points.empty() && !spec.points.contains(point.name)) continue;
    HEBE_CHECK(go_on());
    tell(fmt::format("{}: {}", point.name, spec.name));
    HEBE_TRY(auto candidate, qualify_candidate(spec, prepared, small, out.baseline, base));
    out.candidates.push_back(std::move(candidate));
  }
  return out;
}

// The same code at a smaller launch, where the point asks for one.
Result<std::optional<PreparedCase>> KernelSession::interpreted_launch(const qualify::Point& point,
                                                                      const PreparedCase& full) {
  if (!point.interpreted) return std::nullopt;
  auto subject = *point.interpreted;
  subject.arch = machine_->info().arch;
  HEBE_TRY(auto small, preparer_.prepare(subject));
  if (small.compiled.ttgir != full.compiled.ttgir)
    return refuse(RefusalCode::bad_spec,
                  "interpreter_parameters of \"" + point.name +
                      "\" give other code (TTGIR) than the point itself",
                  "change only parameters that the compiler does not see, or leave them out");
  return std::optional(std::move(small));
}

Status KernelSession::try_variant(Variant& variant, const PreparedCase& prepared,
                                  const PreparedCase* small, const Trials* baseline,
                                  Trials& trials) {
  const auto& launched = small ? *small : prepared;
  kernel::CompiledCase interpreted = *variant.compiled;
  if (small) interpreted.launch = small->compiled.launch;
  constexpr int kInterpreted = 2;
  trials.interpreter = qualify::try_in_interpreter(interpreted, launched.expected, kInterpreted);
  variant.counts = trials.interpreter.counts;
  variant.counted_at_point = small == nullptr;
  variant.outputs["interpreter"] = trials.interpreter.outputs;
  append(variant.checks, trials.interpreter.checks);
  if (baseline)
    variant.checks.push_back(qualify::compare_bits(launched.compiled.launch, baseline->interpreter,
                                                   trials.interpreter, "interpreter"));
  HEBE_CHECK(go_on());
  HEBE_CHECK(try_on_device(variant, prepared, baseline, trials));
  return describe(variant);
}

Status KernelSession::try_on_device(Variant& variant, const PreparedCase& prepared,
                                    const Trials* baseline, Trials& trials) {
  std::string why_not;
  if (!device_)
    why_not = "there is no GPU here";
  else if (broken_)
    why_not = "an earlier launch broke the GPU's context: " + *broken_;
  else if (const auto* check = forbids_launch(variant.checks))
    why_not = fmt::format("not launched: {} failed: {}", check->name, check->evidence);
  if (!why_not.empty()) {
    auto rows = qualify::no_gpu_trial(why_not);
    for (auto& row : rows) // with a GPU they count: something of the kernel kept it from it
      if (device_) row.by = device_->info().name;
    if (!baseline) std::erase_if(rows, [](auto& row) { return row.name == "bits_equal"; });
    append(variant.checks, rows);
    return {};
  }
  HEBE_CHECK(lease_->still_held(*machine_));
  trials.gpu = qualify::try_on_gpu(*device_, *variant.compiled, prepared.expected, launches_);
  for (const auto& check : trials.gpu.checks)
    if (check.name == "runs" && check.outcome == Check::Outcome::failed) broken_ = check.evidence;
  variant.outputs["gpu"] = trials.gpu.outputs;
  variant.occupancy = trials.gpu.occupancy;
  append(variant.checks, trials.gpu.checks);
  if (baseline)
    variant.checks.push_back(qualify::compare_bits(variant.compiled->launch, baseline->gpu,
                                                   trials.gpu, device_->info().name));
  return {};
}

// What the artifacts and the counts say of how it works.
Status KernelSession::describe(Variant& variant) {
  const kernel::ArtifactStore store(root_.path());
  qualify::KernelTexts texts;
  texts.ttgir = variant.compiled->ttgir;
  const auto& artifacts = variant.compiled->artifacts;
  HEBE_TRY(texts.ptx, store.get(artifacts.at("ptx")));
  if (const auto sass = artifacts.find("sass"); sass != artifacts.end()) {
    HEBE_TRY(texts.sass, store.get(sass->second));
  }
  variant.mechanism = qualify::mechanism_of(variant.compiled->launch, std::move(texts),
                                            variant.compiled->resources, variant.counts);
  return {};
}

Result<Variant> KernelSession::qualify_candidate(const qualify::Candidate& spec,
                                                 const PreparedCase& base,
                                                 const PreparedCase* small, const Variant& baseline,
                                                 const Trials& base_trials) {
  Variant out;
  out.name = spec.name;
  out.why = spec.why;
  out.passes = rewrite::to_json(spec.passes);
  for (const auto& name : spec.fewer_loads_of)
    if (std::ranges::none_of(base.compiled.launch.arguments,
                             [&](auto& a) { return a.is_buffer && a.name == name; }))
      return refuse(RefusalCode::bad_spec,
                    fmt::format("candidate \"{}\": fewer_loads_of names \"{}\", which is no buffer",
                                spec.name, name),
                    "name a buffer of the case");
  auto built = build(spec, base, out);
  if (!built && (of_environment(built.error()) || built.error().code == RefusalCode::bad_spec)) {
    if (built.error().where.empty()) built.error().where = "candidate \"" + spec.name + "\"";
    return std::unexpected(built.error());
  }
  qualify::Checks building("static");
  building.add("builds", built.has_value(),
               built ? "Triton's own pipeline takes it to a cubin" : to_text(built.error()));
  append(out.checks, building.rows);
  if (!built) return out;
  out.compiled = built->prepared.compiled;
  const auto* account = built->account ? &*built->account : nullptr;
  append(out.checks, qualify::static_checks(base.compiled, *out.compiled, spec, account));
  // A rewrite for one grid cannot be interpreted at another: both kernels are, at the point itself.
  const bool reduced = small != nullptr;
  if (spec.other_case ||
      (small && account &&
       qualify::contracts_hold(*account, base.compiled.launch, small->compiled.launch).outcome !=
           Check::Outcome::passed))
    small = nullptr;
  Trials trials, full;
  Variant full_baseline = baseline;
  const bool anew = reduced && small == nullptr;
  if (anew) {
    full.gpu = base_trials.gpu;
    full.interpreter = qualify::try_in_interpreter(base.compiled, base.expected, 2);
    full_baseline.counts = full.interpreter.counts;
  }
  HEBE_CHECK(try_variant(out, spec.other_case ? built->prepared : base, small,
                         anew ? &full : &base_trials, trials));
  if (!spec.equal_bits) // told, not demanded: the oracle's tolerance decides
    for (auto& check : out.checks)
      if (check.name == "bits_equal" && check.outcome == Check::Outcome::failed) {
        check.outcome = Check::Outcome::passed;
        check.evidence = "not demanded: " + check.evidence;
      }
  if (!spec.fewer_loads_of.empty())
    out.checks.push_back(qualify::fewer_loads(spec.fewer_loads_of, full_baseline, out));
  return out;
}

Result<KernelSession::Built> KernelSession::build(const qualify::Candidate& spec,
                                                  const PreparedCase& base, Variant& out) {
  Built made;
  if (spec.other_case) {
    auto subject = *spec.other_case;
    subject.arch = machine_->info().arch;
    HEBE_TRY(made.prepared, preparer_.prepare(subject));
    return made;
  }
  std::string text;
  if (spec.ttgir) {
    HEBE_TRY(text, read_file(*spec.ttgir));
  } else {
    HEBE_TRY(auto rewritten, rewrite::apply(base.compiled.ttgir, spec.passes,
                                            qualify::facts_of(base.compiled.launch),
                                            base.compiled.launch.name + ".ttgir"));
    out.rewrite = rewrite::to_json(rewritten.account);
    text = std::move(rewritten.ttgir);
    made.account = std::move(rewritten.account);
  }
  HEBE_TRY(made.prepared.compiled, preparer_.recompile(base.compiled, text));
  return made;
}

} // namespace hebe::campaign
