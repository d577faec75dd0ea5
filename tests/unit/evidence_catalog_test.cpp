// Facts about the catalog: what it says is what the directories say, whatever lies between them,
// and nobody ever finds half of one.
#include "evidence/catalog.hpp"

#include "core/sha256.hpp"

#include <map>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kWhen = 1'790'000'123'456'789;
constexpr std::int64_t kDay = 86'400'000'000;

const RunParts& parts() {
  static const auto made = [] {
    auto p = test::made_run(test::smoke_plan());
    p.environment = environment_json(
        {known("device.uuid", "GPU-1", "test"), known("device.name", "a board", "test"),
         unknown("board.driver", "test", "none"), known("run.started", "2026-09-21", "test")});
    return p;
  }();
  return made;
}

template <class R> Refusal refusal_of(const R& result) {
  return result ? Refusal{} : result.error();
}

class CatalogTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};

  void SetUp() override { ASSERT_TRUE(root.initialise()); }

  fs::path sealed(int number = 0) {
    return seal_run(root, parts(), kWhen + number * kDay).value().directory;
  }
  CatalogReport rebuilt() { return rebuild_catalog(root, 2).value(); }
  Catalog opened() { return Catalog::open(root).value(); }

  /// path to kind
  std::map<std::string, std::string> problems() {
    std::map<std::string, std::string> out;
    auto catalog = opened();
    (void)catalog
        .for_each_problem([&](const CatalogProblem& p) {
          EXPECT_FALSE(p.what.empty()) << p.path;
          out[p.path] = p.kind;
        })
        .value();
    return out;
  }
  std::string in_root(const fs::path& path) {
    return path.lexically_relative(root.path()).string();
  }
  std::size_t leftovers() {
    std::size_t n = 0;
    for (const auto& e : fs::directory_iterator(root.path()))
      n += e.path().filename().string().ends_with(".tmp");
    return n;
  }
  /// A manifest with a changed member, and the directory named after it.
  fs::path seal_again(const fs::path& run, const std::function<void(Json&)>& change) {
    auto manifest = Json::parse(test::bytes_of(run / "manifest.json"));
    change(manifest);
    const auto text = canonical_json(manifest).value() + "\n";
    test::overwrite(run / "manifest.json", text);
    const auto name = run.filename().string();
    const auto renamed =
        run.parent_path() / (name.substr(0, name.rfind('-') + 1) + sha256_hex(text).substr(0, 16));
    fs::rename(run, renamed);
    return renamed;
  }
};

TEST_F(CatalogTest, an_empty_root_has_an_empty_catalog) {
  const auto r = rebuilt();
  EXPECT_EQ(r.runs + r.problems + r.campaigns + r.datasets + r.analyses, 0);
  EXPECT_EQ(r.bytes, fs::file_size(Catalog::file_of(root)));
  EXPECT_EQ(opened().run_count().value(), 0);
  EXPECT_EQ(leftovers(), 0U);
}

TEST_F(CatalogTest, a_root_that_is_not_there_is_not_made) {
  const DataRoot absent(folder / "absent");
  EXPECT_EQ(rebuild_catalog(absent, 1).error().code, RefusalCode::not_found);
  EXPECT_FALSE(fs::exists(absent.path()));
}

TEST_F(CatalogTest, a_row_says_what_the_run_says) {
  auto run = sealed();
  run = seal_again(run, [](Json& m) { m["campaign"] = {{"id", "night"}, {"job", "j1"}}; });
  ASSERT_EQ(rebuilt().problems, 0);
  const auto rows = opened().runs_of_campaign("night").value();
  ASSERT_EQ(rows.size(), 1U);
  const auto& r = rows.front();
  const auto& analysis = parts().analysis.json;
  EXPECT_EQ(r.run_id, run.filename().string());
  EXPECT_EQ(r.directory, in_root(run));
  EXPECT_EQ(r.seal, sha256_hex(test::bytes_of(run / "manifest.json")));
  EXPECT_EQ(r.plan_id, parts().plan_id);
  EXPECT_EQ(r.kind, "aa");
  EXPECT_EQ(r.provenance, "simulated");
  EXPECT_EQ(r.tier, "smoke-v1");
  EXPECT_EQ(r.job, "j1");
  EXPECT_EQ(r.case_name, std::nullopt); // this plan has no launch
  EXPECT_EQ(r.verdict, analysis.at("verdict").get<std::string>());
  EXPECT_EQ(r.qualified, analysis.at("qualified").get<bool>());
  EXPECT_EQ(r.energy.percent, analysis.at("energy").at("effect_percent").get<double>());
  const auto shown = "interval_" + analysis.at("energy").at("interval_shown").get<std::string>();
  EXPECT_EQ(r.energy.low_percent, analysis.at("energy").at(shown).at("low_percent").get<double>());
  EXPECT_EQ(r.latency.high_percent,
            analysis.at("latency")
                .at("interval_" + analysis.at("latency").at("interval_shown").get<std::string>())
                .at("high_percent")
                .get<double>());
  EXPECT_EQ(r.energy_per_launch_a_j,
            analysis.at("arms").at("A").at("energy_per_launch_j").get<double>());
  EXPECT_EQ(r.device_uuid, "GPU-1");
  EXPECT_EQ(r.device_name, "a board");
  EXPECT_EQ(r.driver, std::nullopt); // unavailable is NULL
  EXPECT_EQ(r.started, "2026-09-21");
  std::uintmax_t bytes = 0;
  for (const auto& f : fs::directory_iterator(run)) bytes += f.file_size();
  EXPECT_EQ(r.bytes, static_cast<std::int64_t>(bytes));
  EXPECT_TRUE(opened().runs_of_campaign("day").value().empty());
}

