// Facts about layouts: a dataset of an older layout still verifies with its rows computed again, a
// new one has the static features of qualified arms.
#include "evidence/dataset.hpp"
#include "evidence/dataset_verify.hpp"

#include "core/sha256.hpp"
#include "evidence/arrow_api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/sealed_runs.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kMechanism = "mechanism/provenance=simulated/kind=aa/part-00000.parquet";

std::shared_ptr<arrow::Table> table_in(const fs::path& file) {
  auto source = arrow::io::ReadableFile::Open(file.string()).ValueOrDie();
  auto reader = parquet::arrow::OpenFile(source, arrow::default_memory_pool()).ValueOrDie();
  return reader->ReadTable().ValueOrDie()->CombineChunks().ValueOrDie();
}

std::string text_at(const arrow::Table& t, const std::string& column, std::int64_t row) {
  const auto found = t.GetColumnByName(column);
  return found == nullptr ? "no such column" : found->GetScalar(row).ValueOrDie()->ToString();
}

std::string problems(const VerifyReport& r) {
  std::string text;
  for (const auto& p : r.problems) text += to_text(p) + "\n";
  return text;
}

DatasetRequest everything() {
  DatasetRequest r;
  r.all = true;
  return r;
}

std::vector<std::string> newer_columns() {
  std::vector<std::string> out;
  for (const auto& c : columns_of(DatasetTable::mechanism, kDatasetLayout))
    if (c.since > 1) out.emplace_back(c.name);
  return out;
}

/// A data root with one run and its dataset, as Hebe wrote it before layouts had numbers.
class OldDatasetTest : public testing::Test {
protected:
  OldDatasetTest() {
    fs::copy(fs::path(HEBE_TEST_DATA) / "datasets/layout-1", folder.path(),
             fs::copy_options::recursive);
    dataset = fs::directory_iterator(root.datasets())->path();
  }
  /// The directory is named after the new manifest.
  void change_manifest(const std::function<void(Json&)>& change) {
    auto manifest = Json::parse(test::bytes_of(dataset / "manifest.json"));
    change(manifest);
    const auto text = canonical_json(manifest).value() + "\n";
    test::overwrite(dataset / "manifest.json", text);
    const auto place = dataset.parent_path() / (std::string(kDatasetPrefix) + sha256_hex(text));
    fs::rename(dataset, place);
    dataset = place;
  }
  test::ScratchFolder folder;
  DataRoot root{folder.path()};
  fs::path dataset;
};

TEST_F(OldDatasetTest, still_verifies_with_its_rows_computed_again) {
  ASSERT_FALSE(Json::parse(test::bytes_of(dataset / "manifest.json")).contains("layout"));
  const auto r = verify_dataset(root, dataset).value();
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_EQ(r.passed.back(), "rows: those of 1 of 1 runs recomputed");
  EXPECT_TRUE(r.not_checked.empty());
  EXPECT_EQ(table_in(dataset / kMechanism)->GetColumnByName("loads_sass"), nullptr);
}

// What a forger does: one cell is changed, and every digest is right.
TEST_F(OldDatasetTest, does_not_verify_where_a_cell_is_not_what_the_run_gives) {
  const auto file = dataset / kMechanism;
  const auto rows = table_in(file);
  const int column = rows->schema()->GetFieldIndex("entry");
  arrow::StringBuilder builder;
  ASSERT_TRUE(builder.AppendValues({"another_kernel", "another_kernel"}).ok());
  const auto forged =
      rows->SetColumn(column, rows->schema()->field(column),
                      std::make_shared<arrow::ChunkedArray>(builder.Finish().ValueOrDie()))
          .ValueOrDie();
  fs::remove(file);
  ASSERT_TRUE(
      parquet::arrow::WriteTable(*forged, arrow::default_memory_pool(),
                                 arrow::io::FileOutputStream::Open(file.string()).ValueOrDie(),
                                 1 << 17, parquet::default_writer_properties(),
                                 parquet::ArrowWriterProperties::Builder().store_schema()->build())
          .ok());
  change_manifest([&](Json& manifest) {
    const auto bytes = test::bytes_of(file);
    for (auto& f : manifest["files"])
      if (f["path"] == kMechanism) f["bytes"] = bytes.size(), f["sha256"] = sha256_hex(bytes);
  });
  const auto r = verify_dataset(root, dataset).value();
  ASSERT_EQ(r.problems.size(), 1U) << problems(r);
  EXPECT_EQ(r.problems.front().code, RefusalCode::analysis_mismatch);
  EXPECT_THAT(r.problems.front().what, HasSubstr("column entry"));
}

TEST_F(OldDatasetTest, is_not_of_a_layout_that_its_columns_are_not_of) {
  for (const int layout : {2, 3}) {
    change_manifest([&](Json& manifest) { manifest["layout"] = layout; });
    const auto r = verify_dataset(root, dataset).value();
    EXPECT_FALSE(r.valid()) << layout;
    EXPECT_THAT(problems(r), HasSubstr("bad_schema"));
  }
}

