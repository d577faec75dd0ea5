#include "campaign/kernel_qualification.hpp"

#include "core/build_identity.hpp"
#include "qualify/mechanism.hpp"
#include "qualify/static_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {
namespace {

using qualify::Check;
using qualify::Variant;

class Session {
public:
  Session(const evidence::DataRoot& root, const QualifyRequest& request,
          const QualifyCallbacks& callbacks)
      : request_(request), callbacks_(callbacks), root_(root) {}

  Result<Qualified> run() {
    HEBE_TRY(machine_, Machine::open(request_.machine));
    if (!machine_->why().empty())
      tell("no GPU here (" + machine_->why() +
           "): kernels run in the interpreter, and checks that need a GPU are not run");
    HEBE_CHECK(root_.initialise());
    std::optional<BoardLease> lease;
    if (!machine_->simulated()) {
      HEBE_TRY(lease, BoardLease::acquire(root_, *machine_, "qualify " + request_.spec.name));
      HEBE_TRY(device_, machine_->device());
    }
    HEBE_TRY(auto scratch, ScratchFolder::make(request_.scratch));
    CasePreparer preparer(
        {request_.worker, root_.path(), root_.cache(), scratch.path(), machine_->memory()});
    preparer_ = &preparer;
    Qualified out;
    out.findings.gpu = device_ != nullptr;
    for (const auto& point : request_.spec.points) {
      if (!request_.all_points && !point.primary) continue;
      HEBE_TRY(auto result, qualify_point(point));
      out.findings.points.push_back(std::move(result));
    }
    out.findings.cases =
        qualify::measurement_cases(request_.spec, out.findings.points, out.findings.gpu);
    out.record = qualify::to_json(request_.spec, out.findings);
    out.record["when"] =
        machine_->simulated() ? Json(nullptr) : Json(utc_text(machine_->clock().wall_us()));
    out.record["hebe_version"] = fmt::format("{} ({})", kVersion, kGit);
    out.record["environment"] = environment(preparer.hello());
    return out;
  }

private:
  void tell(const std::string& line) const {
    if (callbacks_.notice) callbacks_.notice(line);
  }

  Status go_on() const {
    if (callbacks_.interrupted && callbacks_.interrupted())
      return refuse(RefusalCode::interrupted, "interrupted; no qualification was recorded",
                    "run again to qualify");
    return {};
  }

  Json environment(const Json& hello) const {
    auto facts = evidence::build_facts();
    const auto add = [&](std::vector<Fact> more) {
      for (auto& fact : more) facts.push_back(std::move(fact));
    };
    add(evidence::host_facts(machine_->simulated(), request_.variables));
    add(evidence::device_facts(machine_->info()));
    add(evidence::toolchain_facts(hello));
    if (request_.redact) evidence::redact(facts);
    return evidence::environment_json(facts);
  }

  Result<qualify::PointResult> qualify_point(const qualify::Point& point) {
    HEBE_CHECK(go_on());
    tell(fmt::format("{}: compiling the baseline", point.name));
    qualify::PointResult out;
    out.name = point.name;
    out.primary = point.primary;
    auto subject = point.subject;
    subject.arch = machine_->info().arch;
    HEBE_TRY(const auto prepared, preparer_->prepare(subject));
    out.inputs = prepared.inputs;
    out.baseline.name = "baseline";
    out.baseline.why = "the case as it is";
    out.baseline.compiled = prepared.compiled;
    out.baseline.checks = {qualify::no_side_effects(prepared.compiled)};
    // What it is compared with: outputs where both run, here and on the GPU.
    HEBE_TRY(const auto small, interpreted_launch(point, prepared));
    if (small) out.interpreted = small->compiled.launch.json.at("parameters");
    Trials base;
    HEBE_CHECK(try_variant(out.baseline, prepared, small ? &*small : nullptr, nullptr, base));
    for (const auto& spec : request_.spec.candidates) {
      if (!spec.points.empty() && !spec.points.contains(point.name)) continue;
      HEBE_CHECK(go_on());
      tell(fmt::format("{}: candidate {}", point.name, spec.name));
      HEBE_TRY(auto candidate, qualify_candidate(spec, prepared, small ? &*small : nullptr,
                                                 out.baseline, base));
      out.candidates.push_back(std::move(candidate));
    }
    return out;
  }

  // The same code at a smaller launch, where the point asks for one.
  Result<std::optional<PreparedCase>> interpreted_launch(const qualify::Point& point,
                                                         const PreparedCase& prepared) {
    if (!point.interpreted) return std::nullopt;
    auto subject = *point.interpreted;
    subject.arch = machine_->info().arch;
    HEBE_TRY(auto small, preparer_->prepare(subject));
    if (small.compiled.ttgir != prepared.compiled.ttgir)
      return refuse(RefusalCode::bad_spec,
                    "interpreter_parameters of point \"" + point.name +
                        "\" give other code (TTGIR) than the point",
                    "change only parameters that the compiler does not see, or leave them out");
    return std::optional(std::move(small));
  }

  struct Trials {
    qualify::Trial interpreter, gpu;
  };

  Status try_variant(Variant& variant, const PreparedCase& prepared, const PreparedCase* small,
                     const Trials* baseline, Trials& trials) {
    const auto& launched = small ? *small : prepared;
    kernel::CompiledCase interpreted = *variant.compiled;
    if (small) interpreted.launch = small->compiled.launch;
    constexpr int kInterpreted = 2;
    trials.interpreter =
        qualify::try_in_interpreter(qualify::as_contracted(std::move(interpreted)),
                                    launched.expected, kInterpreted);
    variant.counts = trials.interpreter.counts;
    variant.outputs["interpreter"] = trials.interpreter.outputs;
    append(variant.checks, trials.interpreter.checks);
    if (baseline)
      variant.checks.push_back(qualify::compare_bits(launched.compiled.launch, baseline->interpreter,
                                                     trials.interpreter, "interpreter"));
    HEBE_CHECK(go_on());
    HEBE_CHECK(try_on_device(variant, prepared, baseline, trials));
    return describe(variant);
  }

