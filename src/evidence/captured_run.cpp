#include "evidence/captured_run.hpp"

#include "core/crash_point.hpp"
#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/telemetry.hpp"
#include "evidence/verify.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLockName = "lock";
constexpr std::string_view kSamplesHeader = "t_mono_ns,t_source_us,power_raw_mw\n";

std::string samples_csv(std::span<const meter::AlignedSample> samples) {
  std::string text(kSamplesHeader);
  for (const auto& s : samples)
    fmt::format_to(std::back_inserter(text), "{},{},{}\n", s.t_mono_ns, s.t_source_us, s.raw_mw);
  return text;
}

Result<std::vector<meter::AlignedSample>> samples_from(std::string_view text,
                                                       const std::string& where) {
  const auto bad = [&](std::size_t line) {
    return refuse(RefusalCode::bad_schema, "required three integers", {},
                  fmt::format("{}:{}", where, line));
  };
  if (!text.starts_with(kSamplesHeader)) return bad(1);
  text.remove_prefix(kSamplesHeader.size());
  std::vector<meter::AlignedSample> out;
  for (std::size_t number = 2; !text.empty(); ++number) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return bad(number);
    const char* at = text.data();
    const char* const stop = at + end;
    std::int64_t values[3]{};
    for (int i = 0; i < 3; ++i) {
      const auto parsed = std::from_chars(at, stop, values[i]);
      const bool separated = i == 2 ? parsed.ptr == stop : parsed.ptr != stop && *parsed.ptr == ',';
      if (parsed.ec != std::errc{} || !separated) return bad(number);
      at = parsed.ptr + 1;
    }
    out.push_back({values[0], values[1], values[2]});
    text.remove_prefix(end + 1);
  }
  return out;
}

// The captured files, each checked against the record.
Result<std::map<std::string, std::string>> files_of(const fs::path& captured, const Json& record) {
  std::map<std::string, std::string> out;
  for (const auto& f : record.at("files")) {
    const auto name = f.at("path").get<std::string>();
    HEBE_TRY(auto bytes, read_file(captured / name));
    if (const auto found = sha256_hex(bytes); found != f.at("sha256"))
      return refuse(
          RefusalCode::digest_mismatch,
          fmt::format("required sha256 {}, found {}", f.at("sha256").get<std::string>(), found),
          "restore it from a copy, or delete the directory and measure again",
          (captured / name).string());
    out[name] = std::move(bytes);
  }
  for (const char* needed :
       {"plan.json", "environment.json", "windows.jsonl", "analysis.json", "samples.csv"})
    if (!out.contains(needed))
      return refuse(RefusalCode::bad_schema, fmt::format("it does not list {}", needed), {},
                    (captured / "capture.json").string());
  return out;
}

Result<std::string> compacted(const std::map<std::string, std::string>& files,
                              const fs::path& captured) {
  const auto where = (captured / "windows.jsonl").string();
  std::optional<measure::Acquisition> acquisition;
  std::vector<measure::Window> windows;
  std::string_view rest = files.at("windows.jsonl");
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = rest.find('\n');
    const auto here = fmt::format("{}:{}", where, number);
    HEBE_TRY(const auto line, parse_json(rest.substr(0, end), here));
    if (!acquisition) {
      HEBE_TRY(acquisition, measure::acquisition_from(line, here));
    } else {
      HEBE_TRY(auto window, measure::window_from(line, here));
      windows.push_back(std::move(window));
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (!acquisition) return refuse(RefusalCode::bad_schema, "the file is empty", {}, where);
  HEBE_TRY(const auto samples,
           samples_from(files.at("samples.csv"), (captured / "samples.csv").string()));
  HEBE_TRY(auto parquet, telemetry_parquet(samples, windows, *acquisition));
  HEBE_CHECK(telemetry_agrees(parquet, samples, windows, *acquisition, "telemetry.parquet"));
  return parquet;
}

// One process at a time seals a capture: the orphan of a killed run and the one that resumes may
// meet.
Result<FileDescriptor> take_turn(const fs::path& captured) {
  // A writable file of its own: over NFS an exclusive lock needs one.
  const auto path = captured / kLockName;
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd && errno != ENOENT) return std::unexpected(io_refusal(errno, "open", path));
  while (fd && ::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return std::unexpected(io_refusal(errno, "lock", path));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_nlink == 0)
    return refuse(RefusalCode::not_found, "there is no such captured measurement (any more)",
                  "if another process sealed it, it is among the runs", captured.string());
  return fd;
}

Status verified(const fs::path& directory) {
  HEBE_TRY(auto report, verify_run(directory));
  if (!report.valid()) return std::unexpected(std::move(report.problems.front()));
  return {};
}

} // namespace

