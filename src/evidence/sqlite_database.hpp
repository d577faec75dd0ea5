// SQLite through its C API. In: a file and SQL; out: rows, or a refusal that names the file.
// Invariant: everything is released with its owner; a full disk is no_space, a forbidden one
// no_permission, a file that is no database bad_schema.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

struct sqlite3;
struct sqlite3_stmt;

namespace hebe::evidence {

/// A value of a row; monostate is NULL.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A prepared statement. It must not outlive its database.
class Statement {
public:
  /// Binds the values in order and runs to the end.
  [[nodiscard]] Status run(std::span<const SqlValue> values);
  /// Binds, before the first row().
  [[nodiscard]] Status bind(std::span<const SqlValue> values);
  /// True: there is a row, read it with cell().
  [[nodiscard]] Result<bool> row();
  [[nodiscard]] SqlValue cell(int column) const;
  [[nodiscard]] int columns() const;

private:
  friend class Database;
  struct Finalise {
    void operator()(sqlite3_stmt* s) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalise> statement_;
  std::string path_;
};

class Database {
public:
  enum class Access {
    shared,  ///< an existing file that others may use at the same time
    private_ ///< an existing file that nobody else knows: no locks, no syncs, no journal on disk
  };
  [[nodiscard]] static Result<Database> open(const std::filesystem::path& path, Access access);
  /// One or more statements without rows.
  [[nodiscard]] Status execute(const char* sql);
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  /// The one number that a query gives; bad_schema when it gives none.
  [[nodiscard]] Result<std::int64_t> number(std::string_view sql);
  /// Rows that the latest statement changed.
  [[nodiscard]] int changes() const;

private:
  struct Close {
    void operator()(sqlite3* d) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
  std::string path_;
};

/// Rolled back unless committed.
class Transaction {
public:
  [[nodiscard]] static Result<Transaction> begin(Database& database);
  [[nodiscard]] Status commit();
  Transaction(Transaction&& o) noexcept : database_(std::exchange(o.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

} // namespace hebe::evidence
