// Two sealed runs and a dataset of them, as tests take, damage and forge it.
#pragma once

#include "evidence/dataset.hpp"
#include "evidence/dataset_verify.hpp"

#include "core/files.hpp"
#include "core/sha256.hpp"
#include "evidence/arrow_api.hpp"

#include <gtest/gtest.h>

#include "../data/support/sealed_runs.hpp"

#include <functional>
#include <memory>
#include <string>

namespace hebe::evidence {
namespace fs = std::filesystem;

inline DatasetRequest everything() {
  DatasetRequest r;
  r.all = true;
  return r;
}

inline std::shared_ptr<arrow::Table> table_in(const fs::path& file) {
  auto source = arrow::io::ReadableFile::Open(file.string()).ValueOrDie();
  auto reader = parquet::arrow::OpenFile(source, arrow::default_memory_pool()).ValueOrDie();
  return reader->ReadTable().ValueOrDie()->CombineChunks().ValueOrDie();
}

inline std::string text_at(const arrow::Table& t, const char* column, std::int64_t row) {
  return t.GetColumnByName(column)->GetScalar(row).ValueOrDie()->ToString();
}

class DatasetTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};
  fs::path first = test::sealed_with_seed(root, 1), second = test::sealed_with_seed(root, 2, 1);

  StoredDataset take(PartBounds bounds = {}) {
    return take_dataset(root, plan_dataset(root, everything()).value(), bounds).value();
  }
  VerifyReport report(const fs::path& dataset) { return verify_dataset(root, dataset).value(); }
  bool nothing_taken() const {
    std::error_code ec;
    return !fs::exists(root.datasets(), ec) || fs::is_empty(root.datasets());
  }
  static std::string problems(const VerifyReport& r) {
    std::string text;
    for (const auto& p : r.problems) text += to_text(p) + "\n";
    return text;
  }
  static bool names(const VerifyReport& r, const std::string& part) {
    for (const auto& p : r.problems)
      if (p.where.find(part) != std::string::npos) return true;
    return false;
  }
  // A forger's dataset: manifest changed, directory renamed to its digest.
  fs::path forge(const fs::path& dataset, const std::function<void(Json&)>& change) {
    auto manifest = Json::parse(test::bytes_of(dataset / "manifest.json"));
    change(manifest);
    const auto text = canonical_json(manifest).value() + "\n";
    test::overwrite(dataset / "manifest.json", text);
    auto renamed = dataset.parent_path() / (std::string(kDatasetPrefix) + sha256_hex(text));
    fs::rename(dataset, renamed);
    return renamed;
  }
  static void put_right(Json& manifest, const fs::path& dataset, const std::string& path) {
    for (auto& f : manifest.at("files"))
      if (f.at("path") == path) {
        const auto bytes = test::bytes_of(dataset / path);
        f["bytes"] = bytes.size();
        f["sha256"] = sha256_hex(bytes);
      }
  }
};

inline constexpr const char* kPartition = "provenance=simulated/kind=aa/part-00000.parquet";

} // namespace hebe::evidence
