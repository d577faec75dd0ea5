// Facts about datasets: the same runs are the same bytes, nothing unverified goes in, and a crash
// leaves none or a whole one.
#include "made_dataset.hpp"

#include <algorithm>

#include <sys/resource.h>
#include <sys/stat.h>

#include "../data/support/child_process.hpp"
#include "../data/support/crash_points.hpp"

namespace hebe::evidence {
namespace {

TEST_F(DatasetTest, a_dataset_verifies_and_says_what_it_checked) {
  const auto dataset = take();
  EXPECT_EQ(dataset.runs, 2U);
  const auto r = report(dataset.directory);
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_EQ(dataset.id, std::string(kDatasetPrefix) + r.seal);
  EXPECT_TRUE(r.not_checked.empty());
  EXPECT_EQ(r.passed.back(), "rows: those of 2 of 2 runs recomputed");
}

TEST_F(DatasetTest, the_same_runs_are_the_same_bytes_and_exist_already) {
  const auto once = take();
  EXPECT_FALSE(once.existed);
  const auto again = take();
  EXPECT_TRUE(again.existed);
  EXPECT_EQ(again.id, once.id);
  EXPECT_TRUE(root.unsealed().empty());
  const test::ScratchFolder elsewhere;
  fs::copy(root.runs(), elsewhere / "runs", fs::copy_options::recursive);
  const DataRoot other(elsewhere.path());
  EXPECT_EQ(take_dataset(other, plan_dataset(other, everything()).value())->id, once.id);
  DatasetRequest named;
  named.runs = {second.filename().string(), first.string(), first.string()};
  EXPECT_EQ(plan_dataset(root, named)->runs.size(), 2U);
  EXPECT_EQ(take_dataset(root, plan_dataset(root, named).value())->id, once.id);
}

TEST_F(DatasetTest, a_damaged_dataset_is_not_said_to_exist_already) {
  const auto dataset = take();
  const auto file = dataset.directory / "runs" / kPartition;
  auto bytes = test::bytes_of(file);
  bytes[bytes.size() / 2] ^= 1;
  test::overwrite(file, bytes);
  const auto again = take_dataset(root, plan_dataset(root, everything()).value());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, RefusalCode::digest_mismatch);
  EXPECT_EQ(again.error().where, file.string());
}

TEST_F(DatasetTest, rows_are_the_runs_own_numbers) {
  const auto dataset = take();
  const auto runs = table_in(dataset.directory / "runs" / kPartition);
  const auto& analysis = test::parts_of_seed(1).analysis.json;
  ASSERT_EQ(runs->num_rows(), 2);
  EXPECT_EQ(text_at(*runs, "run_id", 0), first.filename().string());
  const auto real = [&](const char* name) {
    return std::static_pointer_cast<arrow::DoubleScalar>(
               runs->GetColumnByName(name)->GetScalar(0).ValueOrDie())
        ->value;
  };
  EXPECT_EQ(real("energy_effect_percent"), analysis.at("energy").at("effect_percent"));
  EXPECT_EQ(real("energy_low_percent"), analysis.at("energy").at("interval_t").at("low_percent"));
  EXPECT_EQ(real("energy_per_launch_a_j"), analysis.at("arms").at("A").at("energy_per_launch_j"));
  EXPECT_EQ(text_at(*runs, "campaign", 0), "null"); // a single run
  const auto windows = table_in(dataset.directory / "windows" / kPartition);
  EXPECT_EQ(windows->num_rows(), 12); // 2 runs of 3 pairs
  const auto telemetry = table_in(dataset.directory / "telemetry" / kPartition);
  EXPECT_EQ(telemetry->num_rows(), table_in(first / "telemetry.parquet")->num_rows() +
                                       table_in(second / "telemetry.parquet")->num_rows());
}

TEST_F(DatasetTest, what_a_run_does_not_say_is_null_and_never_0) {
  const auto t = table_in(take().directory / "mechanism" / kPartition);
  ASSERT_EQ(t->num_rows(), 4); // two arms a run
  EXPECT_EQ(text_at(*t, "registers", 0), "26");
  EXPECT_EQ(text_at(*t, "warps_per_multiprocessor", 0), "64");
  EXPECT_EQ(text_at(*t, "registers", 1), "null"); // arm B: unavailable
  EXPECT_EQ(text_at(*t, "warps_per_multiprocessor", 1), "null");
  EXPECT_EQ(text_at(*t, "spills", 0), "null"); // the compiler does not say
  EXPECT_EQ(text_at(*t, "grid_x", 0), "1");
}

TEST_F(DatasetTest, columns_carry_unit_and_description) {
  const auto schema = table_in(take().directory / "telemetry" / kPartition)->schema();
  for (const auto& field : schema->fields()) {
    ASSERT_NE(field->metadata(), nullptr) << field->name();
    EXPECT_FALSE(field->metadata()->Get("description").ValueOr("").empty()) << field->name();
  }
  EXPECT_EQ(schema->GetFieldByName("power_w")->metadata()->Get("unit").ValueOr(""), "W");
  EXPECT_EQ(schema->metadata()->Get("provenance").ValueOr(""), "simulated");
}

TEST_F(DatasetTest, parts_and_row_groups_are_bounded_and_hold_the_same_rows) {
  const auto whole = table_in(take().directory / "telemetry" / kPartition);
  PartBounds small;
  small.rows_per_group = 16;
  small.rows = 48;
  const auto dataset = take(small);
  std::vector<std::shared_ptr<arrow::Table>> parts;
  for (int i = 0;; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "part-%05d.parquet", i);
    const auto file = dataset.directory / "telemetry/provenance=simulated/kind=aa" / name;
    if (!fs::exists(file)) break;
    auto source = arrow::io::ReadableFile::Open(file.string()).ValueOrDie();
    auto reader = parquet::arrow::OpenFile(source, arrow::default_memory_pool()).ValueOrDie();
    for (int g = 0; g < reader->num_row_groups(); ++g)
      EXPECT_GE(reader->parquet_reader()->metadata()->RowGroup(g)->num_rows(), 1);
    parts.push_back(table_in(file));
    EXPECT_LE(parts.back()->num_rows(), 48);
  }
  EXPECT_GE(parts.size(), 3U);
  EXPECT_TRUE(arrow::ConcatenateTables(parts).ValueOrDie()->Equals(*whole));
  const auto r = report(dataset.directory);
  EXPECT_TRUE(r.valid()) << problems(r); // runs that span parts are compared as well
}

