// hebe qualify: kernels proved fit to be measured, and the fixed names that are rows of it.
#include "cli/qualify.hpp"

#include "campaign/kernel_qualification.hpp"
#include "campaign/kernel_verification.hpp"
#include "cli/case_name.hpp"
#include "cli/progress_bar.hpp"
#include "evidence/content_record.hpp"
#include "evidence/qualified_arms.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace fs = std::filesystem;
namespace {

struct QualifyOptions {
  std::string spec;
  bool all_points = true, redact = false;
  std::optional<std::string> verify;
  std::vector<std::string> points;
  SourceOptions source;
};

std::string number_of(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object.at(name).is_number()
             ? object.at(name).dump()
             : "-";
}

std::string blocks_of(const Json& v) {
  const auto& driver = v.at("occupancy");
  if (driver.is_object() && driver.contains("blocks_per_multiprocessor"))
    return driver.at("blocks_per_multiprocessor").dump();
  const auto& m = v.at("mechanism");
  if (m.is_object() && m.contains("occupancy"))
    return number_of(m.at("occupancy"), "blocks_a_multiprocessor");
  return "-";
}

double megabytes_loaded(const Json& v) {
  double sum = 0;
  if (v.at("bytes").is_object())
    for (const auto& [name, row] : v.at("bytes").items()) sum += row.at("loaded").get<double>();
  return sum / 1e6;
}

void tell_variant(const Context& c, const Json& v) {
  std::size_t passed = 0;
  for (const auto& check : v.at("checks")) passed += check.at("outcome") == "passed" ? 1 : 0;
  c.print(fmt::format(
      "  {:<22} {:<13} {:>6} {:>6} {:>12} {:>10.3f}  {} of {} checks passed{}",
      v.at("name").get<std::string>(),
      v.at("qualified").get<bool>() ? "qualified" : "NOT qualified",
      number_of(v.at("resources"), "registers"), blocks_of(v), load_counts(v), megabytes_loaded(v),
      passed, v.at("checks").size(),
      v.at("not_run").empty() ? "" : fmt::format(", {} not run", v.at("not_run").size())));
  for (const auto& check : v.at("checks"))
    if (check.at("outcome") == "failed")
      c.print(fmt::format("      {} ({}): {}", check.at("name").get<std::string>(),
                          check.at("by").get<std::string>(),
                          check.at("evidence").get<std::string>()));
}

void tell_qualify(const Context& c, const Json& record, const evidence::StoredRecord& stored) {
  for (const auto& point : record.at("points")) {
    c.print(fmt::format("{}{}", point.at("name").get<std::string>(),
                        point.at("primary").get<bool>() ? " (primary)" : ""));
    c.print(fmt::format("  {:<22} {:<13} {:>6} {:>6} {:>12} {:>10}", "kernel", "", "regs", "blk/SM",
                        "ld TT/PTX/SA", "MB loaded"));
    tell_variant(c, point.at("baseline"));
    for (const auto& v : point.at("candidates")) tell_variant(c, v);
  }
  for (const auto& k : record.at("measurement_cases").at("cases"))
    c.print(fmt::format("{} against {} at {}: {}", k.at("b").get<std::string>(),
                        k.at("a").get<std::string>(), k.at("point").get<std::string>(),
                        k.at("eligible").get<bool>()
                            ? std::string("may be measured")
                            : "may NOT be measured: " + k.at("why_not").get<std::string>()));
  if (record.at("provenance") == "simulated")
    c.print("no GPU ran these kernels: the checks that need one were not run; a study on a GPU "
            "needs a qualification made on it");
  c.print(record.at("qualified").get<bool>() ? "qualified (no energy was read)" : "NOT qualified");
  c.print("record: " + stored.file.string());
}

Status keep_points(qualify::QualificationSpec& spec, const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (std::ranges::find(spec.points, name, &qualify::Point::name) == spec.points.end())
      return refuse(RefusalCode::bad_argument, "there is no point \"" + name + "\"", {}, "--point");
  if (!names.empty())
    std::erase_if(spec.points, [&](const qualify::Point& p) {
      return std::ranges::find(names, p.name) == names.end();
    });
  return {};
}

void preview_qualify(const Context& c, const qualify::QualificationSpec& spec, bool all_points) {
  Json points = Json::array(), candidates = Json::array();
  for (const auto& p : spec.points)
    if (all_points || p.primary) points.push_back(p.name);
  for (const auto& k : spec.candidates) candidates.push_back(k.name);
  if (c.json)
    c.print_json({{"name", spec.name}, {"points", points}, {"candidates", candidates}});
  else
    c.print(fmt::format("{}: {} points, {} candidates; nothing was run", spec.name, points.size(),
                        candidates.size()));
}

int run_qualify(const Context& c, const QualifyOptions& o) {
  const evidence::DataRoot root(c.data_root);
  if (o.verify)
    return verify_record(c, evidence::kernel_qualifications(root), evidence::kKernelQualification,
                         *o.verify, "hebe qualify");
  const auto refused = [&](Refusal r) {
    if (r.not_written.empty() && r.code != RefusalCode::interrupted)
      r.not_written = "the qualification";
    return c.refused(r);
  };
  if (o.spec.empty())
    return refused({RefusalCode::bad_argument,
                    "no specification was given",
                    {},
                    "give a file, or the name of one in studies/",
                    {}});
  campaign::QualifyRequest request;
  const auto file = spec_named(c, o.spec);
  if (!file) return refused(file.error());
  auto spec =
      qualify::read_qualification_spec(*file, [&](const std::string& name, const fs::path& base) {
        return case_named(c, name, base);
      });
  if (!spec) return refused(spec.error());
  request.spec = std::move(*spec);
  if (const auto kept = keep_points(request.spec, o.points); !kept) return refused(kept.error());
  request.all_points = o.all_points || !o.points.empty();
  if (c.dry_run) return preview_qualify(c, request.spec, request.all_points), 0;
  if (const auto done = complete(request, c, o.source, o.redact); !done)
    return refused(done.error());
  watch_for_interrupt();
  const auto done = campaign::qualify_kernels(root, request, kernel_callbacks(c));
  if (!done) return refused(done.error());
  const auto stored =
      evidence::store_record(root, evidence::kernel_qualifications(root), done->record);
  if (!stored) return refused(stored.error());
  if (c.json)
    c.print_json({{"id", stored->id},
                  {"file", stored->file.string()},
                  {"qualified", done->findings.qualified()},
                  {"record", stored->json}});
  else
    tell_qualify(c, stored->json, *stored);
  return static_cast<int>(done->findings.qualified() ? ExitCode::done : ExitCode::claim_fails);
}

void add_common(CLI::App& app, QualifyOptions& o) {
  app.add_option("--point", o.points, "only this point of the specification (repeatable)");
  app.add_flag("--redact", o.redact, "hash host name and UUIDs in the record");
  add_source_options(app, o.source);
  stands_alone(app, app.add_option("--verify", o.verify,
                                   "check a stored qualification: artifacts, and every rewrite "
                                   "done again; part of its id, a file, or \"\" for the newest"));
}

Command row(const char* name, const char* help, const char* spec) {
  return {name, help, [spec](CLI::App& app, Context& c) {
            auto o = std::make_shared<QualifyOptions>();
            o->spec = spec;
            o->all_points = false;
            app.add_flag("--all-cases", o->all_points,
                         "every point of the specification, not the primary one only");
            add_common(app, *o);
            return [&c, o] { return run_qualify(c, *o); };
          }};
}

} // namespace

