// Facts about the environment record: nothing is guessed, and a redacted one names nobody.
#include "evidence/environment.hpp"

#include "core/schema.hpp"
#include "core/sha256.hpp"

#include <set>

#include <gtest/gtest.h>

#include "../data/support/sim_gpu.hpp"

namespace hebe::evidence {
namespace {

const Fact& named(const std::vector<Fact>& facts, const std::string& name) {
  for (const auto& f : facts)
    if (f.name == name) return f;
  throw std::runtime_error("no fact " + name);
}

std::vector<Fact> all_facts(bool simulated, const Variables& variables) {
  test::SimGpu sim;
  auto facts = build_facts();
  for (auto&& more :
       {host_facts(simulated, variables), device_facts(sim.device.info()), meter_facts(sim.meter),
        toolchain_facts(
            {{"python", {{"version", "3.11.2"}}}, {"ptxas", {{"unavailable", "not found"}}}})})
    facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

TEST(Environment, every_fact_has_a_source_and_a_value_or_a_reason_and_one_name) {
  std::set<std::string> names;
  for (const auto& f : all_facts(false, {})) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_FALSE(f.source.empty()) << f.name;
    EXPECT_NE(f.value.is_null(), f.unavailable.empty()) << f.name;
  }
}

TEST(Environment, the_record_follows_its_schema) {
  EXPECT_TRUE(check_schema(environment_json(all_facts(false, {})), "hebe.environment/1",
                           "environment.json"));
  EXPECT_TRUE(check_schema(environment_json(all_facts(true, {})), "hebe.environment/1",
                           "environment.json"));
}

TEST(Environment, variables_come_from_the_caller_and_are_unavailable_when_not_set) {
  const auto facts = host_facts(false, {{"SLURM_JOB_ID", "4711"}});
  EXPECT_EQ(named(facts, "slurm.job_id").value, "4711");
  EXPECT_EQ(named(facts, "slurm.array_task_id").unavailable, "not set");
}

TEST(Environment, a_simulated_run_leaves_out_what_changes_between_runs) {
  const auto facts = host_facts(true, {{"SLURM_JOB_ID", "4711"}});
  for (const auto& f : facts) {
    EXPECT_NE(f.name, "host.name");
    EXPECT_NE(f.name, "host.boot_id");
    EXPECT_NE(f.name, "slurm.job_id");
  }
  EXPECT_FALSE(named(facts, "host.load").unavailable.empty());
}

TEST(Environment, a_tool_that_the_worker_does_not_name_is_unavailable) {
  const auto facts = toolchain_facts(
      {{"python", {{"version", "3.11.2"}}}, {"ptxas", {{"unavailable", "not found"}}}});
  EXPECT_EQ(named(facts, "toolchain.python").value, "3.11.2");
  EXPECT_EQ(named(facts, "toolchain.ptxas").unavailable, "not found");
  EXPECT_EQ(named(facts, "toolchain.triton").unavailable, "the worker did not say");
}

TEST(Redact, host_and_board_are_hashed_alike_and_the_rest_stays) {
  std::vector<Fact> facts = {
      known("host.name", "node17", "uname"),   known("device.uuid", "GPU-1234", "CUDA"),
      known("board.uuid", "GPU-1234", "NVML"), known("host.boot_id", "b00t", "proc"),
      known("host.cpus", 64, "sysconf"),       known("device.name", "H200", "CUDA"),
      unknown("host.name", "uname", "failed")};
  redact(facts);
  EXPECT_TRUE(facts[0].value.get<std::string>().starts_with("sha256:"));
  EXPECT_EQ(facts[0].value.get<std::string>().size(), 7U + 16);
  EXPECT_EQ(facts[1].value, facts[2].value);
  EXPECT_NE(facts[1].value, facts[0].value);
  EXPECT_TRUE(facts[3].value.get<std::string>().starts_with("sha256:"));
  EXPECT_EQ(facts[4].value, 64);
  EXPECT_EQ(facts[5].value, "H200");
  EXPECT_TRUE(facts[6].value.is_null());
}

TEST(Redact, the_host_and_its_boards_appear_nowhere_in_a_redacted_record) {
  auto facts = host_facts(false, {{"SLURMD_NODENAME", "node17"},
                                  {"CUDA_VISIBLE_DEVICES", "GPU-1234,GPU-5678"},
                                  {"SLURM_JOB_ID", "4711"}});
  redact(facts);
  const auto text = environment_json(facts).dump();
  EXPECT_EQ(text.find("node17"), std::string::npos);
  EXPECT_EQ(text.find("GPU-1234"), std::string::npos);
  EXPECT_NE(text.find("4711"), std::string::npos);
}

TEST(Environment, a_redacted_record_names_the_board_nowhere) {
  const std::string uuid = "GPU-1f-2", digest = "sha256:" + sha256_hex(uuid).substr(0, 16);
  Json record{
      {"where", uuid},
      {"shapes",
       Json::array({{{"why", {{"what", "board " + uuid + ": lost, " + uuid}}}}, 7, nullptr, uuid})},
      {"other", "GPU-1f-3"}};
  redact(record, uuid);
  EXPECT_EQ(record.dump().find(uuid), std::string::npos);
  EXPECT_EQ(record["shapes"][0]["why"]["what"], "board " + digest + ": lost, " + digest);
  EXPECT_EQ(record["where"], digest);
  EXPECT_EQ(record["shapes"][3], digest);
  EXPECT_EQ(record["other"], "GPU-1f-3");
  auto same = record;
  redact(same, "");
  EXPECT_EQ(same, record);
}

} // namespace
} // namespace hebe::evidence