Result<fs::path> capture_run(const DataRoot& root, const RunParts& parts, std::int64_t wall_us) {
  HEBE_TRY(auto files, text_files_of(parts));
  files.push_back({"samples.csv", samples_csv(parts.samples)});
  Json record{{"schema", "hebe.run.capture/1"},
              {"kind", parts.plan.kind},
              {"plan_id", parts.plan_id},
              {"provenance", name_of(parts.acquisition.provenance)},
              {"captured_wall_us", std::to_string(wall_us)},
              {"files", file_list(files)}};
  if (parts.campaign) record["campaign"] = to_json(*parts.campaign);
  HEBE_TRY(auto text, canonical_json(record));
  text += "\n";
  const auto name = fmt::format("{}-{}-{}", utc_stamp("%Y%m%dT%H%M%SZ", wall_us), parts.plan.kind,
                                sha256_hex(text).substr(0, kSealDigitsInName));
  files.push_back({"capture.json", std::move(text)});

  const auto day = day_folder(root, wall_us);
  const auto directory = day / fmt::format("{}{}", kCapturedPrefix, name);
  const auto temporary = day / fmt::format("{}{}-{}", kUnsealedPrefix, ::getpid(), name);
  const auto write_all = [&]() -> Status {
    HEBE_CHECK(check_inside(root.path(), day));
    crash_point("capture: make the directory");
    HEBE_CHECK(make_directories(temporary));
    for (const auto& f : files) {
      crash_point("capture: write " + f.name);
      HEBE_CHECK(write_new_file(temporary / f.name, f.bytes));
    }
    HEBE_CHECK(sync_directory(temporary));
    crash_point("capture: rename");
    std::error_code ec;
    fs::rename(temporary, directory, ec);
    if (ec) return std::unexpected(io_refusal(ec.value(), "rename", directory));
    crash_point("capture: sync");
    return sync_directory(day);
  };
  if (auto written = write_all(); !written) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    return std::unexpected(std::move(written).error());
  }
  return directory;
}

Result<Json> capture_record(const fs::path& captured) {
  const auto path = captured / "capture.json";
  HEBE_TRY(const auto text, read_file(path));
  if (const auto digits = sha256_hex(text).substr(0, kSealDigitsInName);
      !captured.filename().string().ends_with("-" + digits))
    return refuse(RefusalCode::digest_mismatch,
                  fmt::format("the record's digest begins with {}, the directory is named {}",
                              digits, captured.filename().string()),
                  "restore it from a copy, or delete the directory and measure again",
                  path.string());
  HEBE_TRY(auto record, parse_json(text, path.string()));
  HEBE_CHECK(check_schema(record, "hebe.run.capture/1", path.string()));
  return record;
}

Result<bool> sealed_from(const DataRoot& root, const fs::path& captured, const fs::path& run) {
  HEBE_CHECK(check_inside(root.path(), run));
  HEBE_TRY(const auto record, capture_record(captured));
  HEBE_TRY(const auto text, read_file(run / "manifest.json"));
  HEBE_TRY(const auto manifest, parse_json(text, (run / "manifest.json").string()));
  std::map<std::string, Json> sealed;
  for (const auto& f : manifest.at("files")) sealed[f.at("path")] = f.at("sha256");
  for (const auto& f : record.at("files"))
    if (f.at("path") != "samples.csv" && sealed[f.at("path")] != f.at("sha256")) return false;
  return run.filename().string().starts_with(
      captured.filename().string().substr(kCapturedPrefix.size(), sizeof "20260921T141523Z" - 1));
}

Result<SealedRun> seal_captured(const DataRoot& root, const fs::path& captured) {
  HEBE_CHECK(check_inside(root.path(), captured));
  HEBE_TRY(const auto turn, take_turn(captured));
  HEBE_TRY(const auto record, capture_record(captured));
  HEBE_TRY(auto files, files_of(captured, record));
  crash_point("ingest: compact");
  HEBE_TRY(auto parquet, compacted(files, captured));
  std::int64_t wall_us = 0;
  const auto stamp = record.at("captured_wall_us").get<std::string>();
  std::from_chars(stamp.data(), stamp.data() + stamp.size(), wall_us);

  RunFiles run{record.at("kind"),
               record.at("plan_id"),
               record.at("provenance"),
               job_identity_in(record),
               {}};
  for (const char* name : {"plan.json", "environment.json", "windows.jsonl"})
    run.files.push_back({name, std::move(files.at(name))});
  run.files.push_back({"telemetry.parquet", std::move(parquet)});
  run.files.push_back({"analysis.json", std::move(files.at("analysis.json"))});
  auto sealed = seal_files(root, std::move(run), wall_us, verified);
  if (!sealed && sealed.error().code == RefusalCode::already_exists) {
    // Sealed before, by a process that died before it removed the raw samples.
    const fs::path directory = sealed.error().where;
    HEBE_CHECK(verified(directory));
    HEBE_TRY(const auto manifest, read_file(directory / "manifest.json"));
    sealed = SealedRun{directory, directory.filename().string(), sha256_hex(manifest), 0};
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator(directory, ec))
      sealed->bytes += entry.file_size(ec);
  }
  if (!sealed) return sealed;
  crash_point("ingest: remove the raw samples");
  // Gone at once for whoever looks, under a name that is never read; what a crash leaves of it is
  // listed as half written.
  const auto going = captured.parent_path() / fmt::format("{}{}-{}", kUnsealedPrefix, ::getpid(),
                                                          captured.filename().string().substr(1));
  std::error_code ec;
  fs::rename(captured, going, ec);
  fs::remove_all(ec ? captured : going, ec);
  return sealed;
}

} // namespace hebe::evidence