std::string load_counts(const Json& v) {
  const auto& m = v.at("mechanism");
  if (!m.is_object()) return "-";
  const auto loads = [&](const char* level) {
    std::int64_t sum = 0;
    for (const auto& row : m.at("by_argument")) {
      if (!row.contains(level)) return std::string("?");
      sum += row.at(level).at("loads").get<std::int64_t>();
    }
    return std::to_string(sum);
  };
  return fmt::format("{}/{}/{}", loads("ttgir"), loads("ptx"), loads("sass"));
}

Status complete(campaign::KernelSessionRequest& request, const Context& c, const SourceOptions& o,
                bool redact) {
  HEBE_TRY(request.machine, c.machine(0));
  HEBE_TRY(request.worker, worker_of(c, o));
  request.scratch = c.scratch();
  request.variables = c.variables;
  request.redact = redact;
  return {};
}

campaign::KernelCallbacks kernel_callbacks(const Context& c) {
  return {interrupted, [&c](const std::string& line) {
            if (!c.quiet) cli::tell("hebe: " + line + "\n");
          }};
}

int verify_record(const Context& c, const fs::path& folder, std::string_view schema,
                  const std::string& name, std::string_view made_by) {
  const evidence::DataRoot root(c.data_root);
  const auto stored = evidence::find_record(folder, schema, name, made_by);
  if (!stored) return c.refused(stored.error());
  const auto report = campaign::verify_kernel_qualification(root, *stored);
  if (!report) return c.refused(report.error());
  if (c.json) {
    Json problems = Json::array();
    for (const auto& p : report->problems)
      problems.push_back({{"code", hebe::name_of(p.code)}, {"what", p.what}, {"where", p.where}});
    c.print_json({{"id", stored->id},
                  {"file", stored->file.string()},
                  {"valid", report->valid()},
                  {"passed", report->passed},
                  {"not_checked", report->not_checked},
                  {"problems", problems}});
  } else {
    c.print(stored->file.string());
    for (const auto& text : report->passed) c.print("  ok           " + text);
    for (const auto& text : report->not_checked) c.print("  not checked  " + text);
    for (const auto& p : report->problems) c.print("  BAD          " + p.where + ": " + p.what);
    c.print(report->valid() ? "verified" : "NOT what was recorded");
  }
  return static_cast<int>(report->valid() ? ExitCode::done : ExitCode::bad_data);
}

