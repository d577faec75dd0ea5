#include "evidence/qualified_arms.hpp"

#include "evidence/content_record.hpp"
#include "evidence/verify.hpp"

#include <fmt/format.h>

#include <set>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

std::string digest_of(const Json& artifacts, const std::string& kind) {
  return artifacts.is_object() && artifacts.contains(kind) ? artifacts.at(kind).get<std::string>()
                                                           : "none";
}

/// How an arm differs from the kernel that it is said to be; empty: it does not.
std::string difference(const measure::Plan& plan, int arm, const Json& kernel) {
  const auto& subject = measure::subject_of(plan, arm);
  const auto& ours = subject.at("artifacts");
  const auto& qualified = kernel.at("artifacts");
  if (const auto& cubin = plan.cubins[static_cast<std::size_t>(arm)];
      cubin != digest_of(qualified, "cubin"))
    return fmt::format("the measured cubin is {}, the qualified one {}", cubin,
                       digest_of(qualified, "cubin"));
  std::set<std::string> kinds;
  for (const auto* artifacts : {&ours, &qualified})
    if (artifacts->is_object())
      for (const auto& [kind, digest] : artifacts->items()) kinds.insert(kind);
  for (const auto& kind : kinds)
    if (digest_of(ours, kind) != digest_of(qualified, kind))
      return fmt::format("its {} is {}, the qualified one {}", kind, digest_of(ours, kind),
                         digest_of(qualified, kind));
  if (subject.value("launch", Json()) != kernel.at("launch"))
    return "its launch is not the qualified one: " +
           first_difference(kernel.at("launch"), subject.value("launch", Json()), "launch");
  return kernel.at("qualified").get<bool>() ? "" : "the record does not call it qualified";
}

} // namespace

fs::path kernel_qualifications(const DataRoot& root) {
  return root.path() / "qualifications" / "kernel";
}

fs::path kernel_qualification_file(const DataRoot& root, const std::string& id) {
  return kernel_qualifications(root) / (id + ".json");
}

const Json* qualified_kernel(const Json& record, const Json& point, const Json& variant) {
  for (const auto& p : record.at("points")) {
    if (p.at("name") != point) continue;
    if (p.at("baseline").at("name") == variant) return &p.at("baseline");
    for (const auto& candidate : p.at("candidates"))
      if (candidate.at("name") == variant) return &candidate;
  }
  return nullptr;
}

Json qualified_artifacts(const Json& record, const std::string& point, const std::string& variant) {
  const auto* kernel = qualified_kernel(record, point, variant);
  return kernel == nullptr ? Json() : kernel->at("artifacts");
}

Result<bool> check_qualified_arms(const DataRoot& root, const measure::Plan& plan,
                                  const std::string& where) {
  const auto& says = plan.qualification;
  const auto id = says.at("record").get<std::string>();
  const auto file = kernel_qualification_file(root, id);
  if (std::error_code ec; !fs::exists(file, ec)) return false;
  HEBE_TRY(const auto stored, load_record(file, kKernelQualification));
  const auto wrong = [&](const std::string& what) {
    return refuse(RefusalCode::analysis_mismatch, "qualification " + id + ": " + what,
                  "restore the run and the record from copies", where);
  };
  for (const char* member : {"name", "provenance"})
    if (says.at(member) != stored.json.at(member))
      return wrong(fmt::format("its {} is {}, the plan says {}", member,
                               stored.json.at(member).dump(), says.at(member).dump()));
  const auto point = says.at("point").get<std::string>();
  for (const int arm : {0, 1}) {
    const auto variant = says.at(arm == 0 ? "a" : "b").get<std::string>();
    const auto* kernel = qualified_kernel(stored.json, point, variant);
    if (kernel == nullptr)
      return wrong(fmt::format("it has no kernel \"{}\" at \"{}\"", variant, point));
    if (const auto how = difference(plan, arm, *kernel); !how.empty())
      return wrong(fmt::format("arm {} is not \"{}\" at \"{}\": {}", arm == 0 ? "A" : "B", variant,
                               point, how));
  }
  return true;
}

} // namespace hebe::evidence