TEST_F(CatalogTest, what_is_no_sound_run_is_listed_with_its_kind_and_not_fatal) {
  const auto good = sealed();
  const auto day = good.parent_path();
  const auto damaged = [&](int n, const char* file, std::string_view bytes) {
    const auto run = sealed(n);
    test::overwrite(run / file, bytes);
    return in_root(run / file);
  };
  std::map<std::string, std::string> wanted;
  const auto made = [&](const fs::path& path, const char* kind) {
    fs::create_directories(path);
    wanted[in_root(path)] = kind;
  };
  made(day / ".unsealed-20260921T141523Z-aa-0123456789abcdef-77", "half_written");
  made(day / ".captured-20260921T141523Z-aa-0123456789abcdef", "not_compacted");
  made(day / ".hidden", "foreign");
  made(day / "notes", "foreign");
  made(day / "20260921T141523Z-aa-0123456789ABCDEF", "foreign");
  made(root.runs() / "old", "foreign");
  made(root.runs() / "2026/9", "foreign");
  made(root.path() / "campaigns/.unsealed-x", "half_written");
  test::overwrite(root.runs() / "README", "hello");
  wanted["runs/README"] = "foreign";
  test::overwrite(root.path() / "datasets/notes.txt", "hello");
  wanted["datasets/notes.txt"] = "foreign";
  test::overwrite(day / "a\nb\xff", "");
  wanted[in_root(day) + "/a\\x0ab\\xff"] = "foreign";
  fs::create_directory_symlink(good, day / "20260921T141523Z-aa-aaaaaaaaaaaaaaaa");
  wanted[in_root(day) + "/20260921T141523Z-aa-aaaaaaaaaaaaaaaa"] = "symbolic_link";
  fs::create_symlink("nowhere", root.runs() / "2027");
  wanted["runs/2027"] = "symbolic_link";
  fs::create_directory_symlink(day, root.runs() / "2026/12");
  wanted["runs/2026/12"] = "symbolic_link";
  wanted[damaged(1, "manifest.json", "{}")] = "seal";
  wanted[damaged(2, "analysis.json", "{}")] = "digest"; // by its size
  auto same_size = test::bytes_of(good / "environment.json");
  same_size[5] ^= 1;
  wanted[damaged(3, "environment.json", same_size)] = "digest"; // by its digest
  wanted[damaged(4, "telemetry.parquet", "PAR1")] = "digest";
  wanted[damaged(5, "notes.txt", "mine")] = "foreign";
  const auto cut = sealed(6);
  fs::remove(cut / "windows.jsonl");
  wanted[in_root(cut / "windows.jsonl")] = "unreadable";
  const auto linked = sealed(7);
  fs::rename(linked / "plan.json", folder / "plan.json");
  fs::create_symlink(folder / "plan.json", linked / "plan.json");
  wanted[in_root(linked / "plan.json")] = "symbolic_link";
  const auto another = seal_again(sealed(8), [](Json& m) { m["schema"] = "hebe.run.manifest/2"; });
  wanted[in_root(another / "manifest.json")] = "schema";
  const auto moved = root.runs() / "2026/09/01" / good.filename();
  fs::create_directories(moved.parent_path());
  fs::copy(good, moved, fs::copy_options::recursive);
  wanted[in_root(moved)] = "misplaced";

  const auto r = rebuilt();
  EXPECT_EQ(problems(), wanted);
  EXPECT_EQ(r.problems, static_cast<std::int64_t>(wanted.size()));
  EXPECT_EQ(r.runs, 1);
}

TEST_F(CatalogTest, a_folder_that_may_not_be_listed_is_one_problem) {
  const auto locked = sealed(1).parent_path();
  sealed(0);
  for (const auto& e : fs::recursive_directory_iterator(root.path()))
    if (e.is_directory()) fs::permissions(e, fs::perms::all);
  fs::permissions(root.path(), fs::perms::all);
  fs::permissions(locked, fs::perms::none);
  const int code = test::exit_code_in_child([&] {
    if (!test::become_ordinary_user()) return 77;
    const auto r = rebuild_catalog(root, 1);
    return r && r->runs == 1 && r->problems == 1 ? 0 : 1;
  });
  fs::permissions(locked, fs::perms::all);
  if (code == 77) GTEST_SKIP() << "root that cannot become an ordinary user";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(problems(), (std::map<std::string, std::string>{{in_root(locked), "unreadable"}}));
}

