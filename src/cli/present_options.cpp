#include "cli/present_options.hpp"

#include "tune/present_machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace hebe::cli {
namespace {

Status
not_empty(const std::vector<std::pair<const char*, const std::optional<std::string>*>>& all) {
  for (const auto& [name, value] : all)
    if (*value && (*value)->empty())
      return refuse(RefusalCode::bad_argument, std::string(name) + " is empty",
                    "leave out what is not known; --here reads it from the machine");
  return {};
}

Status read_meters(const PresentOptions& o, tune::Present& out) {
  if (!o.meters.empty()) out.meters.emplace();
  for (const auto& text : o.meters) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return refuse(RefusalCode::bad_argument,
                    fmt::format("\"{}\" is no meter with a status", text),
                    "write --meter NAME=STATUS, as `hebe probe-meter` says them");
    (*out.meters)[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return {};
}

void take(std::optional<std::string>& to, const std::optional<std::string>& given) {
  if (given) to = given;
}

} // namespace

void add_present(CLI::App& app, PresentOptions& o, const std::string& action, bool with_cpu) {
  const auto help = [&](const char* text) { return action + ": " + text; };
  app.add_flag("--here", o.here,
               help("hold it against this machine: the board of --device, its driver and meters, "
                    "the operating system, Hebe (not Triton); what else is given goes before it"));
  app.add_option("--board", o.board,
                 help("the name of the board of now; what is not given is not checked"));
  app.add_option("--board-uuid", o.board_uuid, help("its UUID, or what --redact has in its place"));
  if (with_cpu)
    app.add_option("--cpu", o.cpu, help("the processor's name, as /proc/cpuinfo has it"));
  app.add_option("--driver", o.driver, help("the board's driver"));
  app.add_option("--os", o.os, help("the operating system"));
  app.add_option("--hebe-version", o.hebe, help("Hebe's version"));
  app.add_option("--triton-version", o.triton, help("Triton's version"));
  app.add_option("--meter", o.meters,
                 help("NAME=STATUS of a meter (repeatable; given one, all others are not here)"))
      ->take_all();
  app.add_option("--days", o.days, help("how old a row may be"))->check(whole_number_from(0));
  app.add_option("--date", o.date, help("the time of now, UTC (2026-11-30T04:20:00Z)"));
}

std::vector<std::string> present_names(bool with_cpu) {
  std::vector<std::string> out{"--here", "--board",        "--board-uuid",     "--driver",
                               "--os",   "--hebe-version", "--triton-version", "--meter",
                               "--days", "--date"};
  if (with_cpu) out.emplace_back("--cpu");
  return out;
}

Result<tune::PlacementNow> present_of(const Context& c, const PresentOptions& o) {
  HEBE_CHECK(not_empty({{"--board", &o.board},
                        {"--board-uuid", &o.board_uuid},
                        {"--cpu", &o.cpu},
                        {"--driver", &o.driver},
                        {"--os", &o.os},
                        {"--hebe-version", &o.hebe},
                        {"--triton-version", &o.triton},
                        {"--date", &o.date}}));
  tune::PlacementNow out;
  HEBE_CHECK(read_meters(o, out.gpu));
  if (o.here) {
    HEBE_TRY(const auto request, c.machine(0));
    HEBE_TRY(const auto machine, campaign::Machine::open(request));
    if (machine->simulated() && !machine->why().empty() && c.device == "auto")
      return refuse(RefusalCode::no_device, "there is no GPU here: " + machine->why(),
                    "say --device sim for the simulated one, or give what is known");
    HEBE_TRY(auto here, tune::present_machine(evidence::DataRoot(c.data_root), *machine,
                                              !out.gpu.meters.has_value()));
    if (out.gpu.meters) here.meters = std::move(out.gpu.meters);
    out.gpu = std::move(here);
    out.cpu = tune::processor();
  }
  take(out.gpu.board, o.board);
  take(out.gpu.board_uuid, o.board_uuid);
  take(out.cpu, o.cpu);
  take(out.gpu.driver, o.driver);
  take(out.gpu.os, o.os);
  take(out.gpu.hebe, o.hebe);
  take(out.gpu.triton, o.triton);
  out.gpu.most_days = o.days;
  out.gpu.date =
      o.date.value_or(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))));
  return out;
}

bool says_anything(const tune::Present& p) {
  return p.board || p.board_uuid || p.driver || p.os || p.hebe || p.triton || p.meters ||
         p.most_days;
}

} // namespace hebe::cli
