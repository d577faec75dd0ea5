// hebe doctor: facts, checks, exit 3 where measuring is not possible.
#include "campaign/doctor.hpp"
#include "cli/context.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {

int run_doctor(const Context& c) {
  auto machine = c.machine(0);
  if (!machine) return c.refused(machine.error());
  const auto report = campaign::examine(
      evidence::DataRoot(c.data_root),
      {*machine, c.worker(), c.home() / "kernels/vector_add.py", c.scratch(), c.variables});
  if (c.json) {
    Json checks = Json::array(), facts = Json::array();
    for (const auto& k : report.checks)
      checks.push_back(
          {{"name", k.name}, {"passed", k.passed}, {"detail", k.detail}, {"fix", k.fix}});
    for (const auto& f : report.facts) facts.push_back(to_json(f));
    c.print_json({{"can_measure", report.can_measure()},
                  {"simulated", report.simulated},
                  {"checks", checks},
                  {"facts", facts}});
  } else {
    for (const auto& f : report.facts)
      c.print(f.unavailable.empty()
                  ? fmt::format("{:<34} {}   ({})", f.name,
                                f.value.is_string() ? f.value.get<std::string>() : f.value.dump(),
                                f.source)
                  : fmt::format("{:<34} unavailable: {}   ({})", f.name, f.unavailable, f.source));
    c.print("");
    for (const auto& k : report.checks) {
      c.print(fmt::format("{} {}: {}", k.passed ? "ok  " : "FAIL", k.name, k.detail));
      if (!k.passed) c.print("     fix: " + k.fix);
    }
    c.print(report.can_measure()
                ? report.simulated ? "\nReady for simulated runs; simulated values never qualify."
                                   : "\nReady to measure."
                : "\nMeasuring is not possible here.");
  }
  return static_cast<int>(report.can_measure() ? ExitCode::done : ExitCode::unfit_environment);
}

} // namespace

Command doctor_command() {
  return {"doctor",
          "Record and validate tool chain, GPU, meters and data root; exit 3 where measuring is "
          "not possible",
          [](CLI::App&, Context& c) { return [&c] { return run_doctor(c); }; }};
}

} // namespace hebe::cli
