#include "evidence/catalog_rebuild.hpp"

#include "core/json.hpp"
#include "evidence/catalog.hpp"
#include "evidence/catalog_tables.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kRunsAtOnce = 256; // read, then inserted: this bounds the memory
constexpr std::uint64_t kLargestCampaign = 256 << 20;

bool names_open_file(int fd, const fs::path& path) {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

bool is_aside_name(std::string_view name) {
  return name.starts_with("catalog.sqlite.") && name.ends_with(".tmp");
}

void remove_if_dead(const fs::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && names_open_file(fd.get(), path))
    ::unlink(path.c_str());
}

/// A writer that died inside add() left a journal beside the old catalog. Under the new file's name
/// it would be played into the new file: it is played back into the old one, or thrown away.
void settle_journal(const fs::path& file) {
  const auto journal = fs::path(file.string() + "-journal");
  std::error_code ec;
  if (fs::symlink_status(journal, ec).type() == fs::file_type::not_found) return;
  if (auto old = Database::open(file, Database::Access::shared))
    (void)old->number("SELECT count(*) FROM sqlite_master");
  ::unlink(journal.c_str());
}

class Rebuild {
public:
  Rebuild(const DataRoot& root, unsigned threads) : root_(root), threads_(threads) {}

  Result<CatalogReport> run() {
    std::error_code ec;
    if (!fs::is_directory(root_.path(), ec))
      return refuse(RefusalCode::not_found, "there is no such data root",
                    "give its --data-root, or make it with `hebe data-init`",
                    root_.path().string());
    HEBE_TRY(auto aside, CatalogAside::make(root_));
    // The long part, while others may seal runs and add them to the old catalog.
    HEBE_TRY(auto database, Database::open(aside.path(), Database::Access::private_));
    HEBE_CHECK(create_catalog_tables(database, kCatalogVersion));
    HEBE_TRY(auto transaction, Transaction::begin(database));
    HEBE_TRY(auto writer, CatalogWriter::over(database));
    writer_ = &writer;
    HEBE_CHECK(put_tree(false));

    HEBE_TRY(const auto lock, CatalogLock::acquire(root_));
    HEBE_CHECK(put_tree(true));
    HEBE_CHECK(forget_what_is_gone(database));
    HEBE_CHECK(put_campaigns());
    HEBE_CHECK(put_named("datasets", &CatalogWriter::put_dataset));
    HEBE_CHECK(put_named("analyses", &CatalogWriter::put_analysis));
    HEBE_CHECK(transaction.commit());
    HEBE_TRY(auto report, checked(database));
    // Closed before it is renamed: SQLite remembers its files by name.
    writer = {};
    database = {};
    report.file = Catalog::file_of(root_);
    settle_journal(report.file);
    HEBE_CHECK(aside.put_in_place(report.file));
    report.bytes = fs::file_size(report.file, ec);
    return report;
  }

private:
  /// Everything below runs/, or only what has no row yet.
  Status put_tree(bool only_new) {
    std::vector<TreeEntry> batch;
    HEBE_CHECK(walk_run_tree(root_.runs(), [&](TreeEntry entry) -> Status {
      if (only_new) {
        HEBE_TRY(const bool known, writer_->knows(shown_path(root_, entry.path)));
        if (known) return {};
      }
      batch.push_back(std::move(entry));
      return batch.size() < kRunsAtOnce ? Status{} : put_batch(batch);
    }));
    return put_batch(batch);
  }

  /// Read on all cores, inserted by this one.
  Status put_batch(std::vector<TreeEntry>& batch) {
    std::vector<ScannedRun> scanned(batch.size());
    HEBE_CHECK(for_each_index(batch.size(), threads_, [&](std::size_t i) -> Status {
      if (batch[i].kind == TreeKind::run)
        scanned[i] = scan_run(root_, batch[i].path);
      else
        scanned[i] = problem_of(root_, batch[i]);
      return {};
    }));
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (!is_gone(batch[i].path)) HEBE_CHECK(writer_->put(scanned[i]));
    batch.clear();
    return {};
  }

