// hebe ttgir run: one launch of a TTIR or TTGIR kernel on the CPU.
#include "cli/ttgir_run.hpp"

#include "core/files.hpp"
#include "core/parallel.hpp"
#include "ttgir/launch_file.hpp"
#include "ttgir/reader.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace hebe::cli {
namespace {

struct TtgirRunOptions {
  std::string file, launch, function;
  unsigned threads = core_count();
  std::uint64_t steps = ttgir::Limits{}.steps;
  bool counts = false, poison = false, time = false;
};

int run_ttgir_run(const Context& c, const TtgirRunOptions& o) {
  auto text = read_given_file(o.file);
  if (!text) return c.refused(text.error());
  const auto module = ttgir::read_module(std::move(*text), {true, o.file});
  if (!module) return c.refused(module.error());
  auto file = ttgir::LaunchFile::read(o.launch);
  if (!file) return c.refused(file.error());
  const std::string function = o.function.empty() ? file->function() : o.function;
  auto launch = file->launch(**module);
  if (!launch) return c.refused(launch.error());
  launch->threads = o.threads;
  launch->limits.steps = o.steps;
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = ttgir::interpret(**module, function, *launch, {o.counts, o.poison});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!outcome) return c.refused(outcome.error());
  const auto written = file->write_outputs();
  if (!written) return c.refused(written.error());
  std::fwrite(outcome->printed.data(), 1, outcome->printed.size(), stderr);
  Json result = {{"programs", outcome->programs}};
  Json files = Json::array();
  for (const auto& path : *written) files.push_back(path.string());
  result["written"] = files;
  if (o.time) {
    result["seconds"] = took.count();
    result["lane_bytes"] = outcome->lane_bytes;
  }
  if (outcome->counts) result["counts"] = to_json(*outcome->counts);
  if (c.json || outcome->counts)
    c.print_json(result);
  else
    c.print(fmt::format("{} programs{}; {} file(s) written", outcome->programs,
                        o.time ? fmt::format(" in {:.6f} s", took.count()) : "", written->size()));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_ttgir_run(CLI::App& app, Context& c, std::function<int()>& action) {
  auto options = std::make_shared<TtgirRunOptions>();
  auto* sub = app.add_subcommand(
      "run", "One launch on the CPU: outputs go to each buffer's file with .out");
  sub->add_option("file", options->file, "file of TTIR or TTGIR")->required();
  sub->add_option("--launch", options->launch, "launch.json: grid and arguments")->required();
  sub->add_option("--function", options->function,
                  "which function; else the launch's, else the first public one");
  sub->add_option("--threads", options->threads, "threads; default: one for each core");
  sub->add_option("--steps", options->steps, "operations that one program may run");
  sub->add_flag("--counts", options->counts, "print bytes and operations as JSON");
  sub->add_flag("--poison", options->poison,
                "elements without a defined value are NaN or 0xCC, not 0");
  sub->add_flag("--time", options->time, "print seconds and the memory for values too");
  sub->callback(
      [&c, options, &action] { action = [&c, options] { return run_ttgir_run(c, *options); }; });
}

} // namespace hebe::cli
