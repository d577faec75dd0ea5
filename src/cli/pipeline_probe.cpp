// hebe layernorm-reintegration-probe: what the installed Triton can dump, override and compile
// again.
#include "campaign/pipeline_probe.hpp"

#include "cli/case_name.hpp"
#include "cli/qualify.hpp"
#include "evidence/content_record.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace {

struct PipelineProbeOptions {
  std::string subject;
  bool redact = false;
  int arch = 90;
  SourceOptions source;
};

// Without --case: what the reintegration is of, as its specification says.
Result<kernel::CaseRequest> subject_of(const Context& c, const PipelineProbeOptions& o) {
  if (!o.subject.empty()) return case_named(c, o.subject, std::filesystem::current_path());
  HEBE_TRY(const auto file, spec_named(c, "layernorm-reintegration"));
  HEBE_TRY(const auto spec,
           qualify::read_qualification_spec(file, [&](const std::string& name, const auto& base) {
             return case_named(c, name, base);
           }));
  return std::ranges::find(spec.points, true, &qualify::Point::primary)->subject;
}

void tell_pipeline_probe(const Context& c, const Json& r) {
  c.print(fmt::format("Triton {}, ptxas {}", r.at("triton").get<std::string>(),
                      r.at("ptxas").get<std::string>()));
  for (const auto& row : r.at("rows"))
    c.print(fmt::format("  {:<3} {:<56} {}", row.at("possible").get<bool>() ? "yes" : "no",
                        row.at("way").get<std::string>(), row.at("evidence").get<std::string>()));
  for (const auto& d : r.at("demands"))
    c.print(fmt::format("  {:<7} {}: {}", d.at("outcome").get<std::string>(),
                        d.at("name").get<std::string>(), d.at("evidence").get<std::string>()));
}

int run_pipeline_probe(const Context& c, const PipelineProbeOptions& o) {
  const evidence::DataRoot root(c.data_root);
  const auto refused = [&](Refusal r) {
    if (r.not_written.empty()) r.not_written = "the record of the probe";
    return c.refused(r);
  };
  auto subject = subject_of(c, o);
  if (!subject) return refused(subject.error());
  subject->arch = o.arch;
  const auto worker = worker_of(c, o.source);
  if (!worker) return refused(worker.error());
  if (c.dry_run) {
    if (c.json) return c.print_json({{"dry_run", true}, {"ways", 13}}), 0;
    return c.print("would try 13 ways; nothing was run"), 0;
  }
  const auto probe =
      campaign::probe_pipeline(root, {*subject, *worker, c.scratch(), c.variables, o.redact});
  if (!probe) return refused(probe.error());
  const auto stored =
      evidence::store_record(root, root.path() / "qualifications" / "toolchain", probe->record);
  if (!stored) return refused(stored.error());
  if (c.json) {
    c.print_json({{"id", stored->id},
                  {"file", stored->file.string()},
                  {"qualified", probe->qualified},
                  {"record", stored->json}});
  } else {
    tell_pipeline_probe(c, stored->json);
    c.print(probe->qualified ? "a rewritten TTGIR can be relied on with this toolchain"
                             : "NOT qualified: a rewritten TTGIR cannot be relied on here");
    c.print("record: " + stored->file.string());
  }
  return static_cast<int>(probe->qualified ? ExitCode::done : ExitCode::claim_fails);
}

} // namespace

Command layernorm_reintegration_probe_command() {
  return {"layernorm-reintegration-probe",
          "Try what the installed Triton can dump, override and compile again, byte by byte",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<PipelineProbeOptions>();
            app.add_option("--case", o->subject,
                           "another kernel to try it on (default: the official LayerNorm forward)");
            app.add_option("--arch", o->arch, "compute capability to compile for, times 10")
                ->capture_default_str()
                ->check(CLI::Range(70, 999));
            app.add_flag("--redact", o->redact, "hash host name and UUIDs in the record");
            add_source_options(app, o->source);
            return [&c, o] { return run_pipeline_probe(c, *o); };
          }};
}

} // namespace hebe::cli