TEST_F(OldDatasetTest, its_runs_give_a_new_one_beside_it) {
  const auto taken = take_dataset(root, plan_dataset(root, everything()).value());
  ASSERT_TRUE(taken) << to_text(taken.error());
  EXPECT_FALSE(taken->existed);
  EXPECT_NE(taken->directory, dataset);
  EXPECT_EQ(Json::parse(test::bytes_of(taken->directory / "manifest.json"))["layout"], 2);
  for (const auto& each : {taken->directory, dataset}) {
    const auto r = verify_dataset(root, each).value();
    EXPECT_TRUE(r.valid()) << problems(r);
    EXPECT_EQ(r.passed.back(), "rows: those of 1 of 1 runs recomputed");
  }
  const auto old_table = table_in(dataset / kMechanism),
             new_table = table_in(taken->directory / kMechanism);
  ASSERT_EQ(newer_columns().size(), 18U);
  for (const auto& column : newer_columns())
    for (const std::int64_t arm : {0, 1})
      EXPECT_EQ(text_at(*new_table, column, arm), "null") << column;
  for (const auto& field : old_table->schema()->fields())
    EXPECT_TRUE(new_table->GetColumnByName(field->name())
                    ->Equals(*old_table->GetColumnByName(field->name())))
        << field->name();
}

/// Two arms of a study, of which one was counted at a smaller launch.
measure::Plan plan_of_qualified_arms() {
  auto plan = test::plan_with_subject(1);
  plan.kind = "ab";
  plan.subject["launch"]["grid"] = {3, 2, 1};
  plan.subject_b = plan.subject;
  plan.qualification = {{"record", std::string(64, 'e')},
                        {"name", "made"},
                        {"provenance", "simulated"},
                        {"point", "1024"},
                        {"a", "baseline"},
                        {"b", "hoisted"},
                        {"equal_bits", true}};
  const Json bytes{{"loaded", 8192},
                   {"stored", 4096},
                   {"unique_loaded", 8000},
                   {"unique_stored", 4000},
                   {"counted_at", nullptr}};
  plan.subject["mechanism"] = {{"variant", "baseline"},
                               {"loads", {{"ttgir", 5}, {"ptx", 20}, {"sass", nullptr}}},
                               {"stores", {{"ttgir", 3}, {"ptx", 6}, {"sass", 7}}},
                               {"registers", 58},
                               {"local_bytes", 0},
                               {"static_shared_bytes", 0},
                               {"blocks_per_multiprocessor", 4},
                               {"warps_per_multiprocessor", 32},
                               {"occupancy_ratio", 0.5},
                               {"instructions", 812},
                               {"bytes", bytes}};
  plan.subject_b["mechanism"] = plan.subject["mechanism"];
  plan.subject_b["mechanism"]["bytes"].update(
      {{"counted_at", {{"m", 64}}}, {"programs", 6}, {"programs_counted", 7}});
  return plan;
}

TEST(DatasetLayout, HasTheStaticFeaturesOfQualifiedArms) {
  const test::ScratchFolder folder;
  const DataRoot root(folder.path());
  const auto sealed =
      seal_run(root, test::made_run(plan_of_qualified_arms()), 1'790'000'123'456'789);
  ASSERT_TRUE(sealed) << to_text(sealed.error());
  const auto taken = take_dataset(root, plan_dataset(root, everything()).value());
  ASSERT_TRUE(taken) << to_text(taken.error());
  const auto t =
      table_in(taken->directory / "mechanism/provenance=simulated/kind=ab/part-00000.parquet");
  const std::vector<std::array<std::string, 3>> rows = {
      {"qualification_record", std::string(64, 'e'), std::string(64, 'e')},
      {"qualification_name", "made", "made"},
      {"point", "1024", "1024"},
      {"variant", "baseline", "hoisted"},
      {"loads_ttgir", "5", "5"},
      {"loads_ptx", "20", "20"},
      {"loads_sass", "null", "null"},
      {"stores_ttgir", "3", "3"},
      {"stores_ptx", "6", "6"},
      {"stores_sass", "7", "7"},
      {"sass_instructions", "812", "812"},
      {"occupancy_ratio", "0.5", "0.5"},
      {"loaded_bytes", "8192", "8192"},
      {"stored_bytes", "4096", "4096"},
      {"unique_loaded_bytes", "8000", "8000"},
      {"unique_stored_bytes", "4000", "4000"},
      {"counted_at", "null", R"({"m":64})"},
      {"counted_programs", "6", "7"}};
  EXPECT_EQ(rows.size(), newer_columns().size());
  for (const auto& [column, a, b] : rows) {
    EXPECT_EQ(text_at(*t, column, 0), a) << column;
    EXPECT_EQ(text_at(*t, column, 1), b) << column;
  }
  const auto r = verify_dataset(root, taken->directory).value();
  EXPECT_TRUE(r.valid()) << problems(r);
}

// Older layouts are what stands before the newer columns: they are never moved.
TEST(DatasetLayout, AddsColumnsAtTheEnd) {
  for (const auto table : kDatasetTables) {
    const auto all = columns_of(table, kDatasetLayout);
    for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i - 1].since, all[i].since);
    for (const auto& c : columns_of(table, 1)) EXPECT_EQ(c.since, 1) << c.name;
  }
  EXPECT_EQ(columns_of(DatasetTable::mechanism, 1).size() + newer_columns().size(),
            columns_of(DatasetTable::mechanism, kDatasetLayout).size());
}

} // namespace
} // namespace hebe::evidence