  /// Vanished while it was read: a problem that it then seems to have is none.
  static bool is_gone(const fs::path& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) != 0 && errno == ENOENT;
  }

  /// Runs that were deleted, and directories that were sealed, since they were listed.
  Status forget_what_is_gone(Database& database) {
    HEBE_TRY(auto listed,
             database.prepare("SELECT directory FROM runs UNION ALL SELECT path FROM problems "
                              "WHERE kind IN ('half_written', 'not_compacted')"));
    std::vector<std::string> gone;
    for (;;) {
      HEBE_TRY(const bool more, listed.row());
      if (!more) break;
      auto path = std::get<std::string>(listed.cell(0));
      const bool as_it_is = path.find('\\') == std::string::npos; // else it is only shown so
      if (as_it_is && is_gone(root_.path() / path)) gone.push_back(std::move(path));
    }
    for (const auto& path : gone) HEBE_CHECK(writer_->forget(path));
    return {};
  }

  /// Every directory in <root>/<folder>; what else is there is a problem.
  template <class F> Status for_each_directory(const char* folder, F&& f) {
    const auto path = root_.path() / folder;
    if (is_gone(path)) return {};
    const auto entries = list_folder(path);
    if (!entries) return writer_->put({folder, "unreadable", entries.error().what});
    for (const auto& e : *entries) {
      const auto shown = shown_path(root_, path / e.name);
      HEBE_CHECK([&]() -> Status {
        if (e.type == fs::file_type::symlink)
          return writer_->put({shown, "symbolic_link", "a symbolic link: it is not followed"});
        if (e.name.starts_with(kUnsealedPrefix))
          return writer_->put(
              {shown, "half_written", "never sealed: its writer died or is still writing"});
        if (e.type != fs::file_type::directory || e.name.starts_with('.'))
          return writer_->put({shown, "foreign", "not what Hebe puts here"});
        return f(fs::path(shown).filename().string(), shown, path / e.name);
      }());
    }
    return {};
  }

  Status put_named(const char* folder,
                   Status (CatalogWriter::*put)(const std::string&, const std::string&)) {
    return for_each_directory(folder, [&](const std::string& id, const std::string& shown,
                                          const fs::path&) { return (writer_->*put)(id, shown); });
  }

  Status put_campaigns() {
    return for_each_directory(
        "campaigns",
        [&](const std::string& id, const std::string& shown, const fs::path& path) -> Status {
          const auto file = read_record(path / "plan.json", kLargestCampaign);
          if (!file) return writer_->put({shown + "/plan.json", "unreadable", file.error().what});
          const auto plan = parse_json(file->bytes, shown + "/plan.json");
          const bool fits = plan && plan->is_object() &&
                            plan->value("schema", Json()) == "hebe.campaign.plan/1" &&
                            plan->value("jobs", Json()).is_array();
          if (!fits)
            return writer_->put({shown + "/plan.json", "schema",
                                 plan ? "required schema \"hebe.campaign.plan/1\" with its jobs"
                                      : plan.error().what});
          const auto name = plan->value("name", Json());
          return writer_->put_campaign(
              id, name.is_string() ? std::optional(name.get<std::string>()) : std::nullopt,
              static_cast<std::int64_t>(plan->at("jobs").size()));
        });
  }

  Result<CatalogReport> checked(Database& database) {
    HEBE_TRY(auto check, database.prepare("PRAGMA quick_check(1)"));
    HEBE_TRY(const bool said, check.row());
    if (!said || check.cell(0) != SqlValue("ok"))
      return refuse(RefusalCode::io_failed, "the new catalog is damaged: SQLite's check fails",
                    "see the health of the disk", database_name());
    CatalogReport r;
    for (const auto& [table, count] :
         {std::pair{"runs", &r.runs}, std::pair{"problems", &r.problems},
          std::pair{"campaigns", &r.campaigns}, std::pair{"datasets", &r.datasets},
          std::pair{"analyses", &r.analyses}}) {
      HEBE_TRY(*count, database.number(std::string("SELECT count(*) FROM ") + table));
    }
    return r;
  }
  std::string database_name() const { return Catalog::file_of(root_).string(); }

  const DataRoot& root_;
  unsigned threads_;
  CatalogWriter* writer_ = nullptr;
};

} // namespace

Result<CatalogAside> CatalogAside::make(const DataRoot& root) {
  if (const auto entries = list_folder(root.path()))
    for (const auto& e : *entries)
      if (is_aside_name(e.name)) remove_if_dead(root.path() / e.name);
  // The number alone is not unique: another thread, or a process of another container.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    CatalogAside out;
    const auto path =
        root.path() / (attempt == 0 ? fmt::format("catalog.sqlite.{}.tmp", ::getpid())
                                    : fmt::format("catalog.sqlite.{}.{}.tmp", ::getpid(), attempt));
    out.fd_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!out.fd_ && errno == EEXIST) continue;
    if (!out.fd_) return std::unexpected(io_refusal(errno, "create", path));
    out.path_ = path;
    // Between the two calls a cleaner may have taken it for a dead one's: then again.
    if (::flock(out.fd_.get(), LOCK_EX | LOCK_NB) == 0 && names_open_file(out.fd_.get(), path))
      return out;
    out.path_.clear();
  }
  return refuse(RefusalCode::io_failed, "no name is free for the new catalog",
                "remove catalog.sqlite.*.tmp", root.path().string());
}

Status CatalogAside::put_in_place(const fs::path& file) {
  if (::fsync(fd_.get()) != 0) return std::unexpected(io_refusal(errno, "fsync", path_));
  if (::rename(path_.c_str(), file.c_str()) != 0)
    return std::unexpected(io_refusal(errno, "rename", file));
  path_.clear();
  // At once: closing any descriptor of a file ends all POSIX locks that this process has on it, and
  // another of its threads may open the new catalog with SQLite now.
  fd_.close();
  return sync_directory(file.parent_path());
}

CatalogAside::~CatalogAside() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<CatalogReport> rebuild_catalog(const DataRoot& root, unsigned threads) {
  auto report = Rebuild(root, threads).run();
  if (!report && report.error().not_written.empty())
    report.error().not_written = Catalog::file_of(root).string();
  return report;
}

} // namespace hebe::evidence
