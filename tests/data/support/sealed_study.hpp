// A study's runs, for tests of what is made from them. In: what to change in a document before it
// is sealed; out: sealed runs of the jobs aa, primary, 16384x8192.hoisted, control and floor.
// Invariant: unchanged they are simulated runs that verify; as_measured() only relabels, and no
// such run does.
#pragma once

#include "evidence/sealed_run.hpp"
#include "evidence/telemetry.hpp"
#include "measure/prediction.hpp"

#include "core/sha256.hpp"

#include "made_run.hpp"
#include "scratch_folder.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace hebe::test {

/// What lies in a run's directory, to be changed.
struct Documents {
  Json plan, environment, acquisition, windows, analysis;
  std::string telemetry;
};

inline Documents documents_of(const evidence::RunParts& parts) {
  Documents d{to_json(parts.plan), parts.environment,   to_json(parts.acquisition),
              Json::array(),       parts.analysis.json, {}};
  for (const auto& w : parts.windows) d.windows.push_back(to_json(w, parts.acquisition.provenance));
  d.telemetry =
      evidence::telemetry_parquet(parts.samples, parts.windows, parts.acquisition).value();
  return d;
}

/// Sealed as evidence::seal_run does, but for its syncs: a study of five runs is sealed many times.
inline std::filesystem::path sealed_documents(const evidence::DataRoot& root, Documents d,
                                              const evidence::JobIdentity& identity, int minute) {
  constexpr std::int64_t kWhen = 1'790'000'123'456'789;
  const auto wall_us = kWhen + minute * std::int64_t{60'000'000};
  const auto line = [](const Json& j) { return canonical_json(j).value() + "\n"; };
  const auto plan_id = content_id(d.plan).value();
  d.analysis["plan_id"] = plan_id;
  auto windows = line(d.acquisition);
  for (const auto& w : d.windows) windows += line(w);
  std::vector<evidence::NamedBytes> files = {{"plan.json", line(d.plan)},
                                             {"environment.json", line(d.environment)},
                                             {"windows.jsonl", windows},
                                             {"telemetry.parquet", d.telemetry},
                                             {"analysis.json", line(d.analysis)}};
  const auto manifest = line({{"schema", "hebe.run.manifest/1"},
                              {"plan_id", plan_id},
                              {"provenance", d.acquisition.at("provenance")},
                              {"campaign", evidence::to_json(identity)},
                              {"files", evidence::file_list(files)}});
  files.push_back({"manifest.json", manifest});
  const auto run =
      evidence::day_folder(root, wall_us) /
      (evidence::utc_stamp("%Y%m%dT%H%M%SZ", wall_us) + "-" + d.plan.at("kind").get<std::string>() +
       "-" + sha256_hex(manifest).substr(0, evidence::kSealDigitsInName));
  std::filesystem::create_directories(run);
  for (const auto& f : files) overwrite(run / f.name, f.bytes);
  return run;
}

/// One run of two launches that declare so many bytes; a positive control where it has a
/// prediction.
inline evidence::RunParts made_contrast(measure::Plan plan, double bytes_a, double bytes_b) {
  plan.subject = {{"launch", vector_launch(1024, bytes_a)},
                  {"artifacts", {{"cubin", std::string(64, 'a')}}}};
  plan.cubins = {std::string(64, 'a'), std::string(64, 'a')};
  if (plan.kind != "aa") {
    plan.subject_b = {{"launch", vector_launch(1024, bytes_b)},
                      {"artifacts", {{"cubin", std::string(64, 'b')}}}};
    plan.cubins[1] = std::string(64, 'b');
  }
  SimGpu sim(plan.seed, {}, {}, {bytes_a, bytes_b});
  auto raw = sim.run(plan).value();
  evidence::RunParts parts;
  parts.plan = plan;
  parts.plan_id = content_id(measure::to_json(plan)).value();
  parts.environment = evidence::environment_json(
      {known("device.name", sim.device.info().name, "test"),
       known("device.uuid", sim.device.info().uuid, "test"),
       known("board.driver", "simulated", "test"), unknown("run.lease", "test", "simulated")});
  parts.acquisition = measure::acquisition_of(raw, sim.meter, true);
  parts.acquisition.check = {{"A", {{"out_ptr", {{"sha256", std::string(64, '0')}}}}},
                             {"B", {{"out_ptr", {{"sha256", std::string(64, '0')}}}}}};
  parts.acquisition.occupancy = Json::object();
  parts.windows = std::move(raw.windows);
  parts.samples = std::move(raw.sampler.samples);
  (void)measure::judge_windows(parts.windows, parts.samples, plan, parts.acquisition).value();
  parts.analysis = measure::analyse(plan, parts.plan_id, parts.acquisition, parts.windows).value();
  return parts;
}

inline measure::Plan plan_of_kind(const char* kind, std::uint64_t seed = 1) {
  auto plan = smoke_plan(8, seed);
  plan.kind = kind;
  return plan;
}

