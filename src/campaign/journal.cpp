#include "campaign/journal.hpp"

#include "core/crash_point.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/sealed_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::campaign {
namespace {

constexpr std::uint64_t kLargestJournal = 1ULL << 32;
constexpr std::size_t kLinkDigits = 32;                 // 128 bits of SHA-256: a line stays short
constexpr std::int64_t kClockTolerance_us = 10'000'000; // hosts of one cluster are never equal
constexpr std::array<std::pair<std::string_view, JobState>, 5> kStates = {{
    {"pending", JobState::pending},
    {"started", JobState::started},
    {"sealed", JobState::sealed},
    {"refused", JobState::refused},
    {"interrupted", JobState::interrupted},
}};

std::string link_of(const std::string& before, const std::string& line_without_link) {
  return sha256_hex(before + "\n" + line_without_link).substr(0, kLinkDigits);
}

std::unexpected<Refusal> gone(const std::filesystem::path& path) {
  return refuse(RefusalCode::digest_mismatch, "the journal is gone while the campaign is worked on",
                "restore it from a copy; or resume: the sealed runs are found again",
                path.string());
}

Status is_file(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return {};
  return refuse(RefusalCode::unsafe_path, "the journal is not a file", "remove what is there",
                path.string());
}

// Locks the journal for one append; held until it goes.
class Turn {
public:
  // A journal that had lines and is gone is not begun anew.
  static Result<Turn> take(const std::filesystem::path& path, bool may_create) {
    Turn turn;
    turn.fd = FileDescriptor(
        ::open(path.c_str(),
               O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (may_create ? O_CREAT : 0),
               0644));
    if (!turn.fd && errno == ENOENT) return gone(path);
    if (!turn.fd) return std::unexpected(io_refusal(errno, "open", path));
    HEBE_CHECK(is_file(turn.fd.get(), path));
    while (::flock(turn.fd.get(), LOCK_EX) != 0)
      if (errno != EINTR) return std::unexpected(io_refusal(errno, "lock", path));
    return turn;
  }
  [[nodiscard]] Result<std::uint64_t> size(const std::filesystem::path& path) const {
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return std::unexpected(io_refusal(errno, "stat", path));
    return static_cast<std::uint64_t>(info.st_size);
  }
  FileDescriptor fd;
};

Result<std::string> bytes_from(int fd, std::uint64_t offset, const std::filesystem::path& path) {
  std::string out;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const auto got =
        ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset + out.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(io_refusal(errno, "read", path));
    if (got == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

} // namespace

std::string_view name_of(JobState state) {
  for (const auto& [name, s] : kStates)
    if (s == state) return name;
  return "pending";
}

std::size_t CampaignState::count(JobState state) const {
  return static_cast<std::size_t>(
      std::count_if(jobs.begin(), jobs.end(), [&](auto& j) { return j.state == state; }));
}
std::size_t CampaignState::pending() const { return jobs.size() - count(JobState::sealed); }

std::string first_day_of(const FrozenCampaign& campaign, const CampaignState& state) {
  constexpr std::int64_t kDay_us = 24LL * 3600 * 1'000'000;
  struct stat info {};
  std::int64_t first_us = state.first_us;
  if (::stat((campaign.directory / "plan.json").c_str(), &info) == 0) {
    const auto frozen_us = static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000;
    first_us = first_us == 0 ? frozen_us : std::min(first_us, frozen_us);
  }
  return first_us < kDay_us ? std::string() : evidence::utc_stamp("%Y/%m/%d", first_us - kDay_us);
}

Result<Journal> Journal::open(const FrozenCampaign& campaign) {
  Journal j(campaign);
  j.path_ = campaign.directory / "state.jsonl";
  HEBE_CHECK(check_inside(campaign.directory, j.path_));
  for (std::size_t i = 0; i < campaign.jobs.size(); ++i) j.index_of_[campaign.jobs[i].id] = i;
  j.state_.jobs.resize(campaign.jobs.size());
  HEBE_CHECK(j.refresh());
  return j;
}

Result<CampaignState> Journal::glance(const FrozenCampaign& campaign) {
  Journal j(campaign);
  j.path_ = campaign.directory / "state.jsonl";
  for (std::size_t i = 0; i < campaign.jobs.size(); ++i) j.index_of_[campaign.jobs[i].id] = i;
  j.state_.jobs.resize(campaign.jobs.size());
  std::error_code ec;
  if (std::filesystem::exists(std::filesystem::symlink_status(j.path_, ec))) {
    HEBE_TRY(const auto file, read_record(j.path_, kLargestJournal));
    HEBE_CHECK(j.read_from(0, file.bytes, false));
  }
  return std::move(j.state_);
}

Status Journal::refresh() {
  const FileDescriptor fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ENOENT && whole_ == 0) return {};
  if (!fd && errno == ENOENT) return gone(path_);
  if (!fd) return std::unexpected(io_refusal(errno, "open", path_));
  HEBE_CHECK(is_file(fd.get(), path_));
  HEBE_TRY(const auto bytes, bytes_from(fd.get(), whole_, path_));
  return read_from(whole_, bytes, true);
}

Status Journal::read_from(std::uint64_t offset, std::string_view bytes, bool check) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    if (end == std::string_view::npos) return {}; // cut off by a crash: it never counted
    if (!check && glance_at(bytes.substr(0, end))) {
      ++state_.events;
      bytes.remove_prefix(end + 1);
      continue;
    }
    const auto where = fmt::format("{}:{}", path_.string(), state_.events + 1);
    const auto damaged = [&](std::string what) {
      return refuse(RefusalCode::digest_mismatch, std::move(what),
                    "restore the journal from a copy; the sealed runs themselves are not touched",
                    where);
    };
    auto event = check ? parse_json(bytes.substr(0, end), where)
                       : Result<Json>(Json::parse(bytes.substr(0, end), nullptr, false));
    if (!event || !event->is_object()) return damaged("the line is not the JSON that was written");
    if (check) {
      if (auto ok = check_schema(*event, "hebe.campaign.event/1", where); !ok)
        return damaged(ok.error().what);
      if (event->at("n") != state_.events)
        return damaged(
            fmt::format("required event {}, found {}", state_.events, event->at("n").dump()));
      const auto said = event->at("link").get<std::string>();
      HEBE_TRY(const auto whole_line, canonical_json(*event));
      if (whole_line != bytes.substr(0, end))
        return damaged("the line is not canonical JSON, as it was written");
      event->erase("link");
      HEBE_TRY(const auto canonical, canonical_json(*event));
      const auto expected = link_of(link_, canonical);
      if (said != expected)
        return damaged(fmt::format("required link {}, found {}: a line was changed, lost or "
                                   "inserted here",
                                   expected, said));
      link_ = expected;
    }
    try {
      HEBE_CHECK(apply(*event, where));
    } catch (const Json::exception& e) {
      return damaged(e.what());
    }
    ++state_.events;
    offset += end + 1;
    whole_ = offset;
    bytes.remove_prefix(end + 1);
  }
  return {};
}

