#include "campaign/qualified_arms.hpp"

#include "campaign/kernel_verification.hpp"
#include "core/files.hpp"
#include "core/sha256.hpp"
#include "qualify/qualified_pair.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {
namespace fs = std::filesystem;

Result<QualifiedArms> QualifiedArms::open(const evidence::DataRoot& root, const std::string& name,
                                          CaseLookup find_case) {
  if (name.empty()) { // the newest would be a choice that nobody made
    std::string known;
    for (const auto& id : evidence::record_ids(evidence::kernel_qualifications(root)))
      known += (known.empty() ? "" : ", ") + id.substr(0, 12);
    return refuse(RefusalCode::bad_argument, "no qualification was named",
                  known.empty() ? std::string("make one with `hebe qualify`")
                                : "give its file, or part of its id; here are: " + known,
                  "--qualification");
  }
  HEBE_TRY(auto stored,
           evidence::find_record(evidence::kernel_qualifications(root),
                                 evidence::kKernelQualification, name, "hebe qualify"));
  const auto where = stored.file.string();
  HEBE_CHECK(qualify::label_free(stored.json, where));
  if (stored.json.at("qualified") != true)
    return refuse(
        RefusalCode::not_qualified,
        fmt::format("qualification \"{}\" did not pass", stored.json.at("name").get<std::string>()),
        "`hebe qualify` says which check failed; measure what is qualified", where);
  HEBE_TRY(const auto report, verify_kernel_qualification(root, stored));
  if (!report.valid()) return std::unexpected(report.problems.front());
  return QualifiedArms(root, std::move(stored), std::move(find_case));
}

Status QualifiedArms::fit_for(bool simulated, int arch) const {
  const auto& json = stored_.json;
  if (!simulated && json.at("provenance") != "gpu")
    return refuse(RefusalCode::not_qualified,
                  "no GPU ran these kernels when they were qualified, and this one is real",
                  "qualify them here: `hebe qualify` on this machine", stored_.file.string());
  for (const auto& point : json.at("points")) {
    const auto& launch = point.at("baseline").at("launch");
    const int target = launch.is_null() ? arch : launch.at("target").at("arch").get<int>();
    if (target != arch)
      return refuse(
          RefusalCode::not_qualified,
          fmt::format("the kernels were qualified for sm_{}, this GPU is sm_{}", target, arch),
          "qualify them on such a GPU", stored_.file.string());
  }
  return {};
}

Status QualifiedArms::check(const QualifiedContrast& c) const {
  HEBE_TRY(const auto arms, compiled(c));
  return {};
}

// The case that a variant's launch and oracle come from: its own, or the subject.
Result<kernel::CaseRequest> QualifiedArms::case_of(const std::string& variant) const {
  const auto& spec = stored_.json.at("spec");
  std::string name = spec.at("subject").at("case");
  for (const auto& candidate : spec.at("candidates"))
    if (candidate.at("name") == variant && candidate.contains("case")) name = candidate.at("case");
  return find_case_(name);
}

// The oracle is the case's reference as it was when the kernel was qualified against it.
Status QualifiedArms::same_sources(const kernel::CaseRequest& request, const Json& compile,
                                   const Json& artifacts) const {
  const auto must_be = [&](const fs::path& file, const std::string& required) -> Status {
    HEBE_TRY(const auto found, sha256_of_file(file));
    if (found == required) return {};
    return refuse(RefusalCode::not_qualified,
                  fmt::format("the case is not what was qualified: required sha256 {}, found {}",
                              required, found),
                  "restore the file, or qualify the kernels again", file.string());
  };
  HEBE_CHECK(must_be(request.file, artifacts.at("source")));
  const auto helpers = compile.value("helpers", Json::object());
  for (const auto& [name, digest] : helpers.items())
    HEBE_CHECK(must_be(request.file.parent_path() / name, digest.get<std::string>()));
  return {};
}

Result<PreparedArms> QualifiedArms::compiled(const QualifiedContrast& c) const {
  const auto where = stored_.file.string();
  HEBE_TRY(const auto pair, qualify::qualified_pair(stored_.json, c.point, c.a, c.b, where));
  const auto arm = [&](const qualify::QualifiedKernel& kernel) -> Result<PreparedCase> {
    PreparedCase out;
    auto& compiled = out.compiled;
    HEBE_TRY(compiled.request, case_of(kernel.variant));
    HEBE_CHECK(same_sources(compiled.request, kernel.compile, kernel.artifacts));
    compiled.request.parameters = kernel.launch.json.value("parameters", Json::object());
    compiled.request.arch = kernel.launch.json.at("target").at("arch");
    compiled.launch = kernel.launch;
    compiled.provenance = kernel.compile;
    compiled.resources = kernel.resources;
    for (const auto& [kind, digest] : kernel.artifacts.items()) {
      compiled.artifacts[kind] = digest.get<std::string>();
      HEBE_TRY(auto bytes, store_.get(compiled.artifacts[kind]));
      if (kind == "ttgir") compiled.ttgir = bytes;
      if (kind == "cubin") compiled.cubin = std::move(bytes);
    }
    out.inputs = pair.inputs;
    out.mechanism = kernel.mechanism;
    return out;
  };
  PreparedArms out;
  HEBE_TRY(out.a, arm(pair.arm_a));
  if (c.a != c.b) {
    HEBE_TRY(out.b, arm(pair.arm_b));
  }
  out.qualification = {{"record", stored_.id},
                       {"name", name()},
                       {"provenance", stored_.json.at("provenance")},
                       {"point", c.point},
                       {"a", c.a},
                       {"b", c.b},
                       {"equal_bits", pair.equal_bits}};
  return out;
}

std::string QualifiedArms::oracle_key(const PreparedCase& arm) {
  const auto& r = arm.compiled.request;
  Json buffers = Json::array();
  for (const auto& a : arm.compiled.launch.json.at("arguments")) buffers.push_back(a);
  return Json{r.file.string(), r.function, r.parameters, buffers}.dump();
}

Result<PreparedArms> QualifiedArms::prepared(CasePreparer& preparer, const QualifiedContrast& c) {
  HEBE_TRY(auto arms, compiled(c));
  const auto complete = [&](PreparedCase& arm) -> Status {
    auto key = oracle_key(arm);
    auto hit = oracles_.find(key);
    if (hit == oracles_.end()) {
      HEBE_TRY(auto made, preparer.with_oracle(arm.compiled));
      made.compiled = {}; // only inputs and oracle are shared
      hit = oracles_.emplace(std::move(key), std::move(made)).first;
    }
    if (hit->second.inputs != arm.inputs)
      return refuse(RefusalCode::not_qualified,
                    fmt::format("inputs made here have digests {}, the qualified ones {}",
                                hit->second.inputs.dump(), arm.inputs.dump()),
                    "use the build of Hebe that qualified, or qualify again",
                    stored_.file.string());
    arm.expected = hit->second.expected;
    return {};
  };
  HEBE_CHECK(complete(arms.a));
  if (arms.b) HEBE_CHECK(complete(*arms.b));
  return arms;
}

Status QualifiedArms::keep(const evidence::DataRoot& root) const {
  HEBE_TRY(const auto kept,
           evidence::store_record(root, evidence::kernel_qualifications(root), stored_.json));
  return {};
}

} // namespace hebe::campaign
