#include "evidence/compared_study.hpp"

#include "core/files.hpp"
#include "core/schema.hpp"
#include "evidence/analysis_store.hpp"
#include "evidence/sealed_study.hpp"
#include "measure/intervals.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostBytes = 64ULL << 20;
constexpr double kMost = 1e12, kLeastJoules = 1e-12; ///< beyond them nothing is a measurement

std::unexpected<Refusal> wrong(const std::string& where, const std::string& what) {
  return refuse(RefusalCode::bad_schema, "at " + where + ": " + what,
                "use the Hebe version that wrote it, or restore the file", where);
}

// A member of an object, with its place for a refusal.
struct Member {
  const Json* value = nullptr;
  std::string where;

  [[nodiscard]] Member at(const std::string& name) const {
    static const Json kNothing;
    const auto found = value->is_object() ? value->find(name) : value->end();
    return {found == value->end() ? &kNothing : &*found, where + "/" + name};
  }
  [[nodiscard]] Result<std::string> text() const {
    if (!value->is_string()) return wrong(where, "required a string, found " + found());
    auto text = value->get<std::string>();
    for (const char c : text) // a terminal would obey it
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        return wrong(where, "this text holds a control character");
    return text;
  }
  [[nodiscard]] Result<double> number() const {
    const double v = value->is_number() ? value->get<double>() : std::nan("");
    if (!std::isfinite(v)) return wrong(where, "required a number, found " + found());
    if (std::abs(v) > kMost) return wrong(where, fmt::format("no measurement gives {:g}", v));
    return v;
  }
  [[nodiscard]] std::string found() const { return value->type_name(); }
};

Result<ComparedEffect> effect_of(const Member& m, int pairs) {
  ComparedEffect e;
  HEBE_TRY(e.effect, m.at("effect_percent").number());
  HEBE_TRY(e.low, m.at("low_percent").number());
  HEBE_TRY(e.high, m.at("high_percent").number());
  HEBE_TRY(const double half, m.at("half_width_percent").number());
  if (e.high < e.low || half < 0) return wrong(m.where, "the interval's ends are in no order");
  e.pairs = pairs;
  e.standard_error = half / measure::t_exceeded_with(0.025, pairs - 1);
  return e;
}

Result<int> pairs_of(const Member& job) {
  HEBE_TRY(const double pairs, job.at("pairs").number());
  if (pairs < 2 || pairs > 1e6 || pairs != std::floor(pairs))
    return wrong(job.where + "/pairs", fmt::format("required 2 or more pairs, found {}", pairs));
  return static_cast<int>(pairs);
}

// A run without a valid measurement has no effects: that is something other than a wrong file.
Result<std::map<std::string_view, ComparedEffect>> effects_of(const Member& job) {
  std::map<std::string_view, ComparedEffect> out;
  for (const auto quantity : kComparedQuantities) {
    const auto m = job.at(std::string(quantity));
    if (m.value->is_null() || m.value->contains("unavailable")) continue;
    HEBE_TRY(const int pairs, pairs_of(job));
    HEBE_TRY(out[quantity], effect_of(m, pairs));
  }
  return out;
}

Result<ComparedArm> arm_of(const Member& m) {
  ComparedArm arm;
  HEBE_TRY(arm.variant, m.at("variant").text());
  HEBE_TRY(arm.cubin, m.at("cubin_sha256").text());
  const auto energy = m.at("energy_per_launch_j");
  if (energy.value->is_null()) return arm;
  HEBE_TRY(arm.joules, energy.number());
  if (*arm.joules < kLeastJoules)
    return wrong(energy.where, fmt::format("no launch costs {:g} J", *arm.joules));
  return arm;
}

Result<ComparedContrast> contrast_of(const Member& m) {
  ComparedContrast c;
  HEBE_TRY(c.job, m.at("job").text());
  HEBE_TRY(c.point, m.at("point").text());
  HEBE_TRY(c.a, m.at("a").text());
  HEBE_TRY(c.b, m.at("b").text());
  HEBE_TRY(c.verdict, m.at("verdict").text());
  HEBE_TRY(const auto role, m.at("role").text());
  c.primary = role == "primary";
  HEBE_TRY(c.window_s, m.at("window_s").number());
  HEBE_TRY(c.effects, effects_of(m));
  HEBE_TRY(c.arm_a, arm_of(m.at("arms").at("A")));
  HEBE_TRY(c.arm_b, arm_of(m.at("arms").at("B")));
  return c;
}

Status read_jobs(ComparedStudy& study, const Member& m) {
  const auto contrasts = m.at("contrasts");
  if (!contrasts.value->is_array()) return wrong(contrasts.where, "required an array");
  for (std::size_t i = 0; i < contrasts.value->size(); ++i) {
    const Member one{&contrasts.value->at(i), fmt::format("{}/{}", contrasts.where, i)};
    HEBE_TRY(auto contrast, contrast_of(one));
    HEBE_TRY(auto seal, one.at("seal").text());
    study.contrasts.push_back(std::move(contrast));
    study.seals.push_back(std::move(seal));
  }
  for (const char* name : {"aa", "control", "floor"}) {
    const auto job = m.at(name);
    if (job.value->is_null()) continue;
    HEBE_TRY(auto seal, job.at("seal").text());
    study.seals.push_back(std::move(seal));
  }
  if (const auto aa = m.at("aa"); !aa.value->is_null()) {
    HEBE_TRY(study.aa, effects_of(aa));
  }
  return {};
}

