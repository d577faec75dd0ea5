// Facts about verify: one changed bit anywhere is named by its file, and a record that was changed
// and sealed again does not follow from its samples.
#include "evidence/verify.hpp"

#include "core/sha256.hpp"
#include "evidence/sealed_run.hpp"
#include "evidence/telemetry.hpp"
#include "kernel/artifact_store.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;

constexpr const char* kFiles[] = {"plan.json",         "environment.json", "windows.jsonl",
                                  "telemetry.parquet", "analysis.json",    "manifest.json"};
constexpr std::int64_t kWhen = 1'790'000'123'456'789;

const RunParts& parts() {
  static const auto made = test::made_run(test::smoke_plan());
  return made;
}

class VerifyTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder.path()};
  fs::path run = seal_run(root, parts(), kWhen).value().directory;

  VerifyReport report() { return verify_run(run).value(); }

  // A problem that names this file.
  static bool names(const VerifyReport& r, const std::string& file) {
    for (const auto& p : r.problems)
      if (p.where.find("/" + file) != std::string::npos) return true;
    return false;
  }
  static std::string problems(const VerifyReport& r) {
    std::string text;
    for (const auto& p : r.problems) text += to_text(p) + "\n";
    return text;
  }

  // What a forger does: digests and sizes put right, the directory named after the new seal.
  void seal_again(const std::function<void(Json&)>& change_manifest = {}) {
    auto manifest = Json::parse(test::bytes_of(run / "manifest.json"));
    for (auto& f : manifest.at("files")) {
      const auto bytes = test::bytes_of(run / f.at("path").get<std::string>());
      f["bytes"] = bytes.size();
      f["sha256"] = sha256_hex(bytes);
    }
    if (change_manifest) change_manifest(manifest);
    const auto text = canonical_json(manifest).value() + "\n";
    test::overwrite(run / "manifest.json", text);
    const auto name = run.filename().string();
    const auto renamed =
        run.parent_path() / (name.substr(0, name.rfind('-') + 1) + sha256_hex(text).substr(0, 16));
    fs::rename(run, renamed);
    run = renamed;
  }
  // Changes one JSON document of the run: a file, or a line of windows.jsonl.
  void change(const std::string& file, const std::function<void(Json&)>& edit,
              std::size_t line = 0) {
    std::string out;
    std::istringstream text(test::bytes_of(run / file));
    std::string row;
    for (std::size_t i = 0; std::getline(text, row); ++i) {
      auto json = Json::parse(row);
      if (i == line) edit(json);
      out += json.is_null() ? "" : canonical_json(json).value() + "\n";
    }
    test::overwrite(run / file, out);
  }
};

TEST_F(VerifyTest, a_run_as_it_was_sealed_is_valid) {
  const auto r = report();
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_EQ(r.seal, sha256_hex(test::bytes_of(run / "manifest.json")));
  EXPECT_EQ(r.analysis.at("verdict"), parts().analysis.json.at("verdict"));
  EXPECT_GE(r.passed.size(), 4U); // manifest, digests, schemas, analysis
}

TEST_F(VerifyTest, one_flipped_bit_anywhere_is_named_by_its_file) {
  for (const std::string file : kFiles) {
    const auto good = test::bytes_of(run / file);
    const std::size_t step = std::max<std::size_t>(good.size() / 37, 1);
    for (std::size_t at = 0; at < good.size() + step; at += step) {
      const auto byte = std::min(at, good.size() - 1); // the last one too
      auto bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << (at / step % 8)));
      test::overwrite(run / file, bad);
      const auto r = report();
      ASSERT_FALSE(r.valid()) << file << " byte " << byte;
      ASSERT_TRUE(names(r, file)) << file << " byte " << byte << ": " << problems(r);
      EXPECT_TRUE(r.analysis.is_null()) << file;
    }
    test::overwrite(run / file, good);
  }
  EXPECT_TRUE(report().valid());
}