// The two events that make up nearly all of a journal, read in place: queue-status is to be quick
// with tens of thousands of them. Canonical JSON has one spelling; anything else is parsed.
bool Journal::glance_at(std::string_view line) {
  const auto take = [&](std::string_view text) {
    if (!line.starts_with(text)) return false;
    line.remove_prefix(text.size());
    return true;
  };
  std::int64_t at_us = 0;
  if (state_.events == 0 || !take("{\"at_us\":")) return false;
  const auto [rest, ec] = std::from_chars(line.data(), line.data() + line.size(), at_us);
  line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
  if (ec != std::errc{} || !take(",\"event\":\"")) return false;
  const bool started = take("started\",\"job\":\"");
  if (!started) {
    if (!take("sealed\",\"exit\":") || line.empty()) return false;
    line.remove_prefix(1);
    if (!take(",\"job\":\"")) return false;
  }
  const auto hit = index_of_.find(line.substr(0, line.find('"')));
  if (hit == index_of_.end()) return false;
  auto& job = state_.jobs[hit->second];
  state_.last_us = std::max(state_.last_us, at_us);
  job.since_us = at_us;
  if (job.state == JobState::sealed) return true;
  job.state = started ? JobState::started : JobState::sealed;
  if (started) ++job.attempts;
  return true;
}

Status Journal::apply(const Json& e, const std::string& where) {
  const auto& kind = e.at("event").get_ref<const std::string&>();
  HEBE_TRY(const auto at_us, integer_from(e.at("at_us"), where));
  if (state_.first_us == 0) state_.first_us = at_us;
  // A clock that once stood ahead would block the campaign until then: a person may accept the
  // present one, and the journal says so.
  state_.last_us = e.value("clock_accepted", false) ? at_us : std::max(state_.last_us, at_us);
  if (kind == "submitted") {
    Submission s{e.at("engine"), {}, at_us};
    for (const auto& id : e.value("slurm_jobs", Json::array())) s.slurm_jobs.push_back(id);
    state_.submissions.push_back(std::move(s));
  } else if (kind == "session") {
    state_.sessions.push_back(e.at("identity"));
  } else if (kind == "finished") {
    state_.analysis = e.value("analysis", "");
    state_.ladder = e.value("ladder", "");
    state_.study = e.value("study", "");
  } else if (e.contains("job")) {
    const auto hit = index_of_.find(e.at("job").get<std::string>());
    if (hit == index_of_.end())
      return refuse(RefusalCode::bad_schema, "the plan has no job " + e.at("job").dump(), {},
                    where);
    auto& job = state_.jobs[hit->second];
    job.since_us = at_us;
    if (job.state == JobState::sealed) return {}; // whatever another process still had to say
    if (kind == "started") {
      job.state = JobState::started;
      ++job.attempts;
    } else if (kind == "sealed") {
      job.state = JobState::sealed;
      job.run = e.at("run");
      job.seal = e.at("seal");
      job.verdict = e.value("verdict", "");
      job.exit = e.value("exit", 0);
    } else if (kind == "refused") {
      job.state = JobState::refused;
      job.refusal = e.at("code");
      job.what = e.value("what", "");
    } else if (kind == "interrupted") {
      job.state = JobState::interrupted;
    }
  }
  return {};
}

