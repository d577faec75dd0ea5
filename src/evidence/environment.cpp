#include "evidence/environment.hpp"

#include "core/build_identity.hpp"
#include "core/files.hpp"
#include "core/sha256.hpp"

#include <array>
#include <fstream>

#include <sys/utsname.h>
#include <unistd.h>

namespace hebe::evidence {
namespace {

// "key<separator>value" lines, first hit, unquoted.
Result<std::string> value_in(const char* file, std::string_view key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(separator);
    if (at == std::string::npos) continue;
    auto name = line.substr(0, at);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.pop_back();
    if (name != key) continue;
    auto value = line.substr(at + 1);
    const auto first = value.find_first_not_of(" \t\"");
    const auto last = value.find_last_not_of(" \t\"");
    return first == std::string::npos ? std::string() : value.substr(first, last - first + 1);
  }
  return refuse(RefusalCode::not_found, std::string(file) + " has no " + std::string(key));
}

Fact variable(std::string name, const Variables& variables, const char* env) {
  const auto hit = variables.find(env);
  const std::string source = std::string("environment variable ") + env;
  return hit != variables.end() ? known(std::move(name), hit->second, source)
                                : unknown(std::move(name), source, "not set");
}

Fact container() {
  std::error_code ec;
  for (const auto& [file, kind] :
       {std::pair{"/.dockerenv", "docker"}, std::pair{"/run/.containerenv", "podman"}})
    if (std::filesystem::exists(file, ec)) return known("host.container", kind, file);
  return known("host.container", "none seen", "/.dockerenv, /run/.containerenv");
}

} // namespace

Result<std::string> boot_id() {
  HEBE_TRY(const auto text, read_file("/proc/sys/kernel/random/boot_id"));
  return text.substr(0, text.find('\n'));
}

std::vector<Fact> build_facts() {
  const char* source = "this binary";
  return {known("hebe.version", kVersion, source),
          std::string_view(kGit) == "unknown"
              ? unknown("hebe.git", source, "not built from a git checkout")
              : known("hebe.git", kGit, source),
          known("hebe.compiler", kCompiler, source), known("hebe.build_type", kBuildType, source)};
}

std::vector<Fact> host_facts(bool simulated, const Variables& variables) {
  std::vector<Fact> out;
  utsname u{};
  if (::uname(&u) == 0) {
    out.push_back(known("host.kernel", std::string(u.sysname) + " " + u.release, "uname"));
    out.push_back(known("host.architecture", u.machine, "uname"));
    if (!simulated) out.push_back(known("host.name", u.nodename, "uname"));
  }
  out.push_back(fact_of("host.distribution", value_in("/etc/os-release", "PRETTY_NAME", '='),
                        "/etc/os-release"));
  out.push_back(fact_of("host.cpu", value_in("/proc/cpuinfo", "model name", ':'), "/proc/cpuinfo"));
  out.push_back(known("host.cpus", ::sysconf(_SC_NPROCESSORS_ONLN), "sysconf"));
  if (simulated) {
    out.push_back(
        unknown("host.load", "/proc/loadavg",
                "the simulated GPU runs in virtual time: the host's load does not touch it"));
    return out;
  }
  out.push_back(
      fact_of("host.memory", value_in("/proc/meminfo", "MemTotal", ':'), "/proc/meminfo"));
  const auto load = read_file("/proc/loadavg");
  out.push_back(load ? known("host.load", load->substr(0, load->find('\n')), "/proc/loadavg")
                     : unknown("host.load", "/proc/loadavg", load.error().what));
  out.push_back(container());
  for (const auto& [name, env] : std::to_array<std::pair<const char*, const char*>>(
           {{"slurm.job_id", "SLURM_JOB_ID"},
            {"slurm.array_job_id", "SLURM_ARRAY_JOB_ID"},
            {"slurm.array_task_id", "SLURM_ARRAY_TASK_ID"},
            {"slurm.restart_count", "SLURM_RESTART_COUNT"},
            {"slurm.node", "SLURMD_NODENAME"},
            {"cuda.visible_devices", "CUDA_VISIBLE_DEVICES"}}))
    out.push_back(variable(name, variables, env));
  out.push_back(fact_of("host.boot_id", boot_id(), "/proc/sys/kernel/random/boot_id"));
  return out;
}

