// The Slurm engine as a program, for the tests that run against a real Slurm. In: a JSON request on
// argv[1], or "states" and job ids; out: JSON on stdout, or a refusal and its exit code.
#include "campaign/slurm_engine.hpp"
#include "core/json.hpp"

#include <cstdio>

namespace {
using namespace hebe;

int refused(const Refusal& r) {
  std::fprintf(stderr, "%s\n", to_text(r).c_str());
  return static_cast<int>(exit_code_of(r.code));
}

int submit(const Json& asked) {
  campaign::SlurmRequest r;
  r.program = asked.at("program").get<std::string>();
  r.data_root = asked.at("data_root").get<std::string>();
  r.folder = asked.at("folder").get<std::string>();
  r.campaign = asked.at("campaign").get<std::string>();
  r.jobs = asked.at("jobs").get<std::vector<std::size_t>>();
  r.one_task = asked.value("one_task", false);
  r.device = asked.value("device", "auto");
  r.options.gres = asked.value("gres", r.options.gres);
  r.options.partition = asked.value("partition", "");
  r.options.time_limit = asked.value("time_limit", "");
  r.options.max_parallel = asked.value("max_parallel", 0);
  r.options.extra = asked.value("extra", std::vector<std::string>{});
  r.environment = asked.value("environment", std::map<std::string, std::string>{});
  const auto done = campaign::submit_to_slurm(r);
  if (!done) return refused(done.error());
  std::vector<std::string> scripts;
  for (const auto& script : done->scripts) scripts.push_back(script.string());
  std::printf("%s\n", Json{{"job_ids", done->job_ids}, {"scripts", scripts}}.dump().c_str());
  return 0;
}
} // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (std::string(argv[1]) != "states") return submit(Json::parse(argv[1]));
  const auto states = campaign::slurm_states({argv + 2, argv + argc});
  if (!states) return refused(states.error());
  std::printf("%s\n", Json(*states).dump().c_str());
  return 0;
}