Status Journal::append(Json event, std::int64_t wall_us) {
  HEBE_TRY(const auto turn, Turn::take(path_, whole_ == 0));
  HEBE_TRY(auto size, turn.size(path_));
  if (size < whole_)
    return refuse(
        RefusalCode::digest_mismatch,
        fmt::format("the journal became shorter: {} bytes were read, {} are there", whole_, size),
        "restore the journal from a copy", path_.string());
  HEBE_TRY(const auto news, bytes_from(turn.fd.get(), whole_, path_));
  HEBE_CHECK(read_from(whole_, news, true));
  if (wall_us < state_.last_us - kClockTolerance_us && !event.value("clock_accepted", false))
    return refuse(RefusalCode::clock_jump,
                  fmt::format("the wall clock stands {:.0f} s before the campaign's last event",
                              static_cast<double>(state_.last_us - wall_us) / 1e6),
                  "set the clock right (a time server), then resume; if it is right now and was "
                  "wrong then: `hebe resume --accept-clock`",
                  path_.string());
  if (size > whole_) { // a line that a crash cut off
    if (::ftruncate(turn.fd.get(), static_cast<off_t>(whole_)) != 0)
      return std::unexpected(io_refusal(errno, "truncate", path_));
    event["cut_off_bytes_before"] = size - whole_;
  }
  event["schema"] = "hebe.campaign.event/1";
  event["n"] = state_.events;
  event["at_us"] = json_integer(wall_us);
  HEBE_TRY(const auto without_link, canonical_json(event));
  const auto link = link_of(link_, without_link);
  auto whole = event;
  whole["link"] = link;
  HEBE_TRY(auto line, canonical_json(whole));
  line += '\n';
  crash_point("journal: write");
  const auto put = ::write(turn.fd.get(), line.data(), line.size());
  const int error = put < 0 ? errno : ENOSPC; // a short write: the disk is full
  if (put != static_cast<ssize_t>(line.size()) || ::fdatasync(turn.fd.get()) != 0) {
    [[maybe_unused]] const int back = ::ftruncate(turn.fd.get(), static_cast<off_t>(whole_));
    auto refusal =
        io_refusal(put == static_cast<ssize_t>(line.size()) ? errno : error, "write", path_);
    return std::unexpected(std::move(refusal));
  }
  crash_point("journal: written");
  return read_from(whole_, line, true);
}

namespace {
// Job n is byte n; the submission is far behind every job.
constexpr off_t kSubmissionByte = off_t{1} << 40;

bool set_lock(int fd, short type, off_t byte) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0;
}

Result<bool> try_byte(int fd, off_t byte) {
  if (set_lock(fd, F_WRLCK, byte)) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return std::unexpected(io_refusal(errno, "lock", "jobs.lock"));
}

bool byte_locked(int fd, off_t byte) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return ::fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}
} // namespace

Result<JobLocks> JobLocks::open(const FrozenCampaign& campaign) {
  const auto path = campaign.directory / "jobs.lock";
  HEBE_CHECK(check_inside(campaign.directory, path));
  JobLocks locks;
  locks.path_ = path;
  locks.fd_ = FileDescriptor(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  if (!locks.fd_) return std::unexpected(io_refusal(errno, "open", path));
  return locks;
}

std::optional<JobLocks> JobLocks::look(const FrozenCampaign& campaign) {
  JobLocks locks;
  locks.fd_ = FileDescriptor(
      ::open((campaign.directory / "jobs.lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!locks.fd_) return std::nullopt;
  return locks;
}

Result<bool> JobLocks::try_lock(std::size_t job) {
  return try_byte(fd_.get(), static_cast<off_t>(job));
}
void JobLocks::unlock(std::size_t job) { set_lock(fd_.get(), F_UNLCK, static_cast<off_t>(job)); }
Result<bool> JobLocks::try_lock_submission() { return try_byte(fd_.get(), kSubmissionByte); }
Status JobLocks::still_ours() const {
  struct stat held {
  }, named{};
  if (::fstat(fd_.get(), &held) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
      held.st_ino == named.st_ino && held.st_dev == named.st_dev)
    return {};
  return refuse(RefusalCode::lease_lost,
                "the campaign's jobs.lock was removed or replaced while a job was locked",
                "nothing but Hebe may touch the campaign's folder; resume", path_.string());
}
bool JobLocks::locked(std::size_t job) const {
  return byte_locked(fd_.get(), static_cast<off_t>(job));
}
bool JobLocks::submission_locked() const { return byte_locked(fd_.get(), kSubmissionByte); }

} // namespace hebe::campaign
