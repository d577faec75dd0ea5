#include "sealed_copies.hpp"

#include "core/files.hpp"
#include "core/parallel.hpp"
#include "core/sha256.hpp"
#include "evidence/environment.hpp"
#include "evidence/sealed_run.hpp"
#include "evidence/telemetry.hpp"

#include "../tests/data/support/made_run.hpp"

#include <fmt/format.h>

#include <ctime>

#include <fcntl.h>
#include <unistd.h>

namespace hebe::bench {
namespace {
namespace fs = std::filesystem;

constexpr int kDifferentRuns = 4;
constexpr std::int64_t kFirst = 1'790'000'000; // seconds; September 2026
constexpr std::int64_t kDays = 30;

/// What all copies of one run have in common.
struct Original {
  evidence::RunParts parts;
  std::string windows, telemetry;
};

Result<Original> original(std::uint64_t seed) {
  test::SimGpu sim(seed);
  auto plan = test::smoke_plan(3, seed);
  plan.subject["launch"] = test::vector_launch();
  Original out;
  out.parts = test::made_run(plan);
  auto facts = evidence::host_facts(true, {});
  facts.push_back(known("run.started", "2026-09-21T14:13:20Z", "wall clock"));
  for (auto& f : evidence::device_facts(sim.device.info())) facts.push_back(std::move(f));
  for (auto& f : evidence::meter_facts(sim.meter)) facts.push_back(std::move(f));
  out.parts.environment = evidence::environment_json(facts);
  HEBE_TRY(out.windows, evidence::windows_jsonl(out.parts.acquisition, out.parts.windows));
  HEBE_TRY(out.telemetry, evidence::telemetry_parquet(out.parts.samples, out.parts.windows,
                                                      out.parts.acquisition));
  return out;
}

/// As write_new_file, without the sync.
Status write_unsynced(const fs::path& path, std::string_view bytes) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!fd || ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return std::unexpected(io_refusal(errno, "write", path));
  return {};
}

std::string stamp(const char* format, std::int64_t seconds) {
  const std::time_t t = seconds;
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[32];
  text[std::strftime(text, sizeof text, format, &parts)] = '\0';
  return text;
}

/// A copy whose plan is its own: another label, so another id, analysis and seal.
Status seal_copy(const evidence::DataRoot& root, const Original& o, const CopiesRequest& request,
                 std::size_t index) {
  auto plan = o.parts.plan;
  plan.subject["label"] = index;
  const auto plan_json = measure::to_json(plan);
  HEBE_TRY(const auto plan_id, content_id(plan_json));
  HEBE_TRY(const auto analysis,
           measure::analyse(plan, plan_id, o.parts.acquisition, o.parts.windows));
  std::vector<std::pair<std::string, std::string>> files;
  const auto add_json = [&](const char* name, const Json& json) -> Status {
    HEBE_TRY(auto text, canonical_json(json));
    files.emplace_back(name, text + "\n");
    return {};
  };
  HEBE_CHECK(add_json("plan.json", plan_json));
  HEBE_CHECK(add_json("environment.json", o.parts.environment));
  files.emplace_back("windows.jsonl", o.windows);
  files.emplace_back("telemetry.parquet", o.telemetry);
  HEBE_CHECK(add_json("analysis.json", analysis.json));
  Json manifest{{"schema", "hebe.run.manifest/1"},
                {"plan_id", plan_id},
                {"provenance", name_of(o.parts.acquisition.provenance)},
                {"files", Json::array()}};
  if (!request.campaign.empty())
    manifest["campaign"] = {{"id", request.campaign}, {"job", fmt::format("job-{:06}", index)}};
  for (const auto& [name, bytes] : files)
    manifest["files"].push_back(
        {{"path", name}, {"bytes", bytes.size()}, {"sha256", sha256_hex(bytes)}});
  HEBE_CHECK(add_json("manifest.json", manifest));

  const auto when = kFirst + static_cast<std::int64_t>(index) * kDays * 86'400 /
                                 static_cast<std::int64_t>(request.runs);
  const auto day = root.runs() / stamp("%Y", when) / stamp("%m", when) / stamp("%d", when);
  const auto seal = sha256_hex(files.back().second);
  const auto id = fmt::format("{}-{}-{}", stamp("%Y%m%dT%H%M%SZ", when), plan.kind,
                              seal.substr(0, evidence::kSealDigitsInName));
  const auto temporary = day / (std::string(evidence::kUnsealedPrefix) + id);
  HEBE_CHECK(make_directories(temporary));
  for (const auto& [name, bytes] : files) HEBE_CHECK(write_unsynced(temporary / name, bytes));
  std::error_code ec;
  fs::rename(temporary, day / id, ec);
  if (ec) return std::unexpected(io_refusal(ec.value(), "rename", day / id));
  return {};
}

} // namespace

Status make_sealed_copies(const evidence::DataRoot& root, const CopiesRequest& request) {
  HEBE_CHECK(root.initialise());
  std::vector<Original> originals;
  for (int i = 0; i < kDifferentRuns; ++i) {
    HEBE_TRY(auto one, original(static_cast<std::uint64_t>(i + 1)));
    originals.push_back(std::move(one));
  }
  return for_each_index(request.runs, request.threads, [&](std::size_t i) {
    return seal_copy(root, originals[i % originals.size()], request, i);
  });
}

} // namespace hebe::bench