TEST_F(VerifyTest, a_file_that_is_cut_longer_or_gone_is_named) {
  for (const std::string file : kFiles) {
    const auto good = test::bytes_of(run / file);
    for (const auto& bad : {good.substr(0, good.size() - 1), good.substr(0, good.size() / 2),
                            std::string(), good + "\n", good + good}) {
      test::overwrite(run / file, bad);
      EXPECT_TRUE(names(report(), file)) << file << " of " << bad.size() << " bytes";
    }
    fs::remove(run / file);
    EXPECT_TRUE(names(report(), file)) << file;
    test::overwrite(run / file, good);
  }
  EXPECT_TRUE(report().valid());
}

TEST_F(VerifyTest, a_file_that_does_not_belong_is_named) {
  test::overwrite(run / "notes.txt", "");
  EXPECT_TRUE(names(report(), "notes.txt"));
  fs::remove(run / "notes.txt");
  fs::create_directory(run / ".hidden");
  EXPECT_TRUE(names(report(), ".hidden"));
}

TEST_F(VerifyTest, two_files_swapped_are_both_named) {
  const auto plan = test::bytes_of(run / "plan.json"),
             analysis = test::bytes_of(run / "analysis.json");
  test::overwrite(run / "plan.json", analysis);
  test::overwrite(run / "analysis.json", plan);
  const auto r = report();
  EXPECT_TRUE(names(r, "plan.json") && names(r, "analysis.json")) << problems(r);
}

TEST_F(VerifyTest, a_run_under_another_name_is_not_that_run) {
  const auto other = run.parent_path() / "20260921T141523Z-aa-0123456789abcdef";
  fs::rename(run, other);
  run = other;
  EXPECT_TRUE(names(report(), "manifest.json"));
}

TEST_F(VerifyTest, a_manifest_that_was_edited_and_hashed_again_no_longer_fits_the_name) {
  const auto name = run;
  change("analysis.json", [](Json& j) { j["verdict"] = "lower"; });
  seal_again();
  fs::rename(run, name); // all consistent but for the name
  run = name;
  const auto r = report();
  EXPECT_TRUE(names(r, "manifest.json")) << problems(r);
}

