#include "campaign/kernel_recon.hpp"

#include "core/build_identity.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {
namespace {

/// Bytes that a program loads again and could keep, as the mechanism has them.
double reread_bytes(const Json& mechanism) {
  double sum = 0;
  if (!mechanism.is_object()) return 0;
  for (const auto& each : mechanism.at("opportunities"))
    if (each.at("kind") == "reread" && each.at("bytes_saved").is_number())
      sum += each.at("bytes_saved").get<double>();
  return sum;
}

bool not_there(const Refusal& refusal) {
  return refusal.code == RefusalCode::toolchain_unavailable;
}

qualify::Candidate candidate(std::string name, std::string why,
                             std::vector<rewrite::PassRequest> passes,
                             std::vector<std::string> fewer) {
  qualify::Candidate out;
  out.name = std::move(name);
  out.why = std::move(why);
  out.passes = std::move(passes);
  out.fewer_loads_of = std::move(fewer);
  out.distinct = {"ttgir", "llir", "ptx", "sass", "cubin"};
  return out;
}

} // namespace

std::vector<qualify::Candidate> candidates_for(const qualify::PointResult& point) {
  std::vector<qualify::Candidate> out;
  const auto& mechanism = point.baseline.mechanism;
  if (!mechanism.is_object()) return out;
  std::vector<std::string> arguments; // of which bytes are loaded again
  std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> lists;
  for (const auto& each : mechanism.at("opportunities")) {
    if (each.at("kind") != "reread" || each.at("passes").empty()) continue;
    const auto argument = each.at("argument").get<std::string>();
    const auto passes = each.at("passes").get<std::vector<std::string>>();
    if (std::ranges::find(arguments, argument) == arguments.end()) arguments.push_back(argument);
    const auto known = std::ranges::find(
        lists, passes, &std::pair<std::vector<std::string>, std::vector<std::string>>::first);
    if (known == lists.end())
      lists.push_back({passes, {argument}});
    else
      known->second.push_back(argument);
  }
  for (const auto& [passes, of] : lists) {
    std::vector<rewrite::PassRequest> requests;
    std::string name;
    for (const auto& pass : passes) {
      rewrite::PassRequest request{pass, Json::object()};
      if (pass == "reuse-loads" || pass == "stage-shared" || pass == "hoist-loads")
        request.options["arguments"] = of;
      requests.push_back(std::move(request));
      name += (name.empty() ? "" : "+") + pass;
    }
    requests.push_back({"remove-dead", Json::object()});
    out.push_back(candidate(name, "the passes that the re-read bytes ask for", requests, of));
  }
  if (!arguments.empty() &&
      std::ranges::none_of(out, [](auto& c) { return c.name == "hoist-loads"; }))
    out.push_back(candidate(
        "hoist-loads", "loops kept, equal loads made one in the entry block",
        {{"hoist-loads", {{"arguments", arguments}}}, {"remove-dead", Json::object()}}, arguments));
  return out;
}

Result<Recon> recon_kernels(const evidence::DataRoot& root, const ReconRequest& request,
                            const KernelCallbacks& callbacks) {
  HEBE_TRY(auto session, KernelSession::open(root, request, callbacks, "recon"));
  Recon out;
  out.all_right = true;
  Json cases = Json::array();
  std::int64_t absent = 0, refused = 0, right = 0, with_rereads = 0, tried = 0, qualified = 0;
  double bytes = 0;
  for (const auto& row : request.spec.cases) {
    if (!request.groups.empty() && !request.groups.contains(row.group)) continue;
    Json entry{
        {"name", row.point.name}, {"group", row.group}, {"refused", nullptr}, {"point", nullptr}};
    const auto found = session->qualify(
        row.point,
        [&](const qualify::PointResult& point) {
          return request.spec.candidates ? candidates_for(point)
                                         : std::vector<qualify::Candidate>{};
        },
        request.spec.launches);
    if (!found) {
      const auto& why = found.error();
      if (why.code == RefusalCode::interrupted || why.code == RefusalCode::no_space ||
          why.code == RefusalCode::no_permission || why.code == RefusalCode::worker_failed ||
          why.code == RefusalCode::lease_lost)
        return std::unexpected(why);
      ++(not_there(why) ? absent : refused);
      out.all_right = out.all_right && not_there(why);
      entry["refused"] = {{"code", name_of(why.code)}, {"what", why.what}, {"where", why.where}};
    } else {
      const bool fit = found->baseline.qualified(session->gpu());
      right += fit;
      out.all_right = out.all_right && fit;
      const double again = reread_bytes(found->baseline.mechanism);
      with_rereads += again > 0;
      bytes += again;
      for (const auto& v : found->candidates) {
        ++tried;
        qualified += v.qualified(session->gpu());
      }
      entry["point"] = qualify::to_json(*found, session->gpu());
    }
    cases.push_back(std::move(entry));
  }
  const auto count = static_cast<std::int64_t>(cases.size());
  out.record = {{"schema", "hebe.recon/1"},
                {"name", request.spec.name},
                {"spec", request.spec.json},
                {"provenance", session->gpu() ? "gpu" : "simulated"},
                {"when", session->when()},
                {"hebe_version", fmt::format("{} ({})", kVersion, kGit)},
                {"environment", session->environment()},
                {"energy_labels", "none: nothing was measured"},
                {"cases", std::move(cases)},
                {"summary",
                 {{"cases", count},
                  {"not_there", absent},
                  {"refused", refused},
                  {"right", right},
                  {"with_rereads", with_rereads},
                  {"reread_bytes", bytes},
                  {"candidates", tried},
                  {"candidates_qualified", qualified}}}};
  session->redact_board(out.record);
  return out;
}

} // namespace hebe::campaign