TEST_F(DatasetTest, a_run_that_does_not_verify_is_refused_by_name_and_nothing_is_written) {
  const auto file = second / "windows.jsonl";
  auto bytes = test::bytes_of(file);
  bytes[bytes.size() / 2] ^= 1;
  test::overwrite(file, bytes);
  const auto plan = plan_dataset(root, everything());
  ASSERT_FALSE(plan);
  EXPECT_EQ(exit_code_of(plan.error().code), ExitCode::bad_data);
  EXPECT_NE(plan.error().what.find(second.filename().string()), std::string::npos);
  EXPECT_TRUE(nothing_taken());
}

TEST_F(DatasetTest, a_run_whose_analysis_does_not_follow_from_its_samples_is_refused_by_name) {
  auto analysis = Json::parse(test::bytes_of(second / "analysis.json"));
  analysis["energy"]["effect_percent"] = -5.0;
  const auto text = canonical_json(analysis).value() + "\n";
  test::overwrite(second / "analysis.json", text);
  const auto forged = test::reseal(second, [&](Json& m) { // every digest is right
    for (auto& f : m.at("files"))
      if (f.at("path") == "analysis.json") {
        f["bytes"] = text.size();
        f["sha256"] = sha256_hex(text);
      }
  });
  const auto plan = plan_dataset(root, everything());
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, RefusalCode::analysis_mismatch);
  EXPECT_NE(plan.error().what.find(forged.filename().string()), std::string::npos);
  EXPECT_TRUE(nothing_taken());
}

TEST_F(DatasetTest, a_run_that_changes_after_it_was_verified_is_refused) {
  const auto plan = plan_dataset(root, everything()).value();
  auto bytes = test::bytes_of(second / "telemetry.parquet");
  bytes[bytes.size() / 2] ^= 1;
  test::overwrite(second / "telemetry.parquet", bytes);
  const auto taken = take_dataset(root, plan);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, RefusalCode::digest_mismatch);
  EXPECT_FALSE(taken.error().not_written.empty());
  EXPECT_TRUE(nothing_taken());
}

