#include "campaign/campaign_spec.hpp"

#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "core/spec_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostJobs = 100'000;

// The job's own members over the defaults; objects are merged one level deep.
Json merged(const Json& defaults, const Json& own) {
  Json out = defaults;
  for (const auto& [key, value] : own.items()) {
    if (value.is_object() && out.contains(key))
      out[key].update(value);
    else
      out[key] = value;
  }
  return out;
}

std::string seed_text(const Json& seed) {
  return seed.is_string() ? seed.get<std::string>() : seed.dump();
}

Result<std::uint64_t> seed_from(const Json& seed, const std::string& where) {
  const auto text = seed_text(seed);
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec == std::errc{} && end == text.data() + text.size()) return value;
  return refuse(RefusalCode::bad_spec, "seed " + text + " is not within 0 and 2^64 - 1", {}, where);
}

Result<JobSpec> job_from(const Json& j, const CaseResolver& resolve, const fs::path& base) {
  JobSpec job;
  job.kind = j.value("kind", "aa");
  HEBE_TRY(job.tier, measure::tier_named(j.value("tier", "confirmation-v1")));
  // As wide as JSON has it: a number that wraps around would pass the tier's limits.
  job.pairs = static_cast<int>(std::clamp<std::int64_t>(
      j.value("pairs", std::int64_t{job.tier.min_pairs}), -1, std::numeric_limits<int>::max()));
  job.window = Seconds(j.value("window_s", job.tier.min_window.value()));
  job.warm_up = Seconds(j.value("warm_up_s", job.tier.min_warm_up.value()));
  job.margins.energy_percent = j.value("energy_margin_percent", job.margins.energy_percent);
  job.margins.latency_percent = j.value("latency_margin_percent", job.margins.latency_percent);
  HEBE_TRY(job.subject, resolve(j.value("case", "vector-add"), base));
  job.subject.parameters = j.value("parameters", Json::object());
  job.subject.options = j.value("options", Json::object());
  // Arm B: what is not said of it is as in arm A.
  const bool two = job.kind != "aa";
  for (const char* name : {"case_b", "parameters_b", "options_b"})
    if (!two && j.contains(name))
      return refuse(RefusalCode::bad_spec,
                    std::string(name) + " is of arm B, which kind aa has not",
                    "say kind = \"ab\", or leave it out");
  if (two) {
    auto b = job.subject;
    if (j.contains("case_b")) {
      HEBE_TRY(b, resolve(j.at("case_b"), base));
      b.options = job.subject.options; // another case has its own parameters
    }
    b.parameters.update(j.value("parameters_b", Json::object()));
    b.options.update(j.value("options_b", Json::object()));
    job.subject_b = std::move(b);
  }
  HEBE_TRY(const auto plan, drafted(job)); // within the tier's limits?
  return job;
}

} // namespace

std::uint64_t seed_for(const std::string& campaign_seed, const std::string& job) {
  const auto hex = sha256_hex("hebe.campaign.seed/1\n" + campaign_seed + "\n" + job);
  return std::stoull(hex.substr(0, 16), nullptr, 16);
}

Result<CampaignSpec> read_campaign_spec(const fs::path& file, const CaseResolver& resolve) {
  HEBE_TRY(const auto json, read_spec_file(file));
  if (auto ok = check_schema(json, "hebe.campaign.spec/1", file.string()); !ok) {
    ok.error().code = RefusalCode::bad_spec;
    return std::unexpected(std::move(ok).error());
  }
  const auto base = fs::absolute(file).parent_path();
  const auto defaults = json.value("defaults", Json::object());
  CampaignSpec spec;
  spec.name = json.at("name");
  spec.study = json.value("session", "free") == "study";
  std::set<std::string> ids;
  const auto& jobs = json.at("jobs");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto wanted = merged(defaults, jobs[i]);
    const auto id = wanted.at("id").get<std::string>();
    const auto where = fmt::format("{}: jobs[{}] \"{}\"", file.string(), i, id);
    CampaignJobSpec row{id, {}, wanted.value("plan", "")};
    if (row.plan.empty()) {
      auto job = job_from(wanted, resolve, base);
      if (!job) {
        job.error().where = where;
        return std::unexpected(std::move(job).error());
      }
      row.job = std::move(*job);
    }
    const int replicates = wanted.value("replicates", 1);
    for (int r = 1; r <= replicates; ++r) {
      auto one = row;
      if (wanted.contains("replicates")) one.id = fmt::format("{}-{}", id, r);
      if (!ids.insert(one.id).second)
        return refuse(RefusalCode::bad_spec, "the job id \"" + one.id + "\" is there twice",
                      "give every job an id of its own", where);
      if (wanted.contains("seed") && replicates == 1) {
        HEBE_TRY(one.job.seed, seed_from(wanted.at("seed"), where));
      } else if (wanted.contains("seed") || json.contains("seed")) {
        one.job.seed = seed_for(
            seed_text(wanted.contains("seed") ? wanted.at("seed") : json.at("seed")), one.id);
      }
      spec.jobs.push_back(std::move(one));
      if (spec.jobs.size() > kMostJobs)
        return refuse(RefusalCode::bad_spec,
                      fmt::format("a campaign has at most {} jobs", kMostJobs),
                      "make several campaigns: docs/scale.md", file.string());
    }
  }
  return spec;
}

} // namespace hebe::campaign
