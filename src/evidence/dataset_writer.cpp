#include "evidence/dataset_writer.hpp"

#include "core/build_identity.hpp"
#include "core/crash_point.hpp"
#include "core/files.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/arrow_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

Json tables_json(const std::map<DatasetTable, std::int64_t>& rows) {
  Json tables = Json::object();
  for (const auto table : kDatasetTables) {
    Json columns = Json::array();
    for (const auto& c : columns_of(table, kDatasetLayout))
      columns.push_back({{"name", c.name},
                         {"type", name_of(c.type)},
                         {"unit", c.unit},
                         {"description", c.description}});
    const auto hit = rows.find(table);
    tables[std::string(name_of(table))] = {{"rows", hit == rows.end() ? 0 : hit->second},
                                           {"columns", columns}};
  }
  return tables;
}

// Every directory below `top`, deepest first, so that a name is durable before what holds it.
Status sync_tree(const fs::path& top) {
  std::vector<fs::path> folders = {top};
  std::error_code ec;
  for (fs::recursive_directory_iterator it(top, ec), end; !ec && it != end; it.increment(ec))
    if (it->is_directory(ec)) folders.push_back(it->path());
  if (ec) return std::unexpected(io_refusal(ec.value(), "list", top));
  std::sort(folders.rbegin(), folders.rend());
  for (const auto& folder : folders) HEBE_CHECK(sync_directory(folder));
  return {};
}

} // namespace

DatasetWriter::DatasetWriter(const DataRoot& root, DatasetOrigin origin, PartBounds bounds)
    : datasets_(root.datasets()), origin_(std::move(origin)), bounds_(bounds) {}

DatasetWriter::~DatasetWriter() {
  writers_.clear();
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

Status DatasetWriter::begin() {
  crash_point("dataset: make the folder of datasets");
  HEBE_CHECK(make_directories(datasets_));
  crash_point("dataset: make the unsealed directory");
  for (int number = 0; temporary_.empty(); ++number) {
    const auto path =
        datasets_ / fmt::format("{}dataset-{}-{}", kUnsealedPrefix, ::getpid(), number);
    std::error_code ec;
    if (fs::create_directory(path, ec))
      temporary_ = path;
    else if (ec)
      return std::unexpected(io_refusal(ec.value(), "create directory", path));
  }
  return {};
}

Status DatasetWriter::close_partition() {
  for (auto& writer : writers_) {
    HEBE_TRY(auto files, writer.finish());
    for (auto& file : files) files_.push_back(std::move(file));
  }
  writers_.clear();
  return {};
}

Result<std::int64_t> DatasetWriter::add(const StoredRun& run) {
  if (temporary_.empty()) HEBE_CHECK(begin());
  const std::vector<std::string> now = {run.provenance(), run.kind(), run.run_id};
  if (!last_.empty() && now <= last_)
    return refuse(RefusalCode::internal, "runs of a dataset came out of order", {}, run.run_id);
  if (last_.empty() || now[0] != last_[0] || now[1] != last_[1]) {
    HEBE_CHECK(close_partition());
    for (const auto table : kDatasetTables)
      writers_.emplace_back(temporary_, table, now[0], now[1], bounds_);
  }
  last_ = now;
  crash_point("dataset: write a run");
  Json rows = Json::object();
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    const auto table = kDatasetTables[i];
    HEBE_TRY(const auto added, writers_[i].add(run));
    rows[std::string(name_of(table))] = added;
    rows_[table] += added;
  }
  runs_.push_back({{"run_id", run.run_id},
                   {"seal", run.seal},
                   {"plan_id", run.plan_id()},
                   {"provenance", run.provenance()},
                   {"kind", run.kind()},
                   {"rows", rows}});
  return rows.at("telemetry").get<std::int64_t>();
}

Result<std::string> DatasetWriter::manifest() const {
  Json files = Json::array(), same = Json::array();
  for (const auto& f : files_)
    files.push_back({{"path", f.path},
                     {"table", name_of(f.table)},
                     {"rows", f.rows},
                     {"bytes", f.bytes},
                     {"sha256", f.sha256}});
  for (const auto& [run_id, seal] : origin_.same_content)
    same.push_back({{"run_id", run_id}, {"seal", seal}});
  const auto text_or_null = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  // No time and no place: the same runs give the same bytes, whoever takes them, wherever.
  const Json manifest = {
      {"schema", "hebe.dataset.manifest/1"},
      {"layout", kDatasetLayout},
      {"writer", {{"hebe", kVersion}, {"arrow", arrow::GetBuildInfo().version_string}}},
      {"campaign", text_or_null(origin_.campaign)},
      {"synthetic", text_or_null(origin_.synthetic)},
      {"runs", runs_},
      {"same_content", same},
      {"tables", tables_json(rows_)},
      {"files", files}};
  HEBE_CHECK(check_schema(manifest, "hebe.dataset.manifest/1", "manifest.json"));
  HEBE_TRY(auto text, canonical_json(manifest));
  return text + "\n";
}

Status DatasetWriter::name_it(StoredDataset& dataset) {
  crash_point("dataset: rename");
  std::error_code ec;
  fs::rename(temporary_, dataset.directory, ec);
  if (ec == std::errc::directory_not_empty || ec == std::errc::file_exists) {
    dataset.existed = true; // the destructor removes ours
    return {};
  }
  if (ec) {
    auto refusal = io_refusal(ec.value(), "rename", dataset.directory);
    refusal.not_written = dataset.directory.string();
    return std::unexpected(std::move(refusal));
  }
  temporary_.clear();
  crash_point("dataset: sync the folder of datasets");
  return sync_directory(datasets_);
}

Result<StoredDataset> DatasetWriter::finish() {
  if (runs_.empty()) return refuse(RefusalCode::internal, "a dataset of no run");
  crash_point("dataset: close the last parts");
  HEBE_CHECK(close_partition());
  std::sort(files_.begin(), files_.end(), [](auto& a, auto& b) { return a.path < b.path; });
  HEBE_TRY(const auto text, manifest());
  StoredDataset dataset;
  dataset.id = std::string(kDatasetPrefix) + sha256_hex(text);
  dataset.directory = datasets_ / dataset.id;
  dataset.runs = runs_.size();
  dataset.rows = rows_;
  dataset.bytes = text.size();
  for (const auto& f : files_) dataset.bytes += f.bytes;
  crash_point("dataset: write manifest.json");
  HEBE_CHECK(write_new_file(temporary_ / "manifest.json", text));
  crash_point("dataset: sync the unsealed directory");
  HEBE_CHECK(sync_tree(temporary_));
  HEBE_CHECK(name_it(dataset));
  return dataset;
}

} // namespace hebe::evidence
