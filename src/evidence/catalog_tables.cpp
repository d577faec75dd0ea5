#include "evidence/catalog_tables.hpp"

#include <fmt/format.h>

#include <array>
#include <type_traits>

namespace hebe::evidence {
namespace {

template <class T> struct ColumnType;
template <> struct ColumnType<std::string> { static constexpr auto text = "TEXT NOT NULL"; };
template <> struct ColumnType<std::int64_t> { static constexpr auto text = "INTEGER NOT NULL"; };
template <> struct ColumnType<std::optional<std::string>> { static constexpr auto text = "TEXT"; };
template <> struct ColumnType<std::optional<double>> { static constexpr auto text = "REAL"; };
template <> struct ColumnType<std::optional<bool>> { static constexpr auto text = "INTEGER"; };

SqlValue cell_of(const std::string& v) { return v; }
SqlValue cell_of(std::int64_t v) { return v; }
SqlValue cell_of(double v) { return v; }
SqlValue cell_of(bool v) { return std::int64_t{v}; }
template <class T> SqlValue cell_of(const std::optional<T>& v) {
  return v ? cell_of(*v) : SqlValue();
}

void take(const SqlValue& cell, std::string& field) {
  if (const auto* text = std::get_if<std::string>(&cell)) field = *text;
}
void take(const SqlValue& cell, std::int64_t& field) {
  if (const auto* n = std::get_if<std::int64_t>(&cell)) field = *n;
}
void take(const SqlValue& cell, std::optional<std::string>& field) {
  if (const auto* text = std::get_if<std::string>(&cell)) field = *text;
}
void take(const SqlValue& cell, std::optional<bool>& field) {
  if (const auto* n = std::get_if<std::int64_t>(&cell)) field = *n != 0;
}
void take(const SqlValue& cell, std::optional<double>& field) {
  if (const auto* d = std::get_if<double>(&cell)) field = *d;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

} // namespace

Status create_catalog_tables(Database& database, std::int64_t version) {
  CatalogRun any;
  std::string columns;
  for_each_column(any, [&](const char* name, auto& field) {
    columns += fmt::format("{}{} {}{}", columns.empty() ? "" : ", ", name,
                           ColumnType<std::remove_cvref_t<decltype(field)>>::text,
                           columns.empty() ? " PRIMARY KEY" : "");
  });
  const auto sql = fmt::format(
      "CREATE TABLE meta (version INTEGER NOT NULL);"
      "INSERT INTO meta VALUES ({});"
      "CREATE TABLE runs ({}) WITHOUT ROWID;"
      "CREATE INDEX runs_by_campaign ON runs (campaign) WHERE campaign IS NOT NULL;"
      "CREATE TABLE problems (path TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL,"
      " what TEXT NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE campaigns (id TEXT NOT NULL PRIMARY KEY, name TEXT, jobs INTEGER)"
      " WITHOUT ROWID;"
      "CREATE TABLE datasets (id TEXT NOT NULL PRIMARY KEY, directory TEXT NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE analyses (id TEXT NOT NULL PRIMARY KEY, directory TEXT NOT NULL) WITHOUT "
      "ROWID;",
      version, columns);
  return database.execute(sql.c_str());
}

std::string run_columns() {
  const CatalogRun any;
  std::string out;
  for_each_column(
      any, [&](const char* name, auto&) { out += (out.empty() ? "" : ", ") + std::string(name); });
  return out;
}

std::vector<SqlValue> cells_of(const CatalogRun& run) {
  std::vector<SqlValue> out;
  for_each_column(run, [&](const char*, const auto& field) { out.push_back(cell_of(field)); });
  return out;
}

CatalogRun run_in(const Statement& statement) {
  CatalogRun out;
  int column = 0;
  for_each_column(out, [&](const char*, auto& field) { take(statement.cell(column++), field); });
  return out;
}

Result<CatalogWriter> CatalogWriter::over(Database& database) {
  CatalogWriter w;
  std::string places = "?";
  for (std::size_t i = 1; i < cells_of({}).size(); ++i) places += ", ?";
  HEBE_TRY(w.run_, database.prepare(fmt::format("INSERT OR REPLACE INTO runs ({}) VALUES ({})",
                                                run_columns(), places)));
  HEBE_TRY(w.problem_, database.prepare("INSERT OR REPLACE INTO problems VALUES (?, ?, ?)"));
  HEBE_TRY(w.campaign_, database.prepare("INSERT OR REPLACE INTO campaigns VALUES (?, ?, ?)"));
  HEBE_TRY(w.dataset_, database.prepare("INSERT OR REPLACE INTO datasets VALUES (?, ?)"));
  HEBE_TRY(w.analysis_, database.prepare("INSERT OR REPLACE INTO analyses VALUES (?, ?)"));
  HEBE_TRY(w.forget_run_,
           database.prepare("DELETE FROM runs WHERE directory = ?1 AND run_id = ?2"));
  // A problem may lie in a file of the run: everything below the path. '0' follows '/'.
  const std::string there = "path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')";
  HEBE_TRY(w.forget_problem_, database.prepare("DELETE FROM problems WHERE " + there));
  HEBE_TRY(w.knows_, database.prepare("SELECT 1 FROM runs WHERE run_id = ?2 AND directory = ?1 "
                                      "UNION ALL SELECT 1 FROM problems WHERE " +
                                      there + " LIMIT 1"));
  return w;
}

Status CatalogWriter::put(const ScannedRun& scanned) {
  if (const auto* problem = std::get_if<CatalogProblem>(&scanned)) return put(*problem);
  return run_.run(cells_of(std::get<CatalogRun>(scanned)));
}

Status CatalogWriter::put(const CatalogProblem& p) {
  return problem_.run(std::array<SqlValue, 3>{p.path, p.kind, p.what});
}

Status CatalogWriter::put_campaign(const std::string& id, const std::optional<std::string>& name,
                                   std::optional<std::int64_t> jobs) {
  return campaign_.run(std::array<SqlValue, 3>{id, cell_of(name), cell_of(jobs)});
}

Status CatalogWriter::put_dataset(const std::string& id, const std::string& directory) {
  return dataset_.run(std::array<SqlValue, 2>{id, directory});
}

Status CatalogWriter::put_analysis(const std::string& id, const std::string& directory) {
  return analysis_.run(std::array<SqlValue, 2>{id, directory});
}

Result<bool> CatalogWriter::knows(const std::string& path) {
  HEBE_CHECK(knows_.bind(std::array<SqlValue, 2>{path, last_name(path)}));
  return knows_.row();
}

Status CatalogWriter::forget(const std::string& path) {
  HEBE_CHECK(forget_run_.run(std::array<SqlValue, 2>{path, last_name(path)}));
  return forget_problem_.run(std::array<SqlValue, 1>{path});
}

} // namespace hebe::evidence