inline const evidence::RunParts& study_aa_parts() {
  static const auto parts = made_contrast(plan_of_kind("aa"), 1e8, 1e8);
  return parts;
}
/// B moves 6 % fewer bytes.
inline const evidence::RunParts& study_contrast_parts() {
  static const auto parts = made_contrast(plan_of_kind("ab", 2), 1e8, 0.94e8);
  return parts;
}
inline const evidence::RunParts& study_control_parts() {
  static const auto parts = [] {
    const double plain = 2e8;
    const auto calibration =
        made_contrast(plan_of_kind("ab", 99), 1.25 * plain, 1.75 * plain).analysis.json;
    auto c = measure::calibration_of(calibration, 0.25, 0.75);
    const auto bytes = [](double declared) {
      const auto work = vector_launch(1024, declared).at("work");
      return work.at("bytes_read").get<double>() + work.at("bytes_written").get<double>();
    };
    c.plain_bytes = bytes(plain);
    c.declared_fraction = bytes(2 * plain) / bytes(plain) - 1;
    c.run_id = "r";
    c.seal = std::string(64, 'e');
    auto plan = plan_of_kind("positive_control", 3);
    plan.prediction = measure::predict(1, c).value();
    return made_contrast(plan, plain, 2 * plain);
  }();
  return parts;
}

/// What a qualification found of a kernel, as a plan has it.
inline Json mechanism_of(const std::string& variant) {
  const bool baseline = variant == "baseline";
  return {{"variant", variant},
          {"loads", {{"ttgir", baseline ? 5 : 3}, {"ptx", 20}, {"sass", baseline ? 20 : 12}}},
          {"stores", {{"ttgir", 3}, {"ptx", 6}, {"sass", 6}}},
          {"registers", baseline ? 58 : 93},
          {"local_bytes", 0},
          {"static_shared_bytes", 0},
          {"blocks_per_multiprocessor", baseline ? 4 : 2},
          {"warps_per_multiprocessor", 16},
          {"occupancy_ratio", 0.25},
          {"instructions", 812},
          {"bytes",
           {{"loaded", baseline ? 167'000'000 : 100'000'000},
            {"stored", 50'000'000},
            {"unique_loaded", 50'000'000},
            {"unique_stored", 50'000'000},
            {"counted_at", nullptr}}}};
}

struct MadeStudy {
  Json record, study;
  std::vector<std::pair<std::string, Documents>> jobs;

  Documents& of(const std::string& job) {
    return std::find_if(jobs.begin(), jobs.end(), [&](auto& j) { return j.first == job; })->second;
  }
  void each(const std::function<void(Documents&)>& change) {
    for (auto& [job, documents] : jobs) change(documents);
  }
  void drop(const std::string& job) {
    std::erase_if(jobs, [&](auto& j) { return j.first == job; });
    std::erase_if(study["jobs"].get_ref<Json::array_t&>(),
                  [&](auto& j) { return j.at("job") == job; });
  }
  /// The record's id and provenance go where they are named; after any change of the record.
  void name_record() {
    study["qualification"] = content_id(record).value();
    each([&](Documents& d) {
      if (!d.plan.contains("qualification")) return;
      d.plan["qualification"]["record"] = study["qualification"];
      d.plan["qualification"]["provenance"] = record["provenance"];
    });
  }
  std::vector<std::pair<std::string, std::filesystem::path>>
  sealed(const evidence::DataRoot& root) const {
    std::vector<std::pair<std::string, std::filesystem::path>> out;
    for (const auto& [job, documents] : jobs)
      out.emplace_back(
          job, sealed_documents(root, documents, {"spring", job}, static_cast<int>(out.size())));
    return out;
  }
};

inline Json qualified_variant(const std::string& name, char cubin) {
  const std::string digest(64, cubin);
  return {{"name", name},
          {"why", "test"},
          {"passes", Json::array()},
          {"rewrite", nullptr},
          {"artifacts", {{"ttgir", digest}, {"ptx", digest}, {"cubin", digest}}},
          {"launch", nullptr},
          {"compile", nullptr},
          {"resources", nullptr},
          {"checks", Json::array()},
          {"failed", Json::array()},
          {"not_run", Json::array()},
          {"qualified", true},
          {"outputs", Json::object()},
          {"mechanism", nullptr},
          {"occupancy", nullptr},
          {"bytes", nullptr}};
}

inline Json qualification_of_study() {
  Json points = Json::array(), cases = Json::array();
  for (const char* name : {"2048x8192", "16384x8192"}) {
    const bool primary = points.empty();
    points.push_back({{"name", name},
                      {"primary", primary},
                      {"inputs", Json::object()},
                      {"interpreted_at", nullptr},
                      {"baseline", qualified_variant("baseline", 'a')},
                      {"candidates", {qualified_variant("hoisted", 'b')}}});
    cases.push_back({{"point", name},
                     {"a", "baseline"},
                     {"b", "hoisted"},
                     {"primary", primary},
                     {"eligible", true},
                     {"why_not", ""},
                     {"bytes_saved", 67108864}});
  }
  return {{"schema", "hebe.qualification.kernel/1"},
          {"name", "layernorm-reintegration"},
          {"spec",
           {{"schema", "hebe.qualification.spec/1"},
            {"subject", Json::object()},
            {"points", Json::array()},
            {"candidates", Json::array()}}},
          {"provenance", "simulated"},
          {"when", nullptr},
          {"hebe_version", "0.1.0"},
          {"environment", Json::object()},
          {"energy_labels", "none: nothing was measured"},
          {"points", points},
          {"measurement_cases", {{"rule", "all"}, {"cases", cases}}},
          {"qualified", true}};
}

