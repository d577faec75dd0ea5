#include "evidence/sqlite_database.hpp"

#include "core/files.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

namespace hebe::evidence {
namespace {

constexpr int kBusyMilliseconds = 20'000; // others hold a lock for one insert or one query

Refusal refusal_of(sqlite3* database, int result, const std::string& path) {
  const int error = database != nullptr ? sqlite3_system_errno(database) : 0;
  const std::string said = std::string("SQLite: ") + (database != nullptr ? sqlite3_errmsg(database)
                                                                          : sqlite3_errstr(result));
  switch (result & 0xff) {
  case SQLITE_FULL:
    return io_refusal(ENOSPC, "write", path);
  case SQLITE_NOTADB:
  case SQLITE_CORRUPT:
    return {RefusalCode::bad_schema, said, path, "make it anew: `hebe catalog-rebuild`", {}};
  case SQLITE_CANTOPEN:
  case SQLITE_READONLY:
  case SQLITE_PERM:
  case SQLITE_AUTH: {
    // The journal beside the file is made first, so a full disk may speak through CANTOPEN too.
    auto r = io_refusal(error == ENOSPC || error == EDQUOT ? error : EACCES, "write", path);
    r.what = error != 0 ? r.what : said;
    return r;
  }
  case SQLITE_IOERR: {
    auto r = io_refusal(error != 0 ? error : EIO, "read or write", path);
    r.what += " (" + said + ")";
    return r;
  }
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return {RefusalCode::io_failed,
            "another process keeps it locked",
            path,
            "end the program that reads it, then try again",
            {}};
  case SQLITE_ERROR: // no such table or column: another layout
  case SQLITE_CONSTRAINT:
    return {RefusalCode::bad_schema, said, path, "make it anew: `hebe catalog-rebuild`", {}};
  default:
    return {RefusalCode::io_failed, said, path, {}, {}};
  }
}

} // namespace

void Statement::Finalise::operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
void Database::Close::operator()(sqlite3* d) const { sqlite3_close_v2(d); }

Status Statement::bind(std::span<const SqlValue> values) {
  auto* s = statement_.get();
  sqlite3_reset(s);
  int result = SQLITE_OK;
  for (int i = 1; const auto& value : values) {
    if (result != SQLITE_OK) break;
    if (const auto* n = std::get_if<std::int64_t>(&value))
      result = sqlite3_bind_int64(s, i, *n);
    else if (const auto* d = std::get_if<double>(&value))
      result = sqlite3_bind_double(s, i, *d);
    else if (const auto* t = std::get_if<std::string>(&value))
      result = sqlite3_bind_text64(s, i, t->data(), t->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    else
      result = sqlite3_bind_null(s, i);
    ++i;
  }
  if (result != SQLITE_OK) return std::unexpected(refusal_of(sqlite3_db_handle(s), result, path_));
  return {};
}

Result<bool> Statement::row() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  auto refusal = refusal_of(sqlite3_db_handle(statement_.get()), result, path_);
  sqlite3_reset(statement_.get());
  return std::unexpected(std::move(refusal));
}

Status Statement::run(std::span<const SqlValue> values) {
  HEBE_CHECK(bind(values));
  for (;;) {
    HEBE_TRY(const bool more, row());
    if (!more) break;
  }
  sqlite3_reset(statement_.get());
  return {};
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }

SqlValue Statement::cell(int column) const {
  auto* s = statement_.get();
  switch (sqlite3_column_type(s, column)) {
  case SQLITE_INTEGER:
    return std::int64_t{sqlite3_column_int64(s, column)};
  case SQLITE_FLOAT:
    return sqlite3_column_double(s, column);
  case SQLITE_NULL:
    return std::monostate{};
  default: {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
    return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(s, column)));
  }
  }
}

Result<Database> Database::open(const std::filesystem::path& path, Access access) {
  Database out;
  out.path_ = path.string();
  sqlite3* raw = nullptr;
  // Without CREATE: who makes the file decides how, and learns the exact error.
  const int result =
      sqlite3_open_v2(out.path_.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX,
                      access == Access::private_ ? "unix-none" : nullptr);
  out.database_.reset(raw);
  if (result != SQLITE_OK) return std::unexpected(refusal_of(raw, result, out.path_));
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  // A shared file may come from anyone: no function that its views or triggers name runs here.
  HEBE_CHECK(out.execute(access == Access::private_
                             ? "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF"
                             : "PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF"));
  return out;
}

Status Database::execute(const char* sql) {
  const int result = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return std::unexpected(refusal_of(database_.get(), result, path_));
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  Statement out;
  sqlite3_stmt* raw = nullptr;
  const int result = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  out.statement_.reset(raw);
  out.path_ = path_;
  if (result != SQLITE_OK) return std::unexpected(refusal_of(database_.get(), result, path_));
  return out;
}

Result<std::int64_t> Database::number(std::string_view sql) {
  HEBE_TRY(auto statement, prepare(sql));
  HEBE_TRY(const bool found, statement.row());
  const auto value = found ? statement.cell(0) : SqlValue();
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n;
  return refuse(RefusalCode::bad_schema, "required a number for \"" + std::string(sql) + "\"",
                "make it anew: `hebe catalog-rebuild`", path_);
}

int Database::changes() const { return sqlite3_changes(database_.get()); }

Result<Transaction> Transaction::begin(Database& database) {
  HEBE_CHECK(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Status Transaction::commit() {
  HEBE_CHECK(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

} // namespace hebe::evidence
