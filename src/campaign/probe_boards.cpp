#include "campaign/probe_boards.hpp"

#include "gpu/cuda_device.hpp"

#include <algorithm>

namespace hebe::campaign {

std::vector<std::string> uuids_of(std::vector<gpu::DeviceInfo> devices) {
  std::sort(devices.begin(), devices.end(),
            [](auto& a, auto& b) { return a.pci_bus_id < b.pci_bus_id; });
  std::vector<std::string> out;
  for (auto& d : devices) out.push_back(std::move(d.uuid));
  return out;
}

Result<std::vector<std::string>> selectors_in(const std::string& device) {
  if (device == "all") {
    auto devices = gpu::list_cuda_devices();
    if (!devices || devices->empty()) return std::vector<std::string>{"auto"};
    return uuids_of(std::move(*devices));
  }
  std::vector<std::string> out;
  for (std::size_t begin = 0;;) {
    const auto end = device.find(',', begin);
    auto one = device.substr(begin, end - begin);
    // Of a single empty one Machine::open says what is there instead.
    if (one.empty() && device.find(',') != std::string::npos)
      return refuse(RefusalCode::bad_argument, "\"" + device + "\" has an empty place",
                    "give devices with one comma between them", "--device");
    if (std::find(out.begin(), out.end(), one) != out.end())
      return refuse(RefusalCode::bad_argument, "\"" + one + "\" is named twice",
                    "name each device once", "--device");
    out.push_back(std::move(one));
    if (end == std::string::npos) return out;
    begin = end + 1;
  }
}

ExitCode BoardOutcome::exit_code() const {
  if (refusal) return exit_code_of(refusal->code);
  return probe && !probe->found.qualified() ? ExitCode::claim_fails : ExitCode::done;
}

namespace {

// Why a board needs no probe; empty: it does.
std::string not_needed(const evidence::DataRoot& root, const Machine& machine) {
  measure::Tier evidence_tier;
  evidence_tier.is_evidence = true;
  const auto fact = qualified_meter(root, machine, evidence_tier);
  if (!fact) return {};
  return fact->unavailable.empty() ? "qualified already: " + fact->value.get<std::string>()
                                   : fact->unavailable;
}

Status probe_one(const evidence::DataRoot& root, const ProbeRequest& request, bool if_needed,
                 const JobCallbacks& callbacks, BoardOutcome& outcome) {
  {
    HEBE_TRY(const auto machine, Machine::open(request.machine));
    outcome.board = machine->info().name;
    outcome.uuid = machine->info().uuid;
    if (if_needed) outcome.why_not_needed = not_needed(root, *machine);
  }
  if (!outcome.why_not_needed.empty()) return {};
  HEBE_TRY(outcome.probe, probe_meter(root, request, callbacks));
  return {};
}

} // namespace

std::vector<BoardOutcome> probe_boards(const evidence::DataRoot& root, const ProbeRequest& request,
                                       const std::vector<std::string>& selectors, bool if_needed,
                                       const BoardCallbacks& callbacks) {
  std::vector<BoardOutcome> out;
  bool interrupted = false;
  const auto asked_to_stop = [&] {
    return interrupted || (callbacks.job.interrupted && callbacks.job.interrupted());
  };
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    BoardOutcome outcome;
    outcome.selector = selectors[i];
    if (asked_to_stop()) {
      outcome.refusal = Refusal{RefusalCode::interrupted,
                                "interrupted before this board's turn",
                                "--device " + selectors[i],
                                "run again to probe it",
                                {}};
    } else {
      if (callbacks.begins) callbacks.begins(selectors[i], i + 1, selectors.size());
      auto one = request;
      one.machine.selector = selectors[i];
      if (auto done = probe_one(root, one, if_needed, callbacks.job, outcome); !done)
        outcome.refusal = std::move(done).error();
      interrupted = outcome.refusal && outcome.refusal->code == RefusalCode::interrupted;
    }
    out.push_back(std::move(outcome));
  }
  return out;
}

ExitCode worst_exit(const std::vector<BoardOutcome>& outcomes) {
  auto worst = ExitCode::done;
  for (const auto& o : outcomes) worst = std::max(worst, o.exit_code());
  return worst;
}

} // namespace hebe::campaign