TEST_F(DatasetTest, which_runs_must_be_said_in_exactly_one_way) {
  EXPECT_EQ(plan_dataset(root, {}).error().code, RefusalCode::bad_argument);
  auto both = everything();
  both.runs = {first.string()};
  EXPECT_EQ(plan_dataset(root, both).error().code, RefusalCode::bad_argument);
  DatasetRequest campaign;
  campaign.campaign = "nobody-ran-this";
  EXPECT_EQ(plan_dataset(root, campaign).error().code, RefusalCode::not_found);
}

TEST_F(DatasetTest, runs_of_the_same_content_count_once_and_are_named) {
  const auto copy = test::sealed_with_seed(root, 1, 5);
  const auto plan = plan_dataset(root, everything()).value();
  EXPECT_EQ(plan.runs.size(), 2U);
  ASSERT_EQ(plan.origin.same_content.size(), 1U);
  EXPECT_EQ(plan.origin.same_content[0].first, copy.filename().string());
  EXPECT_TRUE(report(take_dataset(root, plan)->directory).valid());
}

TEST_F(DatasetTest, killed_at_any_step_there_is_no_dataset_or_one_that_verifies) {
  const auto take_one = [&] {
    auto request = everything();
    request.threads = 1;
    (void)take_dataset(root, plan_dataset(root, request).value(), {});
  };
  const auto all = test::crash_points_of(take_one);
  ASSERT_GE(all.size(), 8U);
  for (std::size_t at = 0; at < all.size(); ++at) {
    fs::remove_all(root.datasets());
    ASSERT_TRUE(test::ends_at_crash_point(at, take_one)) << all[at];
    const auto found = find_dataset(root, "");
    EXPECT_EQ(found.has_value(), at == all.size() - 1) << all[at]; // only after the rename
    if (found) {
      EXPECT_TRUE(report(*found).valid()) << all[at];
    }
    const auto half = root.unsealed();
    EXPECT_EQ(half.size(), at >= 2 && !found ? 1U : 0U) << all[at];
    for (const auto& directory : half)
      EXPECT_EQ(verify_dataset(root, directory).error().code, RefusalCode::half_written);
    EXPECT_EQ(take().existed, found.has_value()) << all[at]; // the next is not in its way
  }
}

TEST_F(DatasetTest, a_disk_that_fills_up_leaves_nothing_under_any_name) {
  const auto plan = plan_dataset(root, everything()).value();
  const int code = test::exit_code_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{2048, 2048};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto taken = take_dataset(root, plan);
    if (taken) return 1;
    if (taken.error().code != RefusalCode::io_failed) return 2; // EFBIG here, ENOSPC on a full disk
    return taken.error().where.find("part-00000.parquet") == std::string::npos ? 3 : 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(nothing_taken());
}

TEST_F(DatasetTest, a_folder_that_may_not_be_written_is_no_permission) {
  fs::create_directories(root.datasets());
  fs::permissions(folder.path(), fs::perms::others_read | fs::perms::others_exec,
                  fs::perm_options::add);
  fs::permissions(root.datasets(), fs::perms::owner_read | fs::perms::owner_exec |
                                       fs::perms::others_read | fs::perms::others_exec);
  const auto plan = plan_dataset(root, everything()).value();
  const int code = test::exit_code_in_child([&] {
    if (!test::become_ordinary_user()) return 77;
    const auto taken = take_dataset(root, plan);
    return !taken && taken.error().code == RefusalCode::no_permission ? 0 : 1;
  });
  fs::permissions(root.datasets(), fs::perms::owner_all);
  if (code == 77) GTEST_SKIP() << "root that cannot become an ordinary user";
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(nothing_taken());
}

TEST_F(DatasetTest, files_are_read_only) {
  for (const auto& entry : fs::recursive_directory_iterator(take().directory)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(entry.status().permissions() & (fs::perms::owner_write | fs::perms::group_write),
              fs::perms::none)
        << entry.path();
  }
}

TEST_F(DatasetTest, datasets_are_found_by_part_of_their_id) {
  EXPECT_EQ(find_dataset(root, "").error().code, RefusalCode::not_found);
  const auto dataset = take();
  EXPECT_EQ(find_dataset(root, "").value(), dataset.directory);
  EXPECT_EQ(find_dataset(root, dataset.id.substr(20, 12)).value(), dataset.directory);
  EXPECT_EQ(find_dataset(root, "zzz").error().code, RefusalCode::not_found);
}

} // namespace
} // namespace hebe::evidence