TEST_F(VerifyTest, what_was_changed_and_sealed_again_does_not_follow_from_the_samples) {
  struct Row {
    const char* name;
    std::function<void(
        VerifyTest_what_was_changed_and_sealed_again_does_not_follow_from_the_samples_Test&)>
        change;
    RefusalCode code;
    const char* where;
  };
  using Self = VerifyTest_what_was_changed_and_sealed_again_does_not_follow_from_the_samples_Test;
  const auto in = [](const char* file, const char* pointer, Json value, std::size_t line = 0) {
    return [=](Self& t) {
      t.change(
          file, [&](Json& j) { j.at(Json::json_pointer(pointer)) = value; }, line);
      t.seal_again();
    };
  };
  const auto scaled = [](const char* file, const char* pointer, double factor,
                         std::size_t line = 0) {
    return [=](Self& t) {
      t.change(
          file,
          [&](Json& j) {
            auto& v = j.at(Json::json_pointer(pointer));
            v = v.get<double>() * factor;
          },
          line);
      t.seal_again();
    };
  };
  using enum RefusalCode;
  const Row table[] = {
      {"the verdict", in("analysis.json", "/verdict", "lower"), analysis_mismatch,
       "/analysis.json"},
      {"qualified", in("analysis.json", "/qualified", true), analysis_mismatch, "/analysis.json"},
      {"a condition", in("analysis.json", "/conditions/0/holds", true), analysis_mismatch,
       "/analysis.json"},
      {"the provenance", in("analysis.json", "/provenance", "measured"), analysis_mismatch,
       "/analysis.json"},
      {"the effect by 0.1 %", scaled("analysis.json", "/energy/effect_percent", 1.001),
       analysis_mismatch, "/analysis.json"},
      {"an interval by 10 ppm", scaled("analysis.json", "/energy/interval_t/low_percent", 1.00001),
       analysis_mismatch, "/analysis.json"},
      {"a pair", scaled("analysis.json", "/pairs/1/energy_percent", 1.001), analysis_mismatch,
       "/analysis.json"},
      {"the energy of an arm", scaled("analysis.json", "/arms/B/energy_per_launch_j", 0.999),
       analysis_mismatch, "/analysis.json"},
      {"a window's energy", scaled("windows.jsonl", "/estimate/energy_per_launch_j", 0.999, 1),
       analysis_mismatch, "/windows.jsonl:2"},
      {"a window's time", scaled("windows.jsonl", "/elapsed_s", 0.999, 2), analysis_mismatch,
       "/windows.jsonl:3"},
      {"a window's edge",
       [](Self& t) {
         t.change(
             "windows.jsonl",
             [](Json& j) { j["begin_ns"] = j["begin_ns"].get<std::int64_t>() + 3'000'000; }, 3);
         t.seal_again();
       },
       analysis_mismatch, "/windows.jsonl:4"},
      {"a window's counter",
       [](Self& t) {
         t.change(
             "windows.jsonl",
             [](Json& j) {
               j["end"]["energy_mj"] = j["end"]["energy_mj"].get<std::int64_t>() + 100;
             },
             3);
         t.seal_again();
       },
       analysis_mismatch, "/windows.jsonl:4"},
      {"a gate", in("windows.jsonl", "/gates/0/passed", false, 4), analysis_mismatch,
       "/windows.jsonl:5"},
      {"an acceptance", in("windows.jsonl", "/pair_accepted", false, 4), analysis_mismatch,
       "/windows.jsonl:5"},
      {"a window's provenance", in("windows.jsonl", "/estimate/provenance", "measured", 4),
       analysis_mismatch, "/windows.jsonl:5"},
      {"the acquisition's provenance", in("windows.jsonl", "/provenance", "measured"),
       digest_mismatch, "/manifest.json"},
      {"the reference", scaled("windows.jsonl", "/reference/latency_a_s", 1.001), analysis_mismatch,
       "/windows.jsonl"},
      {"the warm-up", in("windows.jsonl", "/warm_up/stable", !parts().acquisition.warm_up.stable),
       analysis_mismatch, "/windows.jsonl"},
      {"the primary's name", in("windows.jsonl", "/primary/name", "nvml.samples"),
       analysis_mismatch, "/windows.jsonl"},
      {"a window of another arm",
       in("windows.jsonl", "/arm", parts().windows[1].reading.arm == 0 ? "A" : "B", 1), bad_schema,
       "/windows.jsonl"},
      {"a window of no pair", in("windows.jsonl", "/pair", 99, 1), bad_schema, "/windows.jsonl"},
      {"a window that is gone",
       [](Self& t) {
         t.change(
             "windows.jsonl", [](Json& j) { j = nullptr; }, 6);
         t.seal_again();
       },
       bad_schema, "/windows.jsonl"},
      {"a pair that is gone",
       [](Self& t) {
         t.change(
             "windows.jsonl", [](Json& j) { j = nullptr; }, 6);
         t.change(
             "windows.jsonl", [](Json& j) { j = nullptr; }, 5);
         t.seal_again();
       },
       analysis_mismatch, "/analysis.json"},
      {"all windows",
       [](Self& t) {
         test::overwrite(t.run / "windows.jsonl", "");
         t.seal_again();
       },
       bad_schema, "/windows.jsonl"},
      {"a line that is no JSON",
       [](Self& t) {
         test::overwrite(t.run / "windows.jsonl", test::bytes_of(t.run / "windows.jsonl") + "{\n");
         t.seal_again();
       },
       bad_schema, "/windows.jsonl:8"},
      {"a sample",
       [](Self& t) {
         auto samples = parts().samples;
         for (auto& s : samples)
           if (s.t_mono_ns > parts().windows[2].reading.begin_ns + 100'000'000 &&
               s.t_mono_ns < parts().windows[2].reading.begin_ns + 200'000'000)
             s.raw_mw += 5000;
         test::overwrite(t.run / "telemetry.parquet",
                         telemetry_parquet(samples, parts().windows, parts().acquisition).value());
         t.seal_again();
       },
       analysis_mismatch, "/windows.jsonl:4"},
      {"all samples",
       [](Self& t) {
         test::overwrite(t.run / "telemetry.parquet",
                         telemetry_parquet({}, parts().windows, parts().acquisition).value());
         t.seal_again();
       },
       analysis_mismatch, "/windows.jsonl:2"},
      {"telemetry that is no Parquet",
       [](Self& t) {
         test::overwrite(t.run / "telemetry.parquet", "PAR1");
         t.seal_again();
       },
       bad_schema, "/telemetry.parquet"},
      {"the plan's margin", in("plan.json", "/margins/energy_percent", 5), digest_mismatch,
       "/plan.json"},
      {"the plan and its id",
       [](Self& t) {
         t.change("plan.json", [](Json& j) { j["margins"]["energy_percent"] = 5; });
         const auto id = content_id(Json::parse(test::bytes_of(t.run / "plan.json"))).value();
         t.seal_again([&](Json& m) { m["plan_id"] = id; });
       },
       analysis_mismatch, "/analysis.json"},
      {"the plan's seed beyond 64 bits",
       [](Self& t) {
         t.change("plan.json", [](Json& j) { j["seed"] = "99999999999999999999"; });
         const auto id = content_id(Json::parse(test::bytes_of(t.run / "plan.json"))).value();
         t.seal_again([&](Json& m) { m["plan_id"] = id; });
       },
       bad_schema, "/plan.json"},
      {"an environment of another schema", in("environment.json", "/schema", "hebe.environment/2"),
       bad_schema, "/environment.json"},
      {"the manifest's plan",
       [](Self& t) { t.seal_again([](Json& m) { m["plan_id"] = std::string(64, '0'); }); },
       digest_mismatch, "/plan.json"},
      {"the manifest's provenance",
       [](Self& t) { t.seal_again([](Json& m) { m["provenance"] = "measured"; }); },
       digest_mismatch, "/manifest.json"},
      {"a manifest without the windows",
       [](Self& t) { t.seal_again([](Json& m) { m["files"].erase(2); }); }, bad_schema,
       "/manifest.json"},
      {"a manifest with a path outside",
       [](Self& t) { t.seal_again([](Json& m) { m["files"][0]["path"] = "../plan.json"; }); },
       bad_schema, "/manifest.json"},
  };
  for (const auto& row : table) {
    fs::remove_all(root.runs());
    run = seal_run(root, parts(), kWhen).value().directory;
    row.change(*this);
    Result<VerifyReport> r;
    ASSERT_NO_THROW(r = verify_run(run)) << row.name;
    ASSERT_TRUE(r) << row.name;
    ASSERT_FALSE(r->valid()) << row.name;
    bool found = false;
    for (const auto& p : r->problems)
      found |= p.code == row.code && p.where.find(row.where) != std::string::npos;
    EXPECT_TRUE(found) << row.name << ": " << problems(*r);
  }
}

