// hebe ttgir: reads TTIR or TTGIR and prints it, checks it, or says what is in it.
#include "cli/context.hpp"
#include "cli/ttgir_count.hpp"
#include "cli/ttgir_run.hpp"
#include "core/files.hpp"
#include "ttgir/printer.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/verify.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>

namespace hebe::cli {
namespace {

struct TtgirOptions {
  std::vector<std::string> files;
  bool structural = false, carry = false, time = false;
};

Result<std::unique_ptr<ttgir::Module>> module_of(const std::string& file, bool carry) {
  HEBE_TRY(auto text, read_given_file(file));
  return ttgir::read_module(std::move(text), {carry, file});
}

/// Seconds of reading and printing, the least of a few: what the machine does between is not
/// Hebe's.
double seconds_of(const std::string& text, bool carry) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto module = ttgir::read_module(text, {carry, ""});
    if (!module || ttgir::print_structure(**module).empty()) return least;
    least = std::min(
        least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

int print_ttgir(const Context& c, const TtgirOptions& o) {
  Json list = Json::array();
  for (const auto& file : o.files) {
    const auto module = module_of(file, o.carry);
    if (!module) return c.refused(module.error());
    if (o.time) {
      const std::string text((*module)->source());
      const double seconds = seconds_of(text, o.carry);
      list.push_back({{"file", file}, {"bytes", text.size()}, {"read_and_print_s", seconds}});
      if (!c.json)
        c.print(fmt::format("{:.6f} s, {:.1f} MB/s  {}", seconds,
                            static_cast<double>(text.size()) / seconds / 1e6, file));
      continue;
    }
    const auto text = o.structural ? ttgir::print_structure(**module) : ttgir::print(**module);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  if (o.time && c.json) c.print_json(list);
  return static_cast<int>(ExitCode::done);
}

int verify(const Context& c, const TtgirOptions& o) {
  bool good = true;
  Json list = Json::array();
  for (const auto& file : o.files) {
    const auto module = module_of(file, o.carry);
    if (!module) return c.refused(module.error());
    std::map<std::string, int> carried;
    std::vector<std::string> unread;
    ttgir::walk((*module)->top(), [&](ttgir::Operation& op) {
      if (op.form != ttgir::Operation::Form::opaque) return;
      ++carried[std::string(op.name)];
      if (!op.unread.empty()) unread.emplace_back(op.unread);
    });
    const auto findings = ttgir::verify(**module);
    good = good && findings.empty();
    Json faults = Json::array();
    for (const auto& f : findings) {
      faults.push_back({{"line", f.line}, {"op", f.op}, {"what", f.what}});
      if (!c.json) c.print(fmt::format("{}:{}: {}\n  in {}", file, f.line, f.what, f.op));
    }
    if (!c.json) {
      c.print(fmt::format("{}: {}", file,
                          findings.empty() ? "well formed"
                                           : fmt::format("{} fault(s)", findings.size())));
      for (const auto& [name, count] : carried)
        c.print(fmt::format("  carried as text, not understood: {} ({} times)", name, count));
      for (const auto& why : unread) c.print("  " + why);
    }
    list.push_back({{"file", file},
                    {"well_formed", findings.empty()},
                    {"faults", faults},
                    {"not_understood", carried},
                    {"unread", unread}});
  }
  if (c.json) c.print_json(list);
  return static_cast<int>(good ? ExitCode::done : ExitCode::claim_fails);
}

} // namespace

Command ttgir_command() {
  return {
      "ttgir", "Read TTIR or TTGIR as Triton prints it: print it again, check it, run it, count",
      [](CLI::App& app, Context& c) {
        auto options = std::make_shared<TtgirOptions>();
        auto action = std::make_shared<std::function<int()>>();
        app.require_subcommand(1);
        const auto add = [&](const char* name, const char* help,
                             int (*run)(const Context&, const TtgirOptions&)) {
          auto* sub = app.add_subcommand(name, help);
          sub->add_option("file", options->files, "files of TTIR or TTGIR")->required();
          sub->add_flag("--carry", options->carry,
                        "carry known operations in an unknown form as text");
          sub->callback([&c, options, action, run] {
            *action = [&c, options, run] { return run(c, *options); };
          });
          return sub;
        };
        auto* printing =
            add("print", "The same bytes again; an edited module in Triton's syntax", print_ttgir);
        printing->add_flag("--structural", options->structural,
                           "print every operation from its structure, never from the source");
        printing->add_flag("--time", options->time,
                           "print how long reading and printing takes instead");
        add("verify", "Dominance, one definition, terminators, types; what is not understood",
            verify);
        add_ttgir_run(app, c, *action);
        add_ttgir_count(app, c, *action);
        return [action] { return (*action)(); };
      }};
}

} // namespace hebe::cli
