#include "campaign/frozen_job.hpp"

#include "core/files.hpp"
#include "gpu/sim_engine.hpp"

#include <fmt/format.h>

#include <random>

#include <unistd.h>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

// Before gigabytes are written: do the buffers fit the GPU, and the inputs and oracle outputs the
// disk?
Status fits(const kernel::LaunchSpec& launch, Bytes memory, const fs::path& scratch) {
  std::uint64_t buffers = 0, files = 0;
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer) continue;
    buffers += a.bytes().count;
    files += a.role == kernel::Role::out ? 2 * a.bytes().count
                                         : a.bytes().count; // an oracle may be wider
  }
  if (buffers > memory.count)
    return refuse(
        RefusalCode::bad_spec,
        fmt::format("the case's buffers take {} bytes, there are {}", buffers, memory.count),
        "make the case smaller (--set)", launch.name);
  std::error_code ec;
  const auto space = fs::space(scratch, ec);
  if (!ec && files > space.available)
    return refuse(
        RefusalCode::no_space,
        fmt::format("inputs and oracle outputs take {} bytes, {} are free", files, space.available),
        "set TMPDIR to a larger file system, or make the case smaller (--set)", scratch.string());
  return {};
}

Json subject_json(const PreparedCase& prepared) {
  const auto& compiled = prepared.compiled;
  Json out{{"launch", compiled.launch.json},
           {"artifacts", compiled.artifacts},
           {"source", compiled.provenance.value("source_name", "")},
           {"function", compiled.request.function},
           {"compile", compiled.provenance}};
  if (!prepared.mechanism.is_null()) out["mechanism"] = prepared.mechanism;
  return out;
}

/// How the simulated GPU comes to each arm's outputs and price: whether it can interpret, which is
/// so with fp fusion or without.
Json engines_of(const PreparedArms& prepared) {
  Json arms = Json::object();
  for (const std::size_t arm : {0, 1}) {
    const auto& compiled = prepared.arm(arm).compiled;
    const auto engine = gpu::SimEngine::make(compiled.launch, compiled.ttgir, gpu::FpFusion::off);
    arms[arm == 0 ? "A" : "B"] =
        engine
            ? Json{{"outputs", "computed by interpreting the TTGIR"},
                   {"price", "bytes and operations that the interpreter counted, through a "
                             "roofline and an energy table"}}
            : Json{{"outputs", "taken from the case's reference"},
                   {"price",
                    "declared bytes and operations, through a roofline and an energy table"},
                   {"not_interpreted",
                    engine.error().what +
                        (engine.error().where.empty() ? "" : " (" + engine.error().where + ")")}};
  }
  return arms;
}

} // namespace

Result<measure::Plan> drafted(const JobSpec& spec) {
  measure::Plan plan;
  if (!measure::is_kind(spec.kind) || (spec.kind == "aa") == spec.subject_b.has_value())
    return refuse(RefusalCode::bad_spec,
                  "a job of kind \"" + spec.kind + "\" with " +
                      (spec.subject_b ? "two arms" : "one arm"),
                  "aa measures one case against itself, ab one against another");
  plan.kind = spec.kind;
  plan.tier = spec.tier;
  plan.pairs = spec.pairs;
  plan.window = spec.window;
  plan.warm_up = spec.warm_up;
  plan.seed = spec.seed.value_or(0);
  plan.margins = spec.margins;
  HEBE_CHECK(complete_plan(plan));
  return plan;
}

Status CasePreparer::start() {
  if (worker_) return {};
  // What Triton and ptxas write in passing lies where the job's own does: it goes with that.
  auto command = where_.worker;
  command.environment["TMPDIR"] = where_.scratch.string();
  HEBE_TRY(worker_, kernel::Worker::start(std::move(command)));
  HEBE_TRY(hello_, worker_->request("hello", Json::object(), Seconds(60)));
  return {};
}

Result<kernel::CompiledCase> CasePreparer::compile(const kernel::CaseRequest& subject) {
  HEBE_CHECK(start());
  const kernel::ArtifactStore store(where_.data_root);
  return kernel::compile_case(*worker_, store, subject, where_.cache / "triton");
}