TEST_F(CatalogTest, campaigns_datasets_and_analyses_are_listed) {
  const auto campaign = root.path() / "campaigns";
  fs::create_directories(campaign / "night");
  test::overwrite(campaign / "night/plan.json",
                  R"({"schema":"hebe.campaign.plan/1","name":"all sizes","jobs":[{},{}]})");
  fs::create_directories(campaign / "empty");
  fs::create_directories(campaign / "odd");
  test::overwrite(campaign / "odd/plan.json", R"({"schema":"hebe.campaign.plan/2","jobs":[]})");
  fs::create_directories(root.path() / "datasets/abc");
  fs::create_directories(root.path() / "analyses/def");
  const auto r = rebuilt();
  EXPECT_EQ(r.campaigns, 1);
  EXPECT_EQ(r.datasets, 1);
  EXPECT_EQ(r.analyses, 1);
  EXPECT_EQ(problems(),
            (std::map<std::string, std::string>{{"campaigns/empty/plan.json", "unreadable"},
                                                {"campaigns/odd/plan.json", "schema"}}));
}

TEST_F(CatalogTest, adding_a_run_is_what_a_rebuild_would_have_found_and_may_be_repeated) {
  rebuilt();
  const auto run = sealed();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Catalog::add(root, run));
  EXPECT_EQ(opened().run_count().value(), 1);
  EXPECT_FALSE(fs::exists(Catalog::file_of(root).string() + "-journal"));
  EXPECT_EQ(rebuilt().runs, 1);
}

TEST_F(CatalogTest, adding_to_no_catalog_reads_the_whole_root) {
  sealed(0);
  ASSERT_TRUE(Catalog::add(root, sealed(1)));
  EXPECT_EQ(opened().run_count().value(), 2);
}

TEST_F(CatalogTest, a_damaged_run_is_not_added) {
  rebuilt();
  const auto run = sealed();
  test::overwrite(run / "plan.json", "{}");
  const auto added = Catalog::add(root, run);
  ASSERT_FALSE(added);
  EXPECT_EQ(exit_code_of(added.error().code), ExitCode::bad_data);
  EXPECT_EQ(added.error().where, (run / "plan.json").string());
  EXPECT_EQ(opened().run_count().value(), 0);
}

TEST_F(CatalogTest, a_sealed_run_is_no_longer_half_written) {
  const auto run = sealed();
  const auto half = run.parent_path() / (".unsealed-" + run.filename().string() + "-77");
  fs::create_directory(half);
  EXPECT_EQ(rebuilt().problems, 1);
  fs::remove(half);
  ASSERT_TRUE(Catalog::add(root, run));
  EXPECT_TRUE(problems().empty());
}

TEST_F(CatalogTest, what_is_no_catalog_of_this_version_is_refused_with_its_fix_and_replaced) {
  const auto file = Catalog::file_of(root);
  const auto run = sealed();
  const auto with_sql = [&](const char* sql) {
    return [&file, sql] {
      test::overwrite(file, "");
      auto database = Database::open(file, Database::Access::shared).value();
      (void)database.execute(sql).value();
    };
  };
  struct Row {
    const char* name;
    std::function<void()> make;
    const char* found;
  };
  const Row table[] = {
      {"version 2", with_sql("CREATE TABLE meta(version); INSERT INTO meta VALUES (2)"),
       "found version 2"},
      {"no version", with_sql("CREATE TABLE meta(version)"), "found none"},
      {"other tables", with_sql("CREATE TABLE t(x)"), "no such table"},
      {"not a database", [&] { test::overwrite(file, std::string(5000, 'x')); }, "found none"},
      {"empty", [&] { test::overwrite(file, ""); }, "an empty file"},
      {"cut",
       [&] {
         rebuilt();
         fs::resize_file(file, 5000);
       },
       "found"},
      {"a link",
       [&] {
         fs::remove(file);
         fs::create_symlink("elsewhere", file);
       },
       "a symbolic link"},
      {"a directory",
       [&] {
         fs::remove(file);
         fs::create_directory(file);
       },
       "no regular file"},
  };
  EXPECT_EQ(Catalog::open(root).error().code, RefusalCode::not_found);
  for (const auto& row : table) {
    row.make();
    for (const auto& refusal :
         {refusal_of(Catalog::open(root)), refusal_of(Catalog::add(root, run))}) {
      EXPECT_EQ(refusal.code, RefusalCode::bad_schema) << row.name;
      EXPECT_NE(refusal.what.find("required a Hebe catalog of version 1"), std::string::npos);
      EXPECT_NE(refusal.what.find(row.found), std::string::npos) << row.name << refusal.what;
      EXPECT_NE(refusal.next.find("hebe catalog-rebuild"), std::string::npos);
    }
    if (fs::is_directory(fs::symlink_status(file))) {
      EXPECT_FALSE(rebuild_catalog(root, 1)) << "a directory is not ours to remove";
      fs::remove(file);
    }
    EXPECT_EQ(rebuilt().runs, 1) << row.name;
    EXPECT_EQ(opened().run_count().value(), 1) << row.name;
  }
  EXPECT_FALSE(fs::exists(folder / "elsewhere")); // a link is replaced, never followed
}

} // namespace
} // namespace hebe::evidence