std::vector<Fact> device_facts(const gpu::DeviceInfo& d) {
  const std::string source = d.simulated ? "simulated GPU" : "CUDA driver";
  return {known("device.name", d.name, source),
          known("device.uuid", d.uuid, source),
          known("device.pci_bus_id", d.pci_bus_id, source),
          known("device.arch", d.arch, source),
          known("device.multiprocessors", d.multiprocessors, source),
          known("device.memory_bytes", d.memory.count, source),
          known("device.l2_bytes", d.l2.count, source),
          known("device.cuda_driver", d.driver, source)};
}

std::vector<Fact> meter_facts(meter::BoardMeter& m) {
  auto facts = m.facts();
  const auto& b = m.board();
  facts.insert(facts.begin(),
               {known("board.vendor", b.vendor, "meter"), known("board.name", b.name, "meter"),
                known("board.uuid", b.uuid, "meter"),
                known("board.pci_bus_id", b.pci_bus_id, "meter"),
                known("board.provenance", name_of(b.provenance), "meter")});
  for (const auto& [role, s] : {std::pair{"meter.primary", m.samples_source()},
                                std::pair{"meter.cross_check", m.counter_source()}})
    facts.push_back(
        known(role, s.name + ": " + s.field + ", scope " + s.scope + ", " + s.unit, "meter"));
  const auto processes = m.processes();
  if (processes) {
    Json list = Json::array();
    for (const auto& p : *processes) list.push_back({{"pid", p.pid}, {"name", p.name}});
    facts.push_back(known("board.processes", list, "meter"));
  } else {
    facts.push_back(unknown("board.processes", "meter", processes.error().what));
  }
  return facts;
}

std::vector<Fact> toolchain_facts(const Json& hello, const std::string& no_hello) {
  std::vector<Fact> out;
  for (const char* tool : {"python", "triton", "ptxas", "nvdisasm", "cuobjdump", "numpy"}) {
    const std::string name = std::string("toolchain.") + tool;
    const auto hit = hello.find(tool);
    if (!no_hello.empty())
      out.push_back(unknown(name, "compile worker", no_hello));
    else if (hit == hello.end())
      out.push_back(unknown(name, "compile worker", "the worker did not say"));
    else if (hit->contains("unavailable"))
      out.push_back(unknown(name, "compile worker", hit->at("unavailable").get<std::string>()));
    else
      out.push_back(known(name, hit->at("version"), "compile worker"));
  }
  return out;
}

Json environment_json(const std::vector<Fact>& facts) {
  Json list = Json::array();
  for (const auto& f : facts) list.push_back(to_json(f));
  return {{"schema", "hebe.environment/1"}, {"facts", list}};
}

std::string redacted(const std::string& identity) {
  constexpr std::size_t kDigits = 16;
  return "sha256:" + sha256_hex(identity).substr(0, kDigits);
}

void redact(std::vector<Fact>& facts) {
  for (auto& f : facts) {
    const bool identifies = f.name == "host.name" || f.name == "host.boot_id" ||
                            f.name == "slurm.node" || f.name == "cuda.visible_devices" ||
                            f.name.ends_with(".uuid") || f.name.ends_with(".pci_bus_id");
    if (f.name == "run.argv" && f.value.is_array())
      for (std::size_t i = 1; i < f.value.size(); ++i)
        if (f.value[i - 1] == "--device") f.value[i] = "(redacted)";
    if (f.name == "board.processes" && f.value.is_array())
      for (auto& p : f.value) p["name"] = "(redacted)";
    if (identifies && f.value.is_string()) f.value = redacted(f.value.get<std::string>());
  }
}

void redact(Json& record, const std::string& identity) {
  if (identity.empty()) return;
  if (record.is_structured()) {
    for (auto& part : record) redact(part, identity);
  } else if (record.is_string()) {
    auto text = record.get<std::string>();
    const auto digest = redacted(identity);
    for (auto at = text.find(identity); at != std::string::npos;
         at = text.find(identity, at + digest.size()))
      text.replace(at, identity.size(), digest);
    record = text;
  }
}

} // namespace hebe::evidence
