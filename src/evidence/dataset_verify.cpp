#include "evidence/dataset_verify.hpp"

#include "core/files.hpp"
#include "core/parallel.hpp"
#include "core/schema.hpp"
#include "core/sha256.hpp"
#include "evidence/dataset_parquet.hpp"
#include "evidence/dataset_writer.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

class DatasetVerification {
public:
  DatasetVerification(const DataRoot& root, fs::path directory, const DatasetVerifyRequest& request)
      : root_(root), request_(request),
        threads_(request.threads == 0 ? core_count() : request.threads) {
    report_.directory = std::move(directory);
  }

  VerifyReport run() {
    if (!manifest()) return std::move(report_);
    tree();
    digests();
    if (report_.valid()) counts();
    if (!request_.recompute) return std::move(report_);
    if (report_.valid())
      rows();
    else
      report_.not_checked.push_back("rows against their runs: the dataset is not the sealed one");
    return std::move(report_);
  }

private:
  std::string path(const std::string& name) const { return (report_.directory / name).string(); }
  void problem(Refusal r) { report_.problems.push_back(std::move(r)); }
  void problem(RefusalCode code, const std::string& file, std::string what) {
    problem({code, std::move(what), path(file), "restore the dataset from a copy", {}});
  }

  bool manifest() {
    std::error_code ec;
    const auto file = report_.directory / "manifest.json";
    if (fs::symlink_status(file, ec).type() != fs::file_type::regular) {
      problem(RefusalCode::digest_mismatch, "manifest.json", "it is missing or no plain file");
      return false;
    }
    const auto bytes = read_file(file);
    if (!bytes) {
      problem(bytes.error());
      return false;
    }
    report_.seal = sha256_hex(*bytes);
    if (report_.directory.filename().string() != std::string(kDatasetPrefix) + report_.seal) {
      problem(RefusalCode::digest_mismatch, "manifest.json",
              fmt::format("its digest is {}, the dataset is named {}", report_.seal,
                          report_.directory.filename().string()));
    }
    auto parsed = parse_json(*bytes, file.string());
    if (parsed)
      if (auto ok = check_schema(*parsed, "hebe.dataset.manifest/1", file.string()); !ok)
        parsed = std::unexpected(ok.error());
    if (!parsed) {
      problem(parsed.error());
      return false;
    }
    manifest_ = std::move(*parsed);
    layout_ = manifest_.value("layout", 1); // those from before layouts had numbers
    for (const auto& f : manifest_.at("files"))
      if (!listed_.emplace(f.at("path").get<std::string>(), &f).second)
        problem(RefusalCode::bad_schema, f.at("path").get<std::string>(), "it is listed twice");
    if (report_.valid()) report_.passed.push_back("manifest: " + report_.seal);
    return true;
  }

  // What lies in the directory against what is listed; nothing is opened yet, so that a pipe in a
  // file's place cannot hold us up.
  void tree() {
    std::set<std::string> folders;
    for (const auto& [name, file] : listed_)
      for (auto folder = fs::path(name).parent_path(); !folder.empty();
           folder = folder.parent_path())
        folders.insert(folder.generic_string());
    std::set<std::string> missing;
    for (const auto& [name, file] : listed_) missing.insert(name);
    std::error_code ec;
    for (fs::recursive_directory_iterator it(report_.directory, ec), end; !ec && it != end;
         it.increment(ec)) {
      const auto name = it->path().lexically_relative(report_.directory).generic_string();
      std::error_code gone;
      const auto type = it->symlink_status(gone).type();
      const bool is_listed = listed_.contains(name);
      missing.erase(name);
      if (type == fs::file_type::symlink)
        problem(RefusalCode::digest_mismatch, name, "it is a symbolic link");
      else if (type == fs::file_type::directory && !folders.contains(name))
        problem(RefusalCode::digest_mismatch, name,
                is_listed ? "it is a directory, not a file"
                          : "this directory is not in the manifest");
      else if (type == fs::file_type::regular && !is_listed && name != "manifest.json")
        problem(RefusalCode::digest_mismatch, name, "this file is not in the manifest");
      else if (type != fs::file_type::regular && type != fs::file_type::directory)
        problem(RefusalCode::digest_mismatch, name, "it is no plain file");
      if (type == fs::file_type::regular && is_listed) plain_.push_back(name);
    }
    if (ec) problem(io_refusal(ec.value(), "list", report_.directory));
    for (const auto& name : missing)
      problem(RefusalCode::digest_mismatch, name, "the file is missing");
  }

