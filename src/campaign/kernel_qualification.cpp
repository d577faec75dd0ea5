#include "campaign/kernel_qualification.hpp"

#include "core/build_identity.hpp"

#include <fmt/format.h>

namespace hebe::campaign {

Result<Qualified> qualify_kernels(const evidence::DataRoot& root, const QualifyRequest& request,
                                  const KernelCallbacks& callbacks) {
  const auto& spec = request.spec;
  HEBE_TRY(auto session, KernelSession::open(root, request, callbacks, "qualify " + spec.name));
  Qualified out;
  out.findings.gpu = session->gpu();
  for (const auto& point : spec.points) {
    if (!request.all_points && !point.primary) continue;
    HEBE_TRY(auto result, session->qualify(
                              point, [&](const auto&) { return spec.candidates; }, spec.launches));
    out.findings.points.push_back(std::move(result));
  }
  out.findings.cases = qualify::measurement_cases(spec, out.findings.points, out.findings.gpu);
  out.record = qualify::to_json(spec, out.findings);
  out.record["when"] = session->when();
  out.record["hebe_version"] = fmt::format("{} ({})", kVersion, kGit);
  out.record["environment"] = session->environment();
  session->redact_board(out.record);
  return out;
}

} // namespace hebe::campaign