TEST_F(VerifyTest, the_cubin_is_checked_where_it_is) {
  const std::string cubin = "cubin bytes";
  auto with_cubin = parts();
  with_cubin.plan.cubins = {sha256_hex(cubin), sha256_hex(cubin)};
  with_cubin.plan.subject["artifacts"]["cubin"] = sha256_hex(cubin);
  with_cubin.plan_id = content_id(to_json(with_cubin.plan)).value();
  with_cubin.analysis = measure::analyse(with_cubin.plan, with_cubin.plan_id,
                                         with_cubin.acquisition, with_cubin.windows)
                            .value();
  run = seal_run(root, with_cubin, kWhen + 1'000'000).value().directory;
  const kernel::ArtifactStore store(root.path());
  ASSERT_FALSE(report().not_checked.empty()) << problems(report()); // no artifacts folder
  (void)store.put("something else").value();
  ASSERT_FALSE(report().not_checked.empty());
  EXPECT_NE(report().not_checked.front().find("not in this data root"), std::string::npos);
  const auto digest = store.put(cubin).value();
  auto r = report();
  EXPECT_TRUE(r.valid() && r.not_checked.empty());
  EXPECT_EQ(r.passed.back(), "artifacts: 1 of 1");
  test::overwrite(store.path_of(digest), "damaged");
  r = report();
  ASSERT_EQ(r.problems.size(), 1U);
  EXPECT_EQ(r.problems[0].where, store.path_of(digest).string());
}