Result<bool> every_condition_holds(const Member& m) {
  if (!m.value->is_array() || m.value->empty()) return wrong(m.where, "required a list");
  bool all = true;
  for (std::size_t i = 0; i < m.value->size(); ++i) {
    const auto holds = Member{&m.value->at(i), fmt::format("{}/{}", m.where, i)}.at("holds");
    if (!holds.value->is_boolean()) return wrong(holds.where, "required true or false");
    all = all && holds.value->get<bool>();
  }
  return all;
}

// By path: an analysis.json, or its directory. A directory of a data root's carries its digest.
Result<ComparedStudy> study_at(fs::path file, const std::string& given) {
  std::error_code ec;
  if (fs::is_directory(file, ec)) file /= "analysis.json";
  HEBE_TRY(const auto bytes, read_record(file, kMostBytes));
  HEBE_TRY(const auto json, parse_json(bytes.bytes, file.string()));
  auto study = compared_study(json, given);
  if (!study) {
    auto refusal = study.error();
    refusal.where = file.string() + refusal.where;
    return std::unexpected(std::move(refusal));
  }
  const auto folder = fs::absolute(file, ec).lexically_normal().parent_path().filename().string();
  if (folder.starts_with(kAnalysisPrefix) && folder != std::string(kAnalysisPrefix) + study->id)
    return refuse(RefusalCode::digest_mismatch, "its content id is " + study->id,
                  "restore the analysis from a copy", file.string());
  HEBE_CHECK(check_schema(json, "hebe.analysis.study/1", file.string()));
  return study;
}

// Of a sealed study, which names its analysis.
Result<ComparedStudy> analysis_of(const DataRoot& root, const std::string& study,
                                  const std::string& given) {
  HEBE_TRY(const auto sealed, load_study(root, study));
  return study_at(root.analyses() / sealed.json.at("analysis").get<std::string>(), given);
}

} // namespace

Result<ComparedStudy> compared_study(const Json& analysis, const std::string& given) {
  const Member m{&analysis, ""};
  if (const auto schema = m.at("schema"); *schema.value != "hebe.analysis.study/1")
    return refuse(RefusalCode::bad_schema,
                  "at /schema: required \"hebe.analysis.study/1\", found " +
                      (schema.value->is_string() ? schema.value->dump() : schema.found()),
                  "studies are compared: give the analysis of one", "/schema");
  ComparedStudy study;
  study.given = given;
  HEBE_TRY(study.id, content_id(analysis));
  HEBE_TRY(study.study, m.at("study").at("name").text());
  HEBE_TRY(study.campaign, m.at("campaign").text());
  HEBE_TRY(study.tier, m.at("tier").text());
  HEBE_TRY(study.label, m.at("label").text());
  HEBE_TRY(study.provenance, m.at("provenance").text());
  const auto qualified = m.at("study_qualified");
  if (!qualified.value->is_boolean()) return wrong(qualified.where, "required true or false");
  study.qualified = qualified.value->get<bool>();
  HEBE_TRY(const bool all_hold, every_condition_holds(m.at("conditions")));
  if (study.qualified != all_hold)
    return wrong(qualified.where, fmt::format("it says {}, but its conditions {}", study.qualified,
                                              all_hold ? "all hold" : "do not all hold"));
  study.platform = *m.at("platform").value;
  if (!study.platform.is_object()) return wrong("/platform", "required an object");
  HEBE_CHECK(read_jobs(study, m));
  return study;
}

Result<ComparedStudy> find_compared_study(const DataRoot& root, const std::string& name) {
  std::error_code ec;
  if (name.empty())
    return refuse(RefusalCode::bad_argument, "a study has an empty name",
                  "give analysis ids or paths");
  if (fs::exists(fs::path(name) / "study.json", ec)) { // studies/ID of a data root
    const auto folder = fs::canonical(name, ec);
    return analysis_of(DataRoot(folder.parent_path().parent_path()), folder.string(), name);
  }
  if (name.find('/') != std::string::npos || fs::exists(name, ec)) {
    HEBE_CHECK(there_is(name));
    return study_at(name, name);
  }
  const auto id = find_analysis(root, name);
  if (id) return study_at(root.analyses() / *id, name);
  if (id.error().code != RefusalCode::not_found) return std::unexpected(id.error());
  auto study = analysis_of(root, name, name);
  if (!study && study.error().code == RefusalCode::not_found)
    return refuse(RefusalCode::not_found, "no study and no analysis is named \"" + name + "\"",
                  "give part of an id below " + root.studies().string() + " or " +
                      root.analyses().string());
  return study;
}

} // namespace hebe::evidence
