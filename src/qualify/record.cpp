#include "qualify/record.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::qualify {
namespace {

bool needs_gpu(const Check& c) { return c.by == "GPU"; }

const ttgir::ArgumentBytes* bytes_of(const ttgir::Counts& counts, std::string_view argument) {
  const auto found = std::ranges::find(counts.arguments, argument, &ttgir::ArgumentBytes::name);
  return found == counts.arguments.end() ? nullptr : &*found;
}

double loaded(const ttgir::Counts& counts) {
  double sum = 0;
  for (const auto& a : counts.arguments) sum += static_cast<double>(a.loaded);
  return sum;
}

Json bytes_json(const ttgir::Counts& counts) {
  Json out = Json::object();
  for (const auto& a : counts.arguments)
    out[a.name] = {{"loaded", a.loaded},
                   {"unique_loaded", a.unique_loaded},
                   {"stored", a.stored},
                   {"unique_stored", a.unique_stored},
                   {"atomic", a.atomic}};
  return out;
}

Json to_json(const Variant& v, bool gpu) {
  Json failed = Json::array(), not_run = Json::array();
  for (const auto& c : v.checks) {
    if (c.outcome == Check::Outcome::failed) failed.push_back(c.name + " (" + c.by + ")");
    if (c.outcome == Check::Outcome::not_run) not_run.push_back(c.name + " (" + c.by + ")");
  }
  Json out{{"name", v.name},
           {"why", v.why},
           {"passes", v.passes},
           {"rewrite", v.rewrite},
           {"qualified", v.qualified(gpu)},
           {"failed", failed},
           {"not_run", not_run},
           {"checks", to_json(v.checks)},
           {"outputs", v.outputs},
           {"mechanism", v.mechanism},
           {"occupancy", v.occupancy},
           {"bytes", v.counts ? bytes_json(*v.counts) : Json(nullptr)}};
  out["artifacts"] = v.compiled ? Json(v.compiled->artifacts) : Json(nullptr);
  out["launch"] = v.compiled ? v.compiled->launch.json : Json(nullptr);
  out["compile"] = v.compiled ? v.compiled->provenance : Json(nullptr);
  out["resources"] = v.compiled ? v.compiled->resources : Json(nullptr);
  return out;
}

} // namespace

std::vector<const Check*> Variant::problems(bool gpu) const {
  std::vector<const Check*> out;
  for (const auto& c : checks)
    if (c.outcome != Check::Outcome::passed && (gpu || !needs_gpu(c))) out.push_back(&c);
  return out;
}

bool Variant::qualified(bool gpu) const {
  return compiled && !checks.empty() && problems(gpu).empty();
}

const Variant* PointResult::find(std::string_view variant) const {
  if (variant == "baseline") return &baseline;
  const auto found = std::ranges::find(candidates, variant, &Variant::name);
  return found == candidates.end() ? nullptr : &*found;
}

Check fewer_loads(const std::vector<std::string>& arguments, const Variant& baseline,
                  const Variant& candidate) {
  Checks out("interpreter");
  if (!baseline.counts || !candidate.counts) {
    out.not_run("fewer_loads", "not counted: the interpreter did not run both kernels");
    return out.rows.front();
  }
  bool holds = true;
  std::string evidence;
  for (const auto& name : arguments) {
    const auto *a = bytes_of(*baseline.counts, name), *b = bytes_of(*candidate.counts, name);
    const bool fewer = a && b && b->loaded < a->loaded;
    holds = holds && fewer;
    evidence += fmt::format(
        "{}{}: {}", evidence.empty() ? "" : "; ", name,
        a && b ? fmt::format("{} bytes loaded, {} in the baseline", b->loaded, a->loaded)
               : "no such buffer");
  }
  out.add("fewer_loads", holds, evidence);
  return out.rows.front();
}

std::vector<MeasurementCase> measurement_cases(const QualificationSpec& spec,
                                               const std::vector<PointResult>& points, bool gpu) {
  std::vector<MeasurementCase> out;
  for (const auto& contrast : spec.contrasts)
    for (const auto& point : points) {
      const auto asked_for = [&](const std::string& name) {
        const auto c = std::ranges::find(spec.candidates, name, &Candidate::name);
        return name == "baseline" || c->points.empty() || c->points.contains(point.name);
      };
      if (!asked_for(contrast.a) || !asked_for(contrast.b)) continue;
      MeasurementCase c{point.name, contrast.a, contrast.b, false, {}, {}};
      c.primary = point.primary && &contrast == &spec.contrasts.front();
      for (const auto& name : {c.a, c.b})
        if (const auto* v = point.find(name))
          for (const auto* problem : v->problems(gpu))
            c.why_not += fmt::format("{}{}: {}: {}", c.why_not.empty() ? "" : "; ", name,
                                     problem->name, problem->evidence);
      const auto *a = point.find(c.a), *b = point.find(c.b);
      if (a && b && a->counts && b->counts && a->counted_at_point == b->counted_at_point)
        c.bytes_saved = loaded(*a->counts) - loaded(*b->counts);
      out.push_back(std::move(c));
    }
  return out;
}

bool Findings::qualified() const {
  if (points.empty()) return false;
  const auto fit = [](const MeasurementCase& c) { return c.why_not.empty(); };
  if (const auto primary = std::ranges::find(cases, true, &MeasurementCase::primary);
      primary != cases.end())
    return fit(*primary);
  if (!cases.empty()) return std::ranges::all_of(cases, fit); // the primary point was left out
  return std::ranges::all_of(points, [&](const PointResult& p) {
    return p.baseline.qualified(gpu) &&
           std::ranges::all_of(p.candidates, [&](const Variant& v) { return v.qualified(gpu); });
  });
}

Json to_json(const PointResult& p, bool gpu) {
  Json candidates = Json::array();
  for (const auto& v : p.candidates) candidates.push_back(to_json(v, gpu));
  return {{"name", p.name},
          {"primary", p.primary},
          {"inputs", p.inputs},
          {"interpreted_at", p.interpreted},
          {"baseline", to_json(p.baseline, gpu)},
          {"candidates", candidates}};
}

Json to_json(const QualificationSpec& spec, const Findings& findings) {
  Json points = Json::array(), cases = Json::array();
  for (const auto& p : findings.points) points.push_back(to_json(p, findings.gpu));
  for (const auto& c : findings.cases) {
    Json row{{"point", c.point}, {"a", c.a}, {"b", c.b}, {"primary", c.primary}};
    row["eligible"] = c.why_not.empty();
    row["why_not"] = c.why_not;
    row["bytes_saved"] = c.bytes_saved ? Json(*c.bytes_saved) : Json(nullptr);
    cases.push_back(std::move(row));
  }
  return {{"schema", "hebe.qualification.kernel/1"},
          {"name", spec.name},
          {"spec", spec.json},
          {"provenance", findings.gpu ? "gpu" : "simulated"},
          {"energy_labels", "none: nothing was measured"},
          {"points", points},
          {"measurement_cases",
           {{"rule", "a point may be measured where every check of both kernels passed; chosen "
                     "before any energy was known"},
            {"cases", cases}}},
          {"qualified", findings.qualified()}};
}

} // namespace hebe::qualify