  void digests() {
    std::vector<std::optional<Refusal>> found(plain_.size());
    const auto before = report_.problems.size();
    const auto done = for_each_index(plain_.size(), threads_, [&](std::size_t i) -> Status {
      const auto& name = plain_[i];
      const auto& file = *listed_.at(name);
      const auto mismatch = [&](std::string what) {
        found[i] = Refusal{RefusalCode::digest_mismatch,
                           std::move(what),
                           path(name),
                           "restore the dataset from a copy",
                           {}};
      };
      std::error_code ec;
      const auto size = fs::file_size(report_.directory / name, ec);
      if (const auto due = file.at("bytes").get<std::uint64_t>(); !ec && size != due) {
        mismatch(fmt::format("required {} bytes, found {}", due, size));
        return {};
      }
      const auto digest = sha256_of_file(report_.directory / name);
      if (!digest)
        found[i] = digest.error();
      else if (*digest != file.at("sha256"))
        mismatch(fmt::format("required sha256 {}, found {}", file.at("sha256").get<std::string>(),
                             *digest));
      return {};
    });
    if (!done) problem(done.error());
    for (auto& p : found)
      if (p) problem(std::move(*p));
    if (report_.problems.size() == before && plain_.size() == listed_.size())
      report_.passed.push_back(fmt::format("digests: {} files", plain_.size()));
  }

  // Runs, tables and files of the manifest against each other, and every file's own header.
  void counts() {
    std::set<std::string> ids, seals, partitions;
    std::map<std::string, std::int64_t> due; // rows by partition
    for (const auto& r : manifest_.at("runs")) {
      const auto id = r.at("run_id").get<std::string>();
      if (!ids.insert(id).second || !seals.insert(r.at("seal")).second)
        problem(RefusalCode::bad_schema, "manifest.json", "run " + id + " is in it twice");
      for (const auto table : kDatasetTables)
        due[partition_path(table, r.at("provenance"), r.at("kind"))] +=
            r.at("rows").at(std::string(name_of(table))).get<std::int64_t>();
    }
    std::map<std::string, std::int64_t> tables;
    for (const auto& [name, file] : listed_) {
      const auto folder = fs::path(name).parent_path().generic_string();
      parts_[folder].push_back(name);
      const auto rows = file->at("rows").get<std::int64_t>();
      due[folder] -= rows;
      tables[file->at("table")] += rows;
      part(name, *file);
    }
    for (const auto& [folder, left] : due)
      if (left != 0)
        problem(RefusalCode::bad_schema, "manifest.json",
                fmt::format("the files of {} have {} rows {} than its runs", folder,
                            left < 0 ? -left : left, left < 0 ? "more" : "fewer"));
    for (const auto table : kDatasetTables) {
      const auto name = std::string(name_of(table));
      if (manifest_.at("tables").at(name).at("rows") != tables[name])
        problem(RefusalCode::bad_schema, "manifest.json",
                "rows of table " + name + " do not add up");
      columns(table, manifest_.at("tables").at(name).at("columns"));
    }
    if (report_.valid())
      report_.passed.push_back(fmt::format("tables: {} runs, {} windows, {} telemetry rows",
                                           tables["runs"], tables["windows"], tables["telemetry"]));
  }

  void columns(DatasetTable table, const Json& stored) {
    Json required = Json::array();
    for (const auto& c : columns_of(table, layout_))
      required.push_back({{"name", c.name},
                          {"type", name_of(c.type)},
                          {"unit", c.unit},
                          {"description", c.description}});
    if (const auto where = first_difference(stored, required); !where.empty())
      problem(RefusalCode::bad_schema, "manifest.json",
              fmt::format("columns of {}: {}", name_of(table), where));
  }

  void part(const std::string& name, const Json& file) {
    // The schema has checked the path's form: table/provenance=…/kind=…/part.
    const auto provenance = (++fs::path(name).begin())->string().substr(11);
    for (const auto table : kDatasetTables) {
      if (!name.starts_with(std::string(name_of(table)) + "/")) continue;
      if (file.at("table") != name_of(table))
        problem(RefusalCode::bad_schema, name, "it is listed for another table");
      const auto rows =
          check_part(report_.directory / name, table, provenance, layout_, path(name));
      if (!rows)
        problem(rows.error());
      else if (*rows != file.at("rows"))
        problem(
            RefusalCode::bad_schema, name,
            fmt::format("required {} rows, found {}", file.at("rows").get<std::int64_t>(), *rows));
    }
  }