Result<PreparedCase> CasePreparer::prepare(const kernel::CaseRequest& subject) {
  HEBE_TRY(auto compiled, compile(subject));
  return with_oracle(std::move(compiled));
}

Result<kernel::CompiledCase> CasePreparer::recompile(const kernel::CompiledCase& base,
                                                     const std::string& ttgir) {
  HEBE_CHECK(start());
  const kernel::ArtifactStore store(where_.data_root);
  return kernel::recompile_case(*worker_, store, base, ttgir, where_.cache / "triton");
}

Result<PreparedCase> CasePreparer::with_oracle(kernel::CompiledCase compiled) {
  HEBE_CHECK(start());
  PreparedCase out{std::move(compiled), {}, {}};
  HEBE_CHECK(fits(out.compiled.launch, where_.memory, where_.scratch));
  if (!out.compiled.launch.has_reference)
    return refuse(RefusalCode::bad_spec,
                  "case \"" + out.compiled.launch.name + "\" has no reference",
                  "give the case a reference: an unchecked kernel is not measured",
                  out.compiled.request.file.string());
  const auto folder = where_.scratch / fmt::format("case-{}", prepared_++);
  HEBE_CHECK(make_directories(folder));
  HEBE_TRY(auto inputs, qualify::write_inputs(out.compiled.launch, folder));
  out.inputs = std::move(inputs.digests);
  HEBE_TRY(out.expected, kernel::reference_outputs(*worker_, out.compiled, inputs.paths, folder));
  std::error_code ignored; // the oracle has read them; the GPU's are generated again
  for (const auto& [name, path] : inputs.paths) fs::remove(path, ignored);
  return out;
}

Result<PreparedArms> CasePreparer::prepare_arms(const JobSpec& job, int arch) {
  const auto prepare_for = [&](kernel::CaseRequest subject) {
    subject.arch = arch;
    return prepare(subject);
  };
  PreparedArms out;
  HEBE_TRY(out.a, prepare_for(job.subject));
  if (job.subject_b) {
    HEBE_TRY(out.b, prepare_for(*job.subject_b));
  }
  return out;
}

Result<std::string> freeze(measure::Plan& plan, const PreparedArms& prepared, const Target& target,
                           bool seed_is_given) {
  if (prepared.arm(0).inputs != prepared.arm(1).inputs)
    return refuse(RefusalCode::bad_spec,
                  fmt::format("the two arms do not have the same inputs: A {}, B {}",
                              prepared.arm(0).inputs.dump(), prepared.arm(1).inputs.dump()),
                  "a contrast needs arms that read the same values: their initialisers and shapes "
                  "must agree");
  plan.subject = subject_json(prepared.a);
  if (prepared.b) plan.subject_b = subject_json(*prepared.b);
  plan.qualification = prepared.qualification;
  for (const std::size_t arm : {0, 1}) {
    const auto& artifacts = prepared.arm(arm).compiled.artifacts;
    const auto cubin = artifacts.find("cubin");
    plan.cubins[arm] = cubin != artifacts.end() ? cubin->second : artifacts.at("library");
  }
  plan.inputs = prepared.a.inputs;
  Json faults = Json::array();
  for (const auto& f : target.faults)
    if (!gpu::changes_identity(f.kind)) faults.push_back(gpu::to_string(f));
  plan.device =
      target.simulated
          ? Json{{"provenance", "simulated"}, {"engine", engines_of(prepared)}, {"faults", faults}}
          : Json{{"provenance", "measured"}, {"arch", target.arch}};
  if (!seed_is_given &&
      !target.simulated) { // a simulated run is to be reproducible, a real one random
    std::random_device entropy;
    plan.seed = (std::uint64_t{entropy()} << 32) | entropy();
    plan.order = measure::random_order(plan.pairs, plan.seed);
  }
  return content_id(to_json(plan));
}

} // namespace hebe::campaign