  // What the artifacts and the counts say of how it works.
  Status describe(Variant& variant) {
    const kernel::ArtifactStore store(root_.path());
    qualify::KernelTexts texts;
    texts.ttgir = variant.compiled->ttgir;
    HEBE_TRY(texts.ptx, store.get(variant.compiled->artifacts.at("ptx")));
    if (const auto sass = variant.compiled->artifacts.find("sass");
        sass != variant.compiled->artifacts.end()) {
      HEBE_TRY(texts.sass, store.get(sass->second));
    }
    variant.mechanism = qualify::mechanism_of(variant.compiled->launch, std::move(texts),
                                              variant.compiled->resources, variant.counts);
    return {};
  }

  Status try_on_device(Variant& variant, const PreparedCase& prepared, const Trials* baseline,
                       Trials& trials) {
    const auto skip = [&](const std::string& why) {
      auto rows = qualify::no_gpu_trial(why);
      // With a GPU these count: something of the candidate kept it from being launched.
      for (auto& row : rows)
        if (device_) row.by = device_->info().name;
      if (!baseline) std::erase_if(rows, [](auto& row) { return row.name == "bits_equal"; });
      append(variant.checks, rows);
      return Status{};
    };
    if (!device_) return skip("there is no GPU here");
    if (broken_) return skip("an earlier launch broke the GPU's context: " + *broken_);
    for (const auto& check : variant.checks)
      if (check.outcome == Check::Outcome::failed &&
          (check.name == "accesses_in_bounds" || check.name == "runs" ||
           check.name == "same_abi" || check.name == "abi_matches"))
        return skip("not launched: " + check.name + " failed: " + check.evidence);
    trials.gpu = qualify::try_on_gpu(*device_, *variant.compiled, prepared.expected,
                                     request_.spec.launches);
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

  Result<Variant> qualify_candidate(const qualify::Candidate& spec, const PreparedCase& base,
                                    const PreparedCase* small, const Variant& baseline,
                                    const Trials& base_trials) {
    Variant out;
    out.name = spec.name;
    out.why = spec.why;
    out.passes = rewrite::to_json(spec.passes);
    std::optional<rewrite::Account> account;
    auto built = build(spec, base, out, account);
    if (!built && is_environment(built.error().code)) return std::unexpected(built.error());
    qualify::Checks building("static");
    building.add("builds", built.has_value(),
                 built ? "Triton's own pipeline takes it to a cubin" : to_text(built.error()));
    append(out.checks, building.rows);
    if (!built) return out;
    out.compiled = built->compiled;
    append(out.checks,
           qualify::static_checks(base.compiled, *out.compiled, spec, account ? &*account : nullptr));
    const PreparedCase& prepared = spec.other_case ? *built : base;
    const PreparedCase* interpreted = spec.other_case ? nullptr : small;
    if (interpreted && account) {
      const auto holds = qualify::contracts_hold(*account, base.compiled.launch,
                                                 interpreted->compiled.launch);
      if (holds.outcome != Check::Outcome::passed) interpreted = nullptr;
    }
    Trials trials;
    HEBE_CHECK(try_variant(out, prepared, interpreted, &base_trials, trials));
    if (!spec.equal_bits) { // stated, not demanded: the oracle's tolerance decides
      for (auto& check : out.checks)
        if (check.name == "bits_equal" && check.outcome == Check::Outcome::failed) {
          check.outcome = Check::Outcome::passed;
          check.evidence = "not demanded: " + check.evidence;
        }
    }
    if (!spec.fewer_loads_of.empty())
      out.checks.push_back(qualify::fewer_loads(spec.fewer_loads_of, baseline, out));
    return out;
  }

  Result<PreparedCase> build(const qualify::Candidate& spec, const PreparedCase& base, Variant& out,
                             std::optional<rewrite::Account>& account) {
    if (spec.other_case) {
      auto subject = *spec.other_case;
      subject.arch = machine_->info().arch;
      return preparer_->prepare(subject);
    }
    std::string text;
    if (spec.ttgir) {
      HEBE_TRY(text, read_file(*spec.ttgir));
    } else {
      HEBE_TRY(auto rewritten,
               rewrite::apply(base.compiled.ttgir, spec.passes,
                              qualify::facts_of(base.compiled.launch),
                              base.compiled.launch.name + ".ttgir"));
      out.rewrite = rewrite::to_json(rewritten.account);
      text = std::move(rewritten.ttgir);
      account = std::move(rewritten.account);
    }
    PreparedCase made;
    HEBE_TRY(made.compiled, preparer_->recompile(base.compiled, text));
    return made;
  }

  // Not the candidate's fault: the whole command cannot go on.
  static bool is_environment(RefusalCode code) {
    return exit_code_of(code) == ExitCode::unfit_environment;
  }

  static void append(std::vector<Check>& to, const std::vector<Check>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  const QualifyRequest& request_;
  const QualifyCallbacks& callbacks_;
  const evidence::DataRoot& root_;
  std::unique_ptr<Machine> machine_;
  gpu::Device* device_ = nullptr; ///< null where there is none
  CasePreparer* preparer_ = nullptr;
  std::optional<std::string> broken_;
};

} // namespace

Result<Qualified> qualify_kernels(const evidence::DataRoot& root, const QualifyRequest& request,
                                  const QualifyCallbacks& callbacks) {
  return Session(root, request, callbacks).run();
}

} // namespace hebe::campaign