/// Simulated smoke runs, each of which verifies.
inline MadeStudy made_study() {
  const auto qualified = [](const evidence::RunParts& parts, const char* point, const char* b) {
    auto d = documents_of(parts);
    d.plan["qualification"] = {{"record", std::string(64, '0')},
                               {"name", "layernorm-reintegration"},
                               {"provenance", "simulated"},
                               {"point", point},
                               {"a", "baseline"},
                               {"b", b},
                               {"equal_bits", true}};
    const auto is = [](Json& subject, const char* variant, char digit) {
      const std::string digest(64, digit);
      subject["mechanism"] = mechanism_of(variant);
      subject["artifacts"] = {{"ttgir", digest}, {"ptx", digest}, {"cubin", digest}};
    };
    d.plan["subject"]["launch"] =
        documents_of(study_contrast_parts()).plan.at("subject").at("launch");
    is(d.plan["subject"], "baseline", 'a');
    if (d.plan.contains("subject_b")) is(d.plan["subject_b"], b, 'b');
    return d;
  };
  static const std::vector<std::pair<std::string, Documents>> jobs = {
      {"aa", qualified(study_aa_parts(), "2048x8192", "baseline")},
      {"primary", qualified(study_contrast_parts(), "2048x8192", "hoisted")},
      {"16384x8192.hoisted", qualified(study_contrast_parts(), "16384x8192", "hoisted")},
      {"control", documents_of(study_control_parts())},
      {"floor", documents_of(study_aa_parts())}};
  MadeStudy out{qualification_of_study(),
                {{"name", "layernorm-reintegration-study"},
                 {"description", "test"},
                 {"tier", "smoke-v1"},
                 {"qualification", nullptr},
                 {"qualification_name", "layernorm-reintegration"},
                 {"calibration", {{"run_id", "r"}, {"seal", std::string(64, 'e')}}},
                 {"jobs",
                  {{{"job", "aa"}, {"role", "aa"}},
                   {{"job", "primary"}, {"role", "primary"}},
                   {{"job", "16384x8192.hoisted"}, {"role", "contrast"}},
                   {{"job", "control"}, {"role", "control"}},
                   {{"job", "floor"}, {"role", "floor"}}}},
                 {"spec", Json::object()}},
                jobs};
  const auto& plan = out.of("primary").plan;
  for (auto& point : out.record["points"]) {
    point["baseline"]["launch"] = plan.at("subject").at("launch");
    point["candidates"][0]["launch"] = plan.at("subject_b").at("launch");
  }
  out.name_record();
  return out;
}

/// A fact of a run's environment.
inline void set_fact(Documents& d, const std::string& name, Json value) {
  auto& facts = d.environment["facts"];
  std::erase_if(facts.get_ref<Json::array_t&>(), [&](auto& f) { return f.at("name") == name; });
  facts.push_back(to_json(value.is_null() ? unknown(name, "test", "the test says so")
                                          : known(name, std::move(value), "test")));
}

/// The same, labelled as if a board had been measured with every condition met.
inline MadeStudy as_measured() {
  auto out = made_study();
  out.study["tier"] = "confirmation-v1";
  out.record["provenance"] = "gpu";
  out.each([](Documents& d) {
    d.plan["tier"] = measure::to_json(measure::tier_named("confirmation-v1").value());
    d.acquisition["provenance"] = d.analysis["provenance"] = "measured";
    d.acquisition["meter"]["response"] = {{"id", std::string(64, '7')},
                                          {"source", "nvml.samples.total_power"},
                                          {"lag_s", 0.06},
                                          {"pre_roll_s", 0.3},
                                          {"minimum_window_s", 0.5}};
    d.analysis["qualified"] = d.analysis["claim_holds"] = true;
    for (auto& c : d.analysis["conditions"]) c["holds"] = true;
    for (const char* fact :
         {"device.name", "device.uuid", "device.cuda_driver", "board.driver", "board.vbios",
          "board.ecc_mode", "board.mig_enabled", "board.persistence_mode", "board.compute_mode",
          "host.boot_id", "host.kernel", "hebe.version", "hebe.git", "meter.primary",
          "meter.cross_check", "meter.qualification", "run.lease"})
      set_fact(d, fact, std::string(fact) + " as it is");
    set_fact(d, "board.power_limit_w", 700);
    set_fact(d, "board.clock_sm_application_mhz", 1980);
    set_fact(d, "board.clock_memory_application_mhz", nullptr); // equally unknown in all
  });
  for (const char* quantity : {"energy", "latency"})
    out.of("aa").analysis[quantity]["verdict"] = "equivalent";
  out.of("aa").analysis["verdict"] = "equivalent";
  out.of("control").analysis["control"]["seen"] = true;
  out.name_record();
  return out;
}

} // namespace hebe::test