void add_source_options(CLI::App& app, SourceOptions& o) {
  app.add_option("--triton-source", o.triton_source,
                 "a checkout of Triton's sources, for cases that name kernels in it");
}

Result<kernel::WorkerCommand> worker_of(const Context& c, const SourceOptions& o) {
  auto worker = c.worker();
  if (o.triton_source.empty()) return worker;
  std::error_code ec;
  if (!fs::is_directory(o.triton_source, ec))
    return refuse(RefusalCode::bad_argument, o.triton_source + " is not a folder",
                  "give the top folder of a Triton checkout", "--triton-source");
  worker.environment["HEBE_TRITON_SOURCE"] =
      fs::absolute(o.triton_source).lexically_normal().string();
  return worker;
}

Result<fs::path> spec_named(const Context& c, const std::string& name) {
  std::error_code ec;
  fs::path file = name;
  if (name.find('/') == std::string::npos && file.extension().empty()) {
    file = c.home() / "studies" / (name + ".toml");
    if (fs::is_regular_file(file, ec)) return file;
    std::string known;
    for (const auto& entry : fs::directory_iterator(c.home() / "studies", ec))
      if (entry.path().extension() == ".toml")
        known += (known.empty() ? "" : ", ") + entry.path().stem().string();
    return refuse(RefusalCode::not_found, "no specification is named \"" + name + "\"",
                  "specifications here: " + known + "; or give a file", file.string());
  }
  if (fs::is_regular_file(file, ec)) return file;
  return refuse(RefusalCode::not_found, "there is no specification " + name,
                "give a TOML file, or the name of one in studies/", file.string());
}

Command qualify_command() {
  return {
      "qualify",
      "Prove kernels fit to be measured against each other: outputs, memory, artifacts, spills; "
      "no energy is read",
      [](CLI::App& app, Context& c) {
        auto o = std::make_shared<QualifyOptions>();
        app.add_option("spec", o->spec, "a specification: a TOML file, or a name in studies/");
        add_common(app, *o);
        return [&c, o] { return run_qualify(c, *o); };
      }};
}

Command layernorm_retention_qualify_command() {
  return row("layernorm-retention-qualify",
             "Qualify LayerNorm with its re-reads from global memory, retained in registers, or "
             "staged in shared memory",
             "layernorm-retention");
}

Command layernorm_reintegration_qualify_command() {
  return row("layernorm-reintegration-qualify",
             "Qualify the official LayerNorm forward with one hoisted load, and its straight-line "
             "form (--triton-source)",
             "layernorm-reintegration");
}

} // namespace hebe::cli
