#include "campaign/study_spec.hpp"

#include "campaign/positive_control.hpp"
#include "qualify/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

std::string slug(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c - 'A' + 'a');
    else
      out += plain ? c : '-';
  }
  return out;
}

// As hebe.campaign.plan/1 has it: it is the name of a file.
bool is_job_id(std::string_view id) {
  constexpr std::size_t kLongest = 81;
  return !id.empty() && id.size() <= kLongest && id.front() != '.' && id.front() != '_' &&
         id.front() != '-';
}

Result<JobSpec> protocol_from(const Json& j) {
  JobSpec job;
  HEBE_TRY(job.tier, measure::tier_named(j.value("tier", "confirmation-v1")));
  job.pairs = j.value("pairs", job.tier.min_pairs);
  job.window = Seconds(j.value("window_s", job.tier.min_window.value()));
  job.warm_up = Seconds(j.value("warm_up_s", job.tier.min_warm_up.value()));
  job.margins.energy_percent = j.value("energy_margin_percent", job.margins.energy_percent);
  job.margins.latency_percent = j.value("latency_margin_percent", job.margins.latency_percent);
  if (j.contains("seed")) job.seed = j.at("seed").get<std::uint64_t>();
  return job;
}

Result<kernel::CaseRequest> case_from(const Json& j, const CaseResolver& resolve,
                                      const fs::path& base) {
  HEBE_TRY(auto out, resolve(j.value("case", "traffic-control"), base));
  out.parameters = j.value("parameters", Json::object());
  out.options = j.value("options", Json::object());
  return out;
}

Status check_control(const StudyControl& c) {
  if (!std::isfinite(c.fraction) || c.fraction <= 0 || c.fraction > kMostFraction)
    return refuse(
        RefusalCode::bad_spec,
        fmt::format("control: a fraction of {} is no extra traffic", c.fraction),
        fmt::format("give a number above 0 and up to {}; 1 is as much again", kMostFraction));
  if (c.subject.parameters.contains("fraction"))
    return refuse(RefusalCode::bad_spec, "control: the case's fraction is what its arms differ in",
                  "say fraction beside parameters, not in them");
  return {};
}

} // namespace

std::string job_id_of(const StudySpec& spec, std::size_t contrast) {
  if (contrast == 0) return "primary";
  const auto& c = spec.contrasts[contrast];
  const auto same_a =
      std::ranges::all_of(spec.contrasts, [&](auto& each) { return each.a == c.a; });
  return slug(c.point) + "." + slug(c.b) + (same_a ? "" : "-against-" + slug(c.a));
}

Result<StudySpec> read_study_spec(const fs::path& file, const CaseResolver& resolve) {
  HEBE_TRY(auto json, qualify::read_checked_spec(file, "hebe.study.spec/1"));
  const auto in_file = [&](Refusal r) {
    r.code = r.code == RefusalCode::case_not_found ? r.code : RefusalCode::bad_spec;
    r.where = r.where.empty() || r.where.starts_with("--") ? file.string() : r.where;
    return std::unexpected(std::move(r));
  };
  StudySpec out;
  out.folder = fs::absolute(file).parent_path();
  out.name = json.at("name");
  out.description = json.value("description", "");
  out.qualification = json.at("qualification");
  auto protocol = protocol_from(json);
  if (!protocol) return in_file(protocol.error());
  out.protocol = std::move(*protocol);
  std::set<std::string> ids = {"aa", "control", "floor"};
  for (const auto& c : json.at("contrasts"))
    out.contrasts.push_back({c.at("point"), c.at("a"), c.at("b")});
  for (std::size_t i = 0; i < out.contrasts.size(); ++i) {
    const auto& c = out.contrasts[i];
    if (c.a == c.b)
      return in_file({RefusalCode::bad_spec,
                      fmt::format("contrasts[{}]: both arms are \"{}\"", i, c.a),
                      {},
                      "a contrast is of two kernels; the A/A job is made by itself",
                      {}});
    const auto same = [&](const QualifiedContrast& before) {
      return before.point == c.point &&
             ((before.a == c.a && before.b == c.b) || (before.a == c.b && before.b == c.a));
    };
    if (std::any_of(out.contrasts.begin(), out.contrasts.begin() + static_cast<std::ptrdiff_t>(i),
                    same))
      return in_file({RefusalCode::bad_spec,
                      fmt::format("contrasts[{}]: \"{}\" and \"{}\" at {} are there before", i, c.a,
                                  c.b, c.point),
                      {},
                      "list every contrast once, in one direction",
                      {}});
    const auto id = job_id_of(out, i);
    if (!is_job_id(id) || !ids.insert(id).second)
      return in_file({RefusalCode::bad_spec,
                      fmt::format("contrasts[{}]: its job would be called \"{}\", which {}", i, id,
                                  is_job_id(id) ? "another job is"
                                                : "is no name of at most 81 letters, digits, dots, "
                                                  "dashes and underscores"),
                      {},
                      "qualify under shorter or plainer names of points and candidates",
                      {}});
  }
  if (json.contains("control")) {
    auto subject = case_from(json.at("control"), resolve, out.folder);
    if (!subject) return in_file(subject.error());
    out.control = {std::move(*subject), json.at("control").value("fraction", 1.0)};
    if (auto ok = check_control(*out.control); !ok) return in_file(ok.error());
  }
  if (json.contains("floor")) {
    auto subject = case_from(json.at("floor"), resolve, out.folder);
    if (!subject) return in_file(subject.error());
    out.floor = std::move(*subject);
  }
  const auto simulated = json.value("simulated", Json::object());
  const auto faults = simulated.value("faults", Json::object());
  for (const auto& [job, list] : faults.items())
    for (const auto& text : list) {
      const auto fault = gpu::fault_from(text.get<std::string>());
      if (!fault) return in_file(fault.error());
      if (!ids.contains(job))
        return in_file({RefusalCode::bad_spec,
                        "simulated.faults: there is no job \"" + job + "\"",
                        {},
                        "jobs are aa, primary, the further contrasts', control, floor",
                        {}});
      out.faults[job].push_back(*fault);
    }
  out.json = std::move(json);
  return out;
}

} // namespace hebe::campaign
