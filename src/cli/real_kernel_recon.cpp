// hebe real-kernel-recon: what real kernels move twice, and which rewrites of them hold.
#include "campaign/kernel_recon.hpp"
#include "cli/case_name.hpp"
#include "cli/qualify.hpp"
#include "evidence/content_record.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::cli {
namespace fs = std::filesystem;
namespace {

struct RealKernelReconOptions {
  std::string spec = "real-kernel-recon";
  bool all_cases = false, redact = false;
  std::vector<std::string> groups;
  std::optional<std::string> verify;
  SourceOptions source;
};

std::string first_failure(const Json& v) {
  for (const auto& check : v.at("checks"))
    if (check.at("outcome") == "failed")
      return check.at("name").get<std::string>() + ": " + check.at("evidence").get<std::string>();
  for (const auto& check : v.at("checks"))
    if (check.at("outcome") == "not_run" && check.at("by") != "GPU")
      return check.at("name").get<std::string>() + ": " + check.at("evidence").get<std::string>();
  return {};
}

std::string short_text(const std::string& text, std::size_t most = 150) {
  const auto line = text.substr(0, text.find('\n'));
  return line.size() <= most ? line : line.substr(0, most) + "…";
}

void tell_case(const Context& c, const Json& entry) {
  const auto name = entry.at("name").get<std::string>();
  if (!entry.at("refused").is_null())
    return c.print(fmt::format("{:<28} {}: {}", name,
                               entry.at("refused").at("code").get<std::string>(),
                               short_text(entry.at("refused").at("what").get<std::string>())));
  const auto& base = entry.at("point").at("baseline");
  const auto& m = base.at("mechanism");
  double loaded = 0, again = 0;
  if (m.is_object())
    for (const auto& row : m.at("by_argument"))
      if (row.contains("bytes")) {
        loaded += row.at("bytes").value("loaded", 0.0);
        again += row.at("bytes").value("again", 0.0);
      }
  const auto& r = base.at("resources");
  c.print(fmt::format("{:<28} {:<9} {:>5} {:>12} {:>11.3f} {:>11.3f} {:>6.1f} %", name,
                      base.at("qualified").get<bool>() ? "right" : "NOT right",
                      r.contains("registers") ? r.at("registers").dump() : "-", load_counts(base),
                      loaded / 1e6, again / 1e6, loaded > 0 ? 100 * again / loaded : 0.0));
  if (!base.at("qualified").get<bool>()) c.print("      " + short_text(first_failure(base)));
  for (const auto& v : entry.at("point").at("candidates"))
    c.print(fmt::format("      {:<42} {}  loads {}{}", v.at("name").get<std::string>(),
                        v.at("qualified").get<bool>() ? "qualified    " : "not qualified",
                        load_counts(v),
                        v.at("qualified").get<bool>() ? "" : "  " + short_text(first_failure(v))));
}

void tell_real_kernel_recon(const Context& c, const Json& record, const fs::path& file) {
  c.print(fmt::format("{:<28} {:<9} {:>5} {:>12} {:>11} {:>11} {:>8}", "kernel", "outputs", "regs",
                      "ld TT/PTX/SA", "MB loaded", "MB again", "share"));
  for (const auto& entry : record.at("cases")) tell_case(c, entry);
  struct Ranked {
    double bytes;
    std::string line;
  };
  std::vector<Ranked> ranked;
  for (const auto& entry : record.at("cases")) {
    if (entry.at("point").is_null() ||
        !entry.at("point").at("baseline").at("mechanism").is_object())
      continue;
    for (const auto& o : entry.at("point").at("baseline").at("mechanism").at("opportunities")) {
      if (!o.at("bytes_saved").is_number()) continue;
      ranked.push_back(
          {o.at("bytes_saved").get<double>(),
           fmt::format("{:<28} {:<12} {:<10} {:>5.1f} % of its traffic: {}",
                       entry.at("name").get<std::string>(), o.at("kind").get<std::string>(),
                       o.at("argument").is_null() ? "" : o.at("argument").get<std::string>(),
                       100 * o.at("share_of_traffic").get<double>(),
                       short_text(o.at("why").get<std::string>(), 110))});
    }
  }
  std::ranges::stable_sort(ranked, std::ranges::greater{}, &Ranked::bytes);
  if (!ranked.empty()) c.print("\nopportunities, most bytes a launch first (estimated)");
  for (std::size_t i = 0; i < std::min<std::size_t>(ranked.size(), 20); ++i)
    c.print(fmt::format("{:>10.3f} MB  {}", ranked[i].bytes / 1e6, ranked[i].line));
  const auto& s = record.at("summary");
  c.print(fmt::format(
      "\n{} cases: {} right, {} refused, {} not installed here; {} load bytes again; "
      "{} of {} candidates qualified",
      s.at("cases").dump(), s.at("right").dump(), s.at("refused").dump(), s.at("not_there").dump(),
      s.at("with_rereads").dump(), s.at("candidates_qualified").dump(), s.at("candidates").dump()));
  if (record.at("provenance") == "simulated")
    c.print("no GPU ran these kernels: checks that need one were not run");
  c.print("no energy was measured\nrecord: " + file.string());
}

int run_real_kernel_recon(const Context& c, const RealKernelReconOptions& o) {
  const evidence::DataRoot root(c.data_root);
  const auto refused = [&](Refusal r) {
    if (r.not_written.empty() && r.code != RefusalCode::interrupted)
      r.not_written = "the record of the recon";
    return c.refused(r);
  };
  if (o.verify)
    return verify_record(c, root.path() / "qualifications" / "recon", "hebe.recon/1", *o.verify,
                         "hebe real-kernel-recon");
  const auto file = spec_named(c, o.spec);
  if (!file) return refused(file.error());
  auto spec = qualify::read_recon_spec(*file, [&](const std::string& name, const fs::path& base) {
    return case_named(c, name, base);
  });
  if (!spec) return refused(spec.error());
  campaign::ReconRequest request;
  request.groups = {o.groups.begin(), o.groups.end()};
  if (!o.all_cases && o.groups.empty()) request.groups = {spec->cases.front().group};
  for (const auto& group : request.groups)
    if (std::ranges::find(spec->cases, group, &qualify::ReconCase::group) == spec->cases.end())
      return refused({RefusalCode::bad_argument,
                      "there is no group \"" + group + "\"",
                      "--group",
                      "see the specification " + file->string(),
                      {}});
  request.spec = std::move(*spec);
  if (c.dry_run) {
    const auto n = std::ranges::count_if(request.spec.cases, [&](auto& row) {
      return request.groups.empty() || request.groups.contains(row.group);
    });
    if (c.json) return c.print_json({{"dry_run", true}, {"cases", n}}), 0;
    return c.print(fmt::format("{} cases; nothing was run", n)), 0;
  }
  if (const auto done = complete(request, c, o.source, o.redact); !done)
    return refused(done.error());
  watch_for_interrupt();
  const auto done = campaign::recon_kernels(root, request, kernel_callbacks(c));
  if (!done) return refused(done.error());
  const auto stored =
      evidence::store_record(root, root.path() / "qualifications" / "recon", done->record);
  if (!stored) return refused(stored.error());
  if (c.json)
    c.print_json({{"id", stored->id}, {"file", stored->file.string()}, {"record", stored->json}});
  else
    tell_real_kernel_recon(c, stored->json, stored->file);
  return static_cast<int>(done->all_right ? ExitCode::done : ExitCode::claim_fails);
}

} // namespace

Command real_kernel_recon_command() {
  return {"real-kernel-recon",
          "Compile and check real kernels, and rank what they move twice; measures no energy",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<RealKernelReconOptions>();
            app.add_option("spec", o->spec, "a specification: a TOML file, or a name in studies/")
                ->capture_default_str();
            app.add_flag("--all-cases", o->all_cases,
                         "every group, kernels of packages and of a Triton checkout too (default: "
                         "the first group)");
            app.add_option("--group", o->groups, "only this group (repeatable)");
            app.add_flag("--redact", o->redact, "hash host name and UUIDs in the record");
            add_source_options(app, o->source);
            stands_alone(app, app.add_option("--verify", o->verify,
                                             "check a stored recon: artifacts, and every rewrite "
                                             "done again; part of its id, a file, or \"\" for the "
                                             "newest"));
            return [&c, o] { return run_real_kernel_recon(c, *o); };
          }};
}

} // namespace hebe::cli
