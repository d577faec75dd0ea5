// hebe run-verify: digests, schemas, and the analysis computed again from the samples; of one run
// in full, of many in a line each.
#include "cli/context.hpp"
#include "core/parallel.hpp"
#include "evidence/run_tree.hpp"
#include "evidence/verify.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {
namespace fs = std::filesystem;

struct RunVerifyOptions {
  std::vector<std::string> names;
  bool all = false;
};

Json problems_json(const evidence::VerifyReport& report) {
  Json out = Json::array();
  for (const auto& p : report.problems)
    out.push_back({{"code", name_of(p.code)}, {"what", p.what}, {"where", p.where}});
  return out;
}

Json json_of_run_verify(const evidence::VerifyReport& report) {
  const auto of_analysis = [&](const char* name) {
    return report.analysis.is_object() ? report.analysis.at(name) : Json(nullptr);
  };
  return {{"directory", report.directory.string()},
          {"seal", report.seal},
          {"valid", report.valid()},
          {"passed", report.passed},
          {"not_checked", report.not_checked},
          {"problems", problems_json(report)},
          {"verdict", of_analysis("verdict")},
          {"qualified", of_analysis("qualified")}};
}

int one(const Context& c, const fs::path& directory) {
  const auto report = evidence::verify_run(directory);
  if (!report) return c.refused(report.error());
  if (c.json) {
    c.print_json(json_of_run_verify(*report));
  } else {
    c.print(report->directory.string());
    for (const auto& text : report->passed) c.print("  ok           " + text);
    for (const auto& text : report->not_checked) c.print("  not checked  " + text);
    for (const auto& p : report->problems) c.print("  BAD          " + p.where + ": " + p.what);
    c.print(report->valid() ? "verified" : "NOT what was sealed");
  }
  return static_cast<int>(report->valid() ? ExitCode::done : ExitCode::bad_data);
}

/// What is said of one of many runs, ready to be printed in its turn.
struct Line {
  std::string text;
  bool valid = false;
};

Line line_for(const Context& c, const fs::path& directory) {
  auto report = evidence::verify_run(directory);
  if (!report) { // vanished, or not readable at all: one bad run of many
    evidence::VerifyReport refused;
    refused.directory = directory;
    refused.problems.push_back(std::move(report).error());
    report = std::move(refused);
  }
  if (c.json)
    return {json_of_run_verify(*report).dump(-1, ' ', false, Json::error_handler_t::replace),
            report->valid()};
  const auto name = report->directory.filename().string();
  if (report->valid())
    return {fmt::format("ok   {}  {}", name, report->analysis.at("verdict").get<std::string>()),
            true};
  std::string text = "BAD  " + name;
  for (const auto& p : report->problems) text += "\n       " + p.where + ": " + p.what;
  return {std::move(text), false};
}

// One JSON value or a line a run, printed as they come: memory does not grow with their number.
class ManyRuns {
public:
  explicit ManyRuns(const Context& c) : c_(c) {
    if (c_.json) c_.print("{\"runs\": [");
  }

  Status add(fs::path directory) {
    constexpr std::size_t kAtOnce = 64;
    batch_.push_back(std::move(directory));
    return batch_.size() < kAtOnce ? Status{} : verify_batch();
  }

  int finish() {
    if (const auto done = verify_batch(); !done) return c_.refused(done.error());
    if (c_.json)
      c_.print(fmt::format("], \"verified\": {}, \"bad\": {}}}", runs_ - bad_, bad_));
    else
      c_.print(fmt::format("{} of {} runs verified, {} bad", runs_ - bad_, runs_, bad_));
    return static_cast<int>(bad_ == 0 ? ExitCode::done : ExitCode::bad_data);
  }

private:
  Status verify_batch() {
    std::vector<Line> lines(batch_.size());
    HEBE_CHECK(for_each_index(lines.size(), core_count(), [&](std::size_t i) -> Status {
      lines[i] = line_for(c_, batch_[i]);
      return {};
    }));
    for (const auto& line : lines) {
      c_.print((c_.json && runs_ > 0 ? "," : "") + line.text);
      ++runs_;
      bad_ += line.valid ? 0 : 1;
    }
    batch_.clear();
    return {};
  }

  const Context& c_;
  std::vector<fs::path> batch_;
  std::size_t runs_ = 0, bad_ = 0;
};

int all(const Context& c, const evidence::DataRoot& root) {
  std::error_code ec;
  if (!fs::is_directory(root.runs(), ec))
    return c.refused({RefusalCode::not_found,
                      "there are no runs here",
                      root.runs().string(),
                      "give --data-root, or measure with `hebe run-aa`",
                      {}});
  ManyRuns runs(c);
  const auto walked = evidence::walk_run_tree(root.runs(), [&](evidence::TreeEntry e) -> Status {
    return e.kind == evidence::TreeKind::run ? runs.add(std::move(e.path)) : Status{};
  });
  return walked ? runs.finish() : c.refused(walked.error());
}

int run_verify(const Context& c, const RunVerifyOptions& o) {
  const evidence::DataRoot root(c.data_root);
  if (o.all && !o.names.empty())
    return c.refused(
        {RefusalCode::bad_argument, "--all and a run were both given", {}, "give one of them", {}});
  if (o.all) return all(c, root);
  std::vector<fs::path> directories;
  for (const auto& name : o.names) {
    auto found = root.find_run(name);
    if (!found) return c.refused(found.error());
    directories.push_back(std::move(*found));
  }
  if (directories.size() > 1) {
    ManyRuns runs(c);
    for (auto& d : directories)
      if (const auto added = runs.add(std::move(d)); !added) return c.refused(added.error());
    return runs.finish();
  }
  if (directories.empty()) {
    const auto newest = root.newest_run();
    if (!newest)
      return c.refused({RefusalCode::not_found,
                        "there is no run in this data root",
                        root.runs().string(),
                        "measure one with `hebe run-aa`",
                        {}});
    directories.push_back(*newest);
  }
  return one(c, directories.front());
}

} // namespace

Command run_verify_command() {
  return {
      "run-verify",
      "Verify sealed runs: every digest and schema, then the analysis recomputed from the samples",
      [](CLI::App& app, Context& c) {
        auto o = std::make_shared<RunVerifyOptions>();
        app.add_option("run", o->names,
                       "run directories, run ids, or unique parts of them (default: the newest)");
        app.add_flag("--all", o->all, "every run of the data root, a line each, on all cores");
        return [&c, o] { return run_verify(c, *o); };
      }};
}

} // namespace hebe::cli
