#include "qualify/qualified_pair.hpp"

#include "qualify/mechanism_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace hebe::qualify {
namespace {

const std::string& text(const Json& from, const char* member) {
  return from.at(member).get_ref<const std::string&>();
}

std::string listed(const std::vector<const Json*>& rows) {
  std::string out;
  for (const auto* row : rows)
    out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", text(*row, "name"));
  return out;
}

std::vector<const Json*> points_of(const Json& record) {
  std::vector<const Json*> out;
  for (const auto& each : record.at("points")) out.push_back(&each);
  return out;
}

std::vector<const Json*> kernels_of(const Json& point) {
  std::vector<const Json*> out = {&point.at("baseline")};
  for (const auto& each : point.at("candidates")) out.push_back(&each);
  return out;
}

Result<const Json*> named(const std::vector<const Json*>& rows, const std::string& name,
                          const std::string& what, const std::string& where) {
  const auto found =
      std::ranges::find_if(rows, [&](const Json* row) { return text(*row, "name") == name; });
  if (found != rows.end()) return *found;
  return refuse(RefusalCode::bad_spec, fmt::format("there is no {} \"{}\"", what, name),
                "it has " + listed(rows), where);
}

/// Every check that keeps a kernel from being measured; those of a GPU only where there was one.
std::string problems_of(const Json& kernel, bool gpu) {
  std::string out;
  const auto add = [&](const std::string& problem) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", text(kernel, "name"), problem);
  };
  if (kernel.at("artifacts").is_null() || kernel.at("launch").is_null()) add("it was not built");
  if (kernel.at("checks").empty()) add("nothing of it was checked");
  for (const auto& check : kernel.at("checks")) {
    if (text(check, "outcome") == "passed" || (!gpu && text(check, "by") == "GPU")) continue;
    add(fmt::format("{} ({}) {}: {}", text(check, "name"), text(check, "by"),
                    text(check, "outcome") == "failed" ? "failed" : "was not run",
                    text(check, "evidence")));
  }
  if (out.empty() && !kernel.at("qualified").get<bool>()) add("the record calls it not qualified");
  return out;
}

// Equal as seen by someone, and by nobody otherwise: interpreter and GPU may differ in the last
// bit.
bool writes_baselines_bits(const Json& kernel, bool baseline) {
  if (baseline) return true;
  bool seen = false;
  for (const auto& check : kernel.at("checks")) {
    if (check.at("name") != "bits_equal" || check.at("outcome") == "not_run") continue;
    if (check.at("outcome") != "passed" || text(check, "evidence").starts_with("not demanded"))
      return false;
    seen = true;
  }
  return seen;
}

Status eligible(const Json& record, const QualifiedPair& pair, const std::string& where) {
  for (const auto& each : record.at("measurement_cases").at("cases")) {
    if (each.at("point") != pair.point || each.at("a") != pair.a || each.at("b") != pair.b)
      continue;
    if (!each.at("eligible").get<bool>())
      return refuse(RefusalCode::not_qualified,
                    fmt::format("{} against {} at {} may not be measured: {}", pair.b, pair.a,
                                pair.point, text(each, "why_not")),
                    "take a case that the record calls eligible", where);
  }
  if (!record.at("qualified").get<bool>())
    return refuse(RefusalCode::not_qualified, "the qualification as a whole did not pass",
                  "see `hebe qualify`: its primary case must be eligible", where);
  return {};
}

Result<QualifiedKernel> kernel_from(const Json& point, const Json& kernel,
                                    const std::string& where) {
  QualifiedKernel out;
  out.variant = text(kernel, "name");
  out.baseline = &kernel == &point.at("baseline");
  HEBE_TRY(out.launch, kernel::LaunchSpec::from_json(kernel.at("launch"),
                                                     fmt::format("{}, {}", where, out.variant)));
  out.artifacts = kernel.at("artifacts");
  out.compile = kernel.at("compile");
  out.resources = kernel.at("resources");
  out.mechanism = mechanism_summary(point, kernel, out.launch);
  return out;
}

} // namespace

Result<QualifiedPair> qualified_pair(const Json& record, const std::string& point_name,
                                     const std::string& a, const std::string& b,
                                     const std::string& where) {
  try {
    HEBE_TRY(const auto* point, named(points_of(record), point_name, "point", where));
    const auto kernels = kernels_of(*point);
    HEBE_TRY(const auto* first, named(kernels, a, "kernel", where + ", " + point_name));
    HEBE_TRY(const auto* second, named(kernels, b, "kernel", where + ", " + point_name));
    const bool gpu = record.at("provenance") == "gpu", same = a == b;
    auto problems = problems_of(*first, gpu);
    if (const auto more = same ? std::string() : problems_of(*second, gpu); !more.empty())
      problems += (problems.empty() ? "" : "; ") + more;
    if (!problems.empty())
      return refuse(RefusalCode::not_qualified, "not qualified at " + point_name + ": " + problems,
                    "measure kernels whose every check passed", where);
    QualifiedPair out;
    out.point = point_name;
    out.a = a;
    out.b = b;
    if (!same) HEBE_CHECK(eligible(record, out, where));
    HEBE_TRY(out.arm_a, kernel_from(*point, *first, where));
    HEBE_TRY(out.arm_b, kernel_from(*point, *second, where));
    out.inputs = point->at("inputs");
    // One kernel against itself: that it repeats its own bits is one of its checks.
    out.equal_bits = same || (writes_baselines_bits(*first, out.arm_a.baseline) &&
                              writes_baselines_bits(*second, out.arm_b.baseline));
    return out;
  } catch (const Json::exception& e) { // a member that the schema does not ask for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), "restore the record from a copy", where);
  }
}

} // namespace hebe::qualify
