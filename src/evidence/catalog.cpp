#include "evidence/catalog.hpp"

#include "core/files.hpp"
#include "evidence/catalog_rebuild.hpp"
#include "evidence/catalog_tables.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFix = "make it anew: `hebe catalog-rebuild`";

std::unexpected<Refusal> no_catalog(const fs::path& file, std::string found) {
  return refuse(RefusalCode::bad_schema,
                fmt::format("required a Hebe catalog of version {}, found {}", kCatalogVersion,
                            std::move(found)),
                kFix, file.string());
}

/// A private copy of the directories' state is never worth more than the directories: what is not
/// exactly this version is not read.
Result<Database> open_checked(const fs::path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return refuse(RefusalCode::not_found, "this data root has no catalog",
                    "make it: `hebe catalog-rebuild`", file.string());
    return std::unexpected(io_refusal(errno, "open", file));
  }
  if (S_ISLNK(info.st_mode)) return no_catalog(file, "a symbolic link");
  if (!S_ISREG(info.st_mode)) return no_catalog(file, "no regular file");
  if (info.st_size == 0) return no_catalog(file, "an empty file");
  auto database = Database::open(file, Database::Access::shared);
  auto version = database ? database->number("SELECT version FROM meta")
                          : Result<std::int64_t>(std::unexpected(database.error()));
  if (!version && version.error().code == RefusalCode::bad_schema)
    return no_catalog(file, "none (" + version.error().what + ")");
  if (!version) return std::unexpected(std::move(version).error());
  if (*version != kCatalogVersion) return no_catalog(file, fmt::format("version {}", *version));
  return database;
}

} // namespace

Result<CatalogLock> CatalogLock::acquire(const DataRoot& root) {
  const auto path = root.path() / "catalog.lock";
  CatalogLock lock;
  // The file stays: deleting and locking race. Whoever may write the root may take the lock.
  lock.fd_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!lock.fd_) return std::unexpected(io_refusal(errno, "open", path));
  while (::flock(lock.fd_.get(), LOCK_EX) != 0)
    if (errno != EINTR) return std::unexpected(io_refusal(errno, "lock", path));
  return lock;
}

CatalogLock CatalogLock::for_reading(const DataRoot& root) {
  const auto path = root.path() / "catalog.lock";
  CatalogLock lock;
  lock.fd_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  while (lock.fd_ && ::flock(lock.fd_.get(), LOCK_SH) != 0 && errno == EINTR) {
  }
  return lock;
}

// SQLite finds a journal by its name when a transaction begins. Were the file replaced between
// being opened and that moment, the journal of an add() to the new file would be played into the
// old one: so both happen under the lock, and all that is read here is one transaction.
Result<Catalog> Catalog::open(const DataRoot& root) {
  const auto lock = CatalogLock::for_reading(root);
  HEBE_TRY(auto database, open_checked(file_of(root)));
  HEBE_CHECK(database.execute("BEGIN; SELECT version FROM meta"));
  return Catalog(std::move(database));
}

Status Catalog::add(const DataRoot& root, const fs::path& run) {
  const auto scanned = scan_run(root, run);
  if (const auto* problem = std::get_if<CatalogProblem>(&scanned))
    return refuse(RefusalCode::digest_mismatch, problem->kind + ": " + problem->what,
                  "see `hebe run-verify`", (root.path() / problem->path).string());
  const auto file = file_of(root);
  std::error_code ec;
  if (fs::symlink_status(file, ec).type() == fs::file_type::not_found) {
    HEBE_TRY([[maybe_unused]] const auto report, rebuild_catalog(root, core_count()));
    return {};
  }
  HEBE_TRY(const auto lock, CatalogLock::acquire(root));
  HEBE_TRY(auto database, open_checked(file));
  HEBE_TRY(auto transaction, Transaction::begin(database));
  HEBE_TRY(auto writer, CatalogWriter::over(database));
  const auto& row = std::get<CatalogRun>(scanned);
  HEBE_CHECK(writer.forget(row.directory)); // a problem that it once had
  HEBE_CHECK(writer.put(scanned));
  // While it was written it may have been listed as half written.
  const auto unsealed = fmt::format("{}/{}{}-", fs::path(row.directory).parent_path().string(),
                                    kUnsealedPrefix, row.run_id);
  HEBE_TRY(auto clear,
           database.prepare("DELETE FROM problems WHERE substr(path, 1, length(?1)) = ?1"));
  HEBE_CHECK(clear.run(std::array<SqlValue, 1>{unsealed}));
  return transaction.commit();
}

Result<std::int64_t> Catalog::run_count() { return database_.number("SELECT count(*) FROM runs"); }

Result<std::vector<CatalogRun>> Catalog::runs_of_campaign(const std::string& campaign) {
  HEBE_TRY(auto query, database_.prepare("SELECT " + run_columns() +
                                         " FROM runs WHERE campaign = ? ORDER BY run_id"));
  HEBE_CHECK(query.bind(std::array<SqlValue, 1>{campaign}));
  std::vector<CatalogRun> out;
  for (;;) {
    HEBE_TRY(const bool more, query.row());
    if (!more) return out;
    out.push_back(run_in(query));
  }
}

Status Catalog::for_each_problem(const std::function<void(const CatalogProblem&)>& f) {
  HEBE_TRY(auto query, database_.prepare("SELECT path, kind, what FROM problems ORDER BY path"));
  for (;;) {
    HEBE_TRY(const bool more, query.row());
    if (!more) return {};
    const auto text = [&](int column) {
      const auto cell = query.cell(column);
      const auto* t = std::get_if<std::string>(&cell);
      return t != nullptr ? *t : std::string();
    };
    f({text(0), text(1), text(2)});
  }
}

} // namespace hebe::evidence