  void rows() {
    const auto& runs = manifest_.at("runs");
    std::vector<std::optional<fs::path>> sources(runs.size());
    std::vector<std::optional<Refusal>> damaged(runs.size());
    const bool has_runs = manifest_.at("synthetic").is_null(); // a bench's rows are no run's
    const auto done = for_each_index(has_runs ? runs.size() : 0, threads_, [&](auto i) -> Status {
      auto found = verified_run(root_, runs[i].at("run_id"), runs[i].at("seal"));
      if (found)
        sources[i] = *found;
      else
        damaged[i] = std::move(found).error();
      return {};
    });
    if (!done) return problem(done.error());
    for (const auto& fault : damaged)
      if (fault) problem(*fault);
    std::map<std::string, PartReader> readers; // by partition
    for (const auto& [folder, parts] : parts_)
      for (const auto table : kDatasetTables)
        if (folder.starts_with(std::string(name_of(table)) + "/"))
          readers.emplace(folder, PartReader(report_.directory, table, parts, layout_));
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (auto agrees = rows_of_run(runs[i], sources[i], readers); !agrees)
        return problem(std::move(agrees).error());
    for (auto& [folder, reader] : readers)
      if (auto ended = reader.at_end(); !ended) problem(std::move(ended).error());
    say_what_was_checked(runs, sources, damaged);
  }

  Status rows_of_run(const Json& run, const std::optional<fs::path>& source,
                     std::map<std::string, PartReader>& readers) const {
    std::optional<StoredRun> stored;
    if (source) {
      HEBE_TRY(stored, read_stored_run(*source, Telemetry::read));
    }
    for (const auto table : kDatasetTables) {
      const auto hit = readers.find(partition_path(table, run.at("provenance"), run.at("kind")));
      if (hit == readers.end()) continue; // a table without rows has no file
      const auto count = run.at("rows").at(std::string(name_of(table))).get<std::int64_t>();
      HEBE_CHECK(stored ? hit->second.expect(*stored) : hit->second.skip(run.at("run_id"), count));
    }
    return {};
  }

  void say_what_was_checked(const Json& runs, const std::vector<std::optional<fs::path>>& sources,
                            const std::vector<std::optional<Refusal>>& damaged) {
    std::string missing;
    std::size_t checked = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i])
        ++checked;
      else if (!damaged[i])
        missing += " " + runs[i].at("run_id").get<std::string>();
    }
    if (const auto& synthetic = manifest_.at("synthetic"); !synthetic.is_null())
      report_.not_checked.push_back("rows against their runs, synthetic: " +
                                    synthetic.get<std::string>());
    else if (!missing.empty())
      report_.not_checked.push_back("rows against their runs, not in this data root:" + missing);
    if (checked > 0 && report_.valid())
      report_.passed.push_back(
          fmt::format("rows: those of {} of {} runs recomputed", checked, sources.size()));
  }

  const DataRoot& root_;
  DatasetVerifyRequest request_;
  unsigned threads_;
  VerifyReport report_;
  Json manifest_;
  int layout_ = kDatasetLayout;
  std::map<std::string, const Json*> listed_;             ///< by path
  std::vector<std::string> plain_;                        ///< listed, and there as plain files
  std::map<std::string, std::vector<std::string>> parts_; ///< paths by partition, sorted
};

} // namespace

Result<VerifyReport> verify_dataset(const DataRoot& root, const fs::path& directory,
                                    const DatasetVerifyRequest& request) {
  auto whole = fs::absolute(directory).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  std::error_code ec;
  if (!fs::is_directory(whole, ec))
    return refuse(RefusalCode::not_found, "there is no such dataset", {}, whole.string());
  if (whole.filename().string().starts_with(kUnsealedPrefix))
    return refuse(RefusalCode::half_written,
                  "this dataset was never finished: the process that wrote it died",
                  "take it again; the directory may be deleted", whole.string());
  try {
    return DatasetVerification(root, std::move(whole), request).run();
  } catch (const Json::exception& e) { // a member that the schema does not ask for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), "restore the dataset from a copy",
                  directory.string());
  }
}

} // namespace hebe::evidence
