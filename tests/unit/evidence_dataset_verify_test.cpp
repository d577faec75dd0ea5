// Facts about a dataset that is looked at again: what does not follow from its runs is named, and
// what could not be checked is said.
#include "made_dataset.hpp"

#include <algorithm>

namespace hebe::evidence {
namespace {

TEST_F(DatasetTest, what_could_not_be_checked_is_said) {
  const auto dataset = take();
  fs::rename(first, folder / "elsewhere");
  const auto r = report(dataset.directory);
  EXPECT_TRUE(r.valid()) << problems(r);
  ASSERT_EQ(r.not_checked.size(), 1U);
  EXPECT_NE(r.not_checked[0].find(first.filename().string()), std::string::npos);
  EXPECT_EQ(r.passed.back(), "rows: those of 1 of 2 runs recomputed");
}

TEST_F(DatasetTest, a_run_that_is_there_and_damaged_is_named_as_such) {
  const auto dataset = take();
  auto text = test::bytes_of(first / "windows.jsonl");
  text[text.size() / 2] ^= 0x01;
  fs::remove(first / "windows.jsonl"); // the dataset's own copy may be the same file
  test::overwrite(first / "windows.jsonl", text);
  const auto r = report(dataset.directory);
  ASSERT_FALSE(r.valid());
  EXPECT_NE(r.problems[0].where.find(first.filename().string()), std::string::npos) << problems(r);
  EXPECT_TRUE(r.not_checked.empty()) << problems(r);
}

TEST_F(DatasetTest, rows_of_another_run_forged_into_place_do_not_follow_from_the_run) {
  for (const std::string table : {"windows", "runs", "mechanism", "telemetry"}) {
    const test::ScratchFolder other_folder;
    const DataRoot other(other_folder.path());
    // Seed 3 under the ids of seed 1: the same shape, other numbers.
    auto stored = read_stored_run(first, Telemetry::read).value();
    auto foreign = read_stored_run(test::sealed_with_seed(other, 3), Telemetry::read).value();
    foreign.run_id = stored.run_id;
    foreign.seal = stored.seal;
    foreign.plan["subject"]["launch"]["entry"] = "another_kernel";
    DatasetWriter writer(other, {});
    ASSERT_TRUE(writer.add(foreign));
    ASSERT_TRUE(writer.add(read_stored_run(second, Telemetry::read).value()));
    const auto forged_rows = writer.finish().value();

    const auto dataset = take();
    const auto path = table + "/" + kPartition;
    test::overwrite(dataset.directory / path, test::bytes_of(forged_rows.directory / path));
    const auto theirs = Json::parse(test::bytes_of(forged_rows.directory / "manifest.json"));
    const auto forged = forge(dataset.directory, [&](Json& m) {
      put_right(m, dataset.directory, path);
      for (auto& f : m.at("files"))
        for (const auto& t : theirs.at("files"))
          if (f.at("path") == path && t.at("path") == path) f["rows"] = t.at("rows");
      m["runs"][0]["rows"][table] = theirs.at("runs")[0].at("rows").at(table);
      m["tables"][table]["rows"] = theirs.at("tables").at(table).at("rows");
    });
    const auto r = report(forged);
    ASSERT_FALSE(r.valid()) << table;
    EXPECT_EQ(r.problems[0].code, RefusalCode::analysis_mismatch) << problems(r);
    EXPECT_TRUE(names(r, path)) << problems(r);
    fs::remove_all(forged);
  }
}

TEST_F(DatasetTest, another_sealed_run_in_a_runs_place_is_refused) {
  const auto plan = plan_dataset(root, everything()).value();
  fs::rename(second, folder / "away");
  fs::rename(test::sealed_with_seed(root, 3, 4), second);
  EXPECT_EQ(take_dataset(root, plan).error().code, RefusalCode::digest_mismatch);
  EXPECT_TRUE(nothing_taken());
}

// A dataset as its writer would make it from what is no run's, under the real root.
TEST_F(DatasetTest, rows_that_no_listed_run_gives_are_named) {
  auto runs = std::vector{read_stored_run(first, Telemetry::read).value(),
                          read_stored_run(second, Telemetry::read).value()};
  runs[1].windows.push_back(runs[1].windows.back());
  DatasetWriter writer(root, {});
  for (const auto& run : runs) ASSERT_TRUE(writer.add(run));
  const auto r = report(writer.finish()->directory);
  ASSERT_FALSE(r.valid());
  EXPECT_NE(problems(r).find("there are rows of no listed run"), std::string::npos) << problems(r);
  EXPECT_TRUE(names(r, std::string("windows/") + kPartition));
}

TEST_F(DatasetTest, rows_under_another_runs_name_are_named_even_without_the_runs) {
  auto dataset = take().directory;
  fs::remove_all(root.runs());
  ASSERT_TRUE(report(dataset).valid());
  dataset = forge(dataset, [](Json& m) { m["runs"][0]["run_id"] = "20260101T000000Z-aa-0"; });
  const auto r = report(dataset);
  ASSERT_FALSE(r.valid());
  EXPECT_NE(problems(r).find("required 2 rows of run 20260101T000000Z-aa-0"), std::string::npos)
      << problems(r);
}

TEST_F(DatasetTest, a_synthetic_dataset_says_so_and_its_runs_are_not_looked_for) {
  auto run = read_stored_run(first, Telemetry::read).value();
  run.run_id = "synthetic-1";
  DatasetOrigin origin;
  origin.synthetic = "one run repeated";
  DatasetWriter writer(root, origin);
  ASSERT_TRUE(writer.add(run));
  EXPECT_EQ(writer.add(run).error().code, RefusalCode::internal); // out of order
  run.run_id = "synthetic-2";
  run.seal = std::string(64, 'b');
  ASSERT_TRUE(writer.add(run));
  const auto r = report(writer.finish()->directory);
  EXPECT_TRUE(r.valid()) << problems(r);
  ASSERT_EQ(r.not_checked.size(), 1U);
  EXPECT_NE(r.not_checked[0].find("synthetic: one run repeated"), std::string::npos);
}

TEST_F(DatasetTest, a_run_listed_twice_and_counts_that_do_not_add_up_are_named) {
  const auto dataset = take().directory;
  auto forged = forge(dataset, [](Json& m) { m["runs"].push_back(m["runs"][1]); });
  auto r = report(forged);
  EXPECT_NE(problems(r).find("is in it twice"), std::string::npos) << problems(r);
  EXPECT_TRUE(names(r, "manifest.json"));
  forged = forge(forged, [](Json& m) {
    m["runs"].erase(2);
    m["files"][0]["rows"] = 3;
  });
  r = report(forged);
  EXPECT_NE(problems(r).find("required 3 rows, found 4"), std::string::npos) << problems(r);
  EXPECT_TRUE(names(r, "mechanism/"));
  forged = forge(forged, [](Json& m) {
    m["files"][0]["rows"] = 4;
    m["tables"]["runs"]["columns"][3]["unit"] = "J";
  });
  EXPECT_NE(problems(report(forged)).find("columns of runs"), std::string::npos);
}

TEST_F(DatasetTest, a_path_may_not_leave_the_dataset) {
  auto dataset = take().directory;
  for (const char* path : {"../../runs/x.parquet", "/etc/passwd",
                           "runs/provenance=simulated/kind=../part-00000.parquet",
                           "runs/../../x/kind=aa/part-00000.parquet"}) {
    std::string before;
    dataset = forge(dataset, [&](Json& m) {
      before = m["files"][0]["path"];
      m["files"][0]["path"] = path;
    });
    const auto r = report(dataset);
    ASSERT_FALSE(r.valid());
    EXPECT_EQ(r.problems[0].code, RefusalCode::bad_schema) << path;
    EXPECT_TRUE(names(r, "manifest.json"));
    dataset = forge(dataset, [&](Json& m) { m["files"][0]["path"] = before; });
  }
  EXPECT_TRUE(report(dataset).valid());
}

} // namespace
} // namespace hebe::evidence