TEST_F(VerifyTest, a_run_can_be_verified_away_from_its_data_root) {
  const test::ScratchFolder elsewhere;
  fs::copy(run, elsewhere.path() / run.filename(), fs::copy_options::recursive);
  run = elsewhere.path() / run.filename();
  const auto r = report();
  EXPECT_TRUE(r.valid()) << problems(r);
  EXPECT_FALSE(r.not_checked.empty());
}

TEST_F(VerifyTest, a_trailing_slash_changes_nothing) {
  const auto r = verify_run(run.string() + "/");
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->valid()) << problems(*r);
}

TEST_F(VerifyTest, there_is_nothing_to_verify_where_there_is_no_run) {
  EXPECT_EQ(verify_run(folder / "absent").error().code, RefusalCode::not_found);
  EXPECT_EQ(verify_run(run / "plan.json").error().code, RefusalCode::not_found);
  const auto empty = folder / "empty";
  fs::create_directory(empty);
  EXPECT_FALSE(verify_run(empty)->valid());
}

TEST(FirstDifference, finds_what_differs_by_more_than_rounding_and_where) {
  struct Row {
    Json stored, now;
    const char* path; // empty: they agree
  };
  const Row table[] = {
      {1.0, 1.0 + 1e-7, ""},
      {1.0, 1.0 + 2e-6, ": stored"},
      {-5e8, -5e8 * (1 + 5e-7), ""},
      {0.0, 1e-13, ""},
      {0.0, 1e-11, ": stored"},
      {1, 1.0, ""}, // 1.0 is printed as 1
      {1, "1", ": stored"},
      {true, 1, ": stored"},
      {nullptr, 0, ": stored"},
      {nullptr, nullptr, ""},
      {"lower", "higher", ": stored"},
      {{{"a", {1, 2, 3}}}, {{"a", {1, 2, 4}}}, "/a[2]"},
      {{{"a", {1, 2}}}, {{"a", {1, 2, 3}}}, "/a: stored 2 items, recomputed 3"},
      {{{"a", 1}, {"b", 2}}, {{"a", 1}}, "/b: not recomputed"},
      {{{"a", 1}}, {{"a", 1}, {"b", 2}}, "/b: missing in the stored record"},
      // Of prose the words count; numbers in it are printed ones, whose last digit may turn.
      {{{"evidence", "2 of 3, p 1.5e-07"}}, {{"evidence", "2 of 3, p 1.6e-07"}}, ""},
      {{{"evidence", "2 of 3"}}, {{"evidence", "2 or 3"}}, "/evidence: stored"},
      {{{"reason", "too few"}}, {{"reason", ""}}, "/reason: stored"},
      {{{"a", {{"evidence", "x 1"}, {"holds", true}}}},
       {{"a", {{"evidence", "x 2"}, {"holds", false}}}},
       "/a/holds"},
  };
  for (const auto& row : table) {
    const auto where = first_difference(row.stored, row.now);
    EXPECT_EQ(where.empty(), *row.path == '\0')
        << row.stored << " against " << row.now << ": " << where;
    EXPECT_TRUE(where.starts_with(row.path)) << where;
  }
}

} // namespace
} // namespace hebe::evidence
