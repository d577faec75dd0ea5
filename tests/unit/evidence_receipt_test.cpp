// Facts about receipts: what is signed, what is not, and the name of everything that can be wrong
// with one.
#include "evidence/receipt.hpp"

#include "core/sha256.hpp"
#include "evidence/dsse.hpp"
#include "evidence/receipt_words.hpp"
#include "evidence/sealed_run.hpp"

#include <functional>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../data/support/made_run.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::evidence {
namespace {
namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kWhen = 1'790'000'123'456'789; // 2026-09-21T14:15:23Z

const RunParts& parts() {
  static const auto made = test::made_run(test::smoke_plan());
  return made;
}

class ReceiptTest : public testing::Test {
protected:
  test::ScratchFolder folder;
  DataRoot root{folder / "root"};
  SigningKey key = SigningKey::from_raw(std::string(32, 'k')).value();
  PublicKey half = key.public_key();
  VirtualClock clock;
  VerifyReport of_study;
  PartsReport of_profile;
  Status of_placement;
  SubjectChecks checks{
      [this](const DataRoot&, const SealedStudy&) { return Result<VerifyReport>(of_study); },
      [](const DataRoot&, const StoredRecord&) { return Result<VerifyReport>(VerifyReport{}); },
      [this](const DataRoot&, const fs::path&) { return Result<PartsReport>(of_profile); },
      [this](const fs::path&) { return of_placement; }};
  std::string run; ///< its id

  void SetUp() override {
    clock.jump_wall(std::chrono::microseconds(kWhen - clock.wall_us()));
    run = seal_run(root, parts(), kWhen).value().run_id;
  }
  ReceiptSubject subject(const std::string& name) {
    return read_subject(root, name, checks).value();
  }
  Json statement(std::optional<int> valid_days = {}) {
    return receipt_statement(subject(run), clock, valid_days).value();
  }
  std::string signed_line(const Json& s) { return signed_receipt(s, key).value(); }
  /// A receipt for the run with something changed before it was signed.
  std::string changed(const std::function<void(Json&)>& change) {
    auto s = statement();
    change(s);
    return signed_line(s);
  }
  ReceiptReport verified(const std::string& line, const std::string& where_subject = {}) {
    return verify_receipt({root, half, clock, checks, where_subject}, line, "r:1").value();
  }
  static std::vector<std::string> names(const ReceiptReport& r) {
    std::vector<std::string> out;
    for (const auto& p : r.problems) {
      out.push_back(p.name);
      EXPECT_EQ(exit_code_of(p.refusal.code), ExitCode::bad_data) << p.refusal.what;
    }
    return out;
  }
};

TEST_F(ReceiptTest, says_what_the_run_says_and_names_its_seal) {
  const auto s = statement();
  const auto stored = root.find_run(run).value();
  EXPECT_EQ(s.at("_type"), "https://in-toto.io/Statement/v1");
  EXPECT_EQ(s.at("predicateType"), "urn:hebe:receipt:1");
  ASSERT_EQ(s.at("subject").size(), 1U);
  EXPECT_EQ(s.at("subject")[0].at("name"), run);
  EXPECT_EQ(s.at("subject")[0].at("digest").at("sha256"),
            sha256_hex(test::bytes_of(stored / "manifest.json")));
  const auto& p = s.at("predicate");
  EXPECT_EQ(p.at("provenance"), "simulated");
  EXPECT_EQ(p.at("qualified"), false);
  EXPECT_EQ(p.at("verdict"), parts().analysis.json.at("verdict"));
  EXPECT_EQ(p.at("signed"), "2026-09-21T14:15:23Z");
  EXPECT_TRUE(p.at("expires").is_null());
  EXPECT_THAT(p.at("claim").get<std::string>(), HasSubstr("nothing was measured"));
}

TEST_F(ReceiptTest, holds_while_its_subject_does) {
  const auto line = signed_line(statement());
  const auto report = verified(line);
  EXPECT_THAT(names(report), ElementsAre());
  EXPECT_EQ(report.statement, statement());
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.passed.size(), 5U);
}

TEST_F(ReceiptTest, is_stored_once_under_its_digest_and_found_by_it) {
  const auto line = signed_line(statement());
  const auto file = store_receipt(root, line).value();
  EXPECT_EQ(file.filename(), sha256_hex(line) + ".dsse.jsonl");
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0444U);
  EXPECT_EQ(store_receipt(root, line).value(), file);
  EXPECT_EQ(find_receipt(root, sha256_hex(line).substr(3, 20)).value(), file);
  EXPECT_THAT(receipt_lines(file).value(), ElementsAre(line));
  EXPECT_EQ(find_receipt(root, "nothing").error().code, RefusalCode::not_found);
  for (const auto& other : {line + "\n" + line + "\n", line, line + "\n\n", line + " \n"}) {
    test::overwrite(file, other);
    EXPECT_EQ(receipt_lines(file).error().code, RefusalCode::digest_mismatch) << other.size();
  }
  EXPECT_FALSE(store_receipt(root, line)); // something else lies there; it is not touched
  test::overwrite(folder / "many.jsonl", line + "\n" + line + "\n");
  EXPECT_EQ(receipt_lines(folder / "many.jsonl").value().size(), 2U);
  test::overwrite(folder / "empty", "");
  EXPECT_EQ(receipt_lines(folder / "empty").error().code, RefusalCode::bad_schema);
}

TEST_F(ReceiptTest, every_flipped_byte_is_refused) {
  const auto line = signed_line(statement());
  const auto hint = line.find("keyid"); // without that name the signature may be anybody's
  for (std::size_t at = 0; at < line.size(); at += at + 1 == hint ? 6 : 1)
    for (const int flip : {1, 2, 0x20, 0x80}) {
      auto flipped = line;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      ASSERT_FALSE(verified(flipped).valid()) << "byte " << at;
    }
}

TEST_F(ReceiptTest, another_key_is_named_with_both_ids) {
  const auto other = SigningKey::made().value();
  const auto report = verified(signed_receipt(statement(), other).value());
  EXPECT_THAT(names(report), ElementsAre("wrong key"));
  EXPECT_EQ(report.problems[0].refusal.code, RefusalCode::wrong_key);
  EXPECT_THAT(report.problems[0].refusal.what, HasSubstr(half.id()));
  EXPECT_THAT(report.problems[0].refusal.what, HasSubstr(other.public_key().id()));
  EXPECT_TRUE(report.statement.is_null()); // nothing of it is believed
}

TEST_F(ReceiptTest, other_bytes_another_payload_type_and_no_envelope_are_named) {
  auto envelope = envelope_from(signed_line(statement()), "r").value();
  auto flipped = envelope;
  flipped.payload[10] ^= 1;
  EXPECT_THAT(names(verified(envelope_line(flipped).value())), ElementsAre("signature"));
  envelope.payload_type = "application/vnd.other+json";
  const auto report = verified(envelope_line(envelope).value());
  EXPECT_THAT(names(report), ElementsAre("payload type"));
  EXPECT_THAT(report.problems[0].refusal.what, HasSubstr("application/vnd.other+json"));
  EXPECT_THAT(names(verified("{}")), ElementsAre("envelope"));
  // Signed by the right key as another type: not a receipt all the same.
  envelope.signatures.clear();
  (void)add_signature(envelope, key);
  EXPECT_THAT(names(verified(envelope_line(envelope).value())), ElementsAre("payload type"));
}

TEST_F(ReceiptTest, another_statement_or_predicate_is_named) {
  const std::pair<std::function<void(Json&)>, const char*> cases[] = {
      {[](Json& s) { s["_type"] = "https://in-toto.io/Statement/v0.1"; }, "statement"},
      {[](Json& s) { s.erase("_type"); }, "statement"},
      {[](Json& s) { s["predicateType"] = "urn:other"; }, "predicate"},
      {[](Json& s) { s["predicate"]["schema"] = "hebe.receipt/2"; }, "predicate"},
      {[](Json& s) { s["predicate"].erase("provenance"); }, "predicate"},
      {[](Json& s) { s["predicate"]["more"] = 1; }, "predicate"},
      {[](Json& s) { s["predicate"]["provenance"] = "certain"; }, "predicate"},
      {[](Json& s) { s["predicate"] = "hebe"; }, "predicate"},
      {[](Json& s) { s["subject"] = Json::array(); }, "statement"},
      {[](Json& s) {
         s["subject"][0]["digest"] = {{"md5", "00"}};
       },
       "statement"},
      {[](Json& s) { s["subject"][0]["digest"]["sha256"] = "abc"; }, "statement"}};
  int number = 0;
  for (const auto& [change, name] : cases)
    EXPECT_THAT(names(verified(changed(change))), ElementsAre(name)) << number++;
  EXPECT_THAT(names(verified(changed([](Json& s) { s = "hebe"; }))), ElementsAre("statement"));
}

TEST_F(ReceiptTest, expires_at_the_second_that_it_names) {
  const auto line = signed_line(statement(30));
  EXPECT_EQ(statement(30).at("predicate").at("expires"), "2026-10-21T14:15:23Z");
  const auto jump_to = [&](std::int64_t us) {
    clock.jump_wall(std::chrono::microseconds(us - clock.wall_us()));
  };
  const std::int64_t end = kWhen / 1'000'000 * 1'000'000 + 30LL * 86'400'000'000;
  jump_to(end - 1);
  EXPECT_THAT(names(verified(line)), ElementsAre());
  jump_to(end);
  const auto report = verified(line);
  ASSERT_THAT(names(report), ElementsAre("expired"));
  EXPECT_EQ(report.problems[0].refusal.code, RefusalCode::receipt_expired);
  EXPECT_THAT(report.problems[0].refusal.what, HasSubstr("until 2026-10-21T14:15:23Z"));
  jump_to(end + 1'000'000);
  EXPECT_THAT(verified(line).problems[0].refusal.what, HasSubstr("now it is 2026-10-21T14:15:24Z"));
  jump_to(kWhen - 1'000'000);
  EXPECT_THAT(verified(line).not_checked, Contains(HasSubstr("ahead of this machine's clock")));
  for (const int days : {0, -1, 36'501})
    EXPECT_EQ(receipt_statement(subject(run), clock, days).error().code, RefusalCode::bad_argument);
  for (const auto* time : {"2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z"})
    EXPECT_THAT(names(verified(changed([&](Json& s) { s["predicate"]["expires"] = time; }))),
                ElementsAre("predicate"));
}

TEST_F(ReceiptTest, that_says_more_than_its_subject_is_named) {
  const auto claim = claim_of("run", "measured");
  const auto measured = verified(changed([&](Json& s) {
    s["predicate"]["provenance"] = "measured";
    s["predicate"]["claim"] = claim;
  }));
  EXPECT_THAT(names(measured), ElementsAre("downgraded provenance", "claim"));
  EXPECT_THAT(measured.problems[0].refusal.what,
              HasSubstr("says \"measured\", its subject \"simulated\""));
  EXPECT_THAT(names(verified(changed([](Json& s) { s["predicate"]["provenance"] = nullptr; }))),
              ElementsAre("provenance"));
  const std::pair<const char*, Json> cases[] = {{"qualified", true},  {"qualified", nullptr},
                                                {"verdict", "lower"}, {"board", "H200"},
                                                {"driver", "580"},    {"claim", "it is true"}};
  for (const auto& [member, value] : cases)
    EXPECT_THAT(names(verified(changed([&](Json& s) { s["predicate"][member] = value; }))),
                ElementsAre(member));
  EXPECT_THAT(
      names(verified(changed([](Json& s) {
        s["subject"].push_back({{"name", "x"}, {"digest", {{"sha256", std::string(64, '0')}}}});
      }))),
      ElementsAre("subjects"));
}

TEST_F(ReceiptTest, of_what_is_not_here_says_that_it_was_not_checked) {
  const auto line = signed_line(statement());
  const auto moved = folder / "elsewhere" / run;
  fs::create_directories(moved.parent_path());
  fs::rename(root.find_run(run).value(), moved);
  const auto report = verified(line);
  EXPECT_THAT(names(report), ElementsAre());
  EXPECT_THAT(report.not_checked, ElementsAre(HasSubstr("is not in this data root")));
  EXPECT_FALSE(report.looked_at || report.complete());
  EXPECT_THAT(names(verified(line, moved.string())), ElementsAre());
  const auto none = verify_receipt({root, half, clock, checks, "/none/here"}, line, "r");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, RefusalCode::not_found);
}

TEST_F(ReceiptTest, of_another_or_a_changed_subject_is_named) {
  const auto line = signed_line(statement());
  auto plan = test::smoke_plan(3, 7);
  const auto other = seal_run(root, test::made_run(plan), kWhen + 60'000'000).value().directory;
  EXPECT_THAT(names(verified(line, other.string())), ElementsAre("subject digest"));
  const auto file = root.find_run(run).value() / "windows.jsonl";
  auto bytes = test::bytes_of(file);
  bytes[100] ^= 1;
  test::overwrite(file, bytes);
  EXPECT_THAT(names(verified(line)), ElementsAre("subject"));
  const auto refused = receipt_statement(subject(run), clock, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::digest_mismatch);
  EXPECT_THAT(refused.error().what, HasSubstr("does not verify, so it is not signed"));
}

TEST_F(ReceiptTest, of_a_file_takes_the_weakest_provenance_in_it) {
  const auto file = root.path() / "profiles" / "p.json";
  fs::create_directories(file.parent_path());
  const auto says = [&](const std::string& text) {
    test::overwrite(file, text);
    return subject(file.string());
  };
  auto s = says(R"({"schema":"hebe.profile/1","provenance":"measured","board":"H200","driver":"5",)"
                R"("rows":[{"provenance":"measured"},{"x":{"provenance":"estimated"}}]})");
  EXPECT_EQ(s.kind, "profile");
  EXPECT_EQ(s.digests[0].name, "profiles/p.json");
  EXPECT_EQ(s.says.at("provenance"), "estimated");
  EXPECT_EQ(s.says.at("board"), "H200");
  const auto line = signed_line(receipt_statement(s, clock, {}).value());
  EXPECT_THAT(names(verified(line)), ElementsAre()); // found in the data root by its name
  s = says(R"([{"provenance":"simulated"},{"provenance":"measured"}])");
  EXPECT_EQ(s.kind, "file");
  EXPECT_EQ(s.says.at("provenance"), "simulated");
  EXPECT_THAT(names(verified(line)), ElementsAre("subject digest"));
  EXPECT_TRUE(says("no JSON").says.at("provenance").is_null());
  EXPECT_TRUE(says(R"({"provenance":"certain"})").says.at("provenance").is_null());
}

TEST_F(ReceiptTest, of_a_profile_rests_on_its_tunes) {
  const auto file = folder / "p.json";
  test::overwrite(file, R"({"schema":"hebe.profile/1","rows":[{"provenance":"measured"}]})");
  const auto line = signed_line(receipt_statement(subject(file.string()), clock, {}).value());
  EXPECT_TRUE(verified(line, file.string()).complete());
  auto& part = of_profile.part("tune t");
  of_profile.missing(part, "the record");
  const auto report = verified(line, file.string());
  EXPECT_THAT(names(report), ElementsAre());
  EXPECT_TRUE(report.looked_at && !report.complete());
  EXPECT_THAT(report.not_checked, Contains(HasSubstr("tune t: the record")));
  EXPECT_EQ(receipt_statement(subject(file.string()), clock, {}).error().code,
            RefusalCode::not_found);
  part.problems.push_back({RefusalCode::analysis_mismatch, "row 3 is not it", "w", "n", {}});
  EXPECT_THAT(names(verified(line, file.string())), ElementsAre("subject"));
  EXPECT_EQ(receipt_statement(subject(file.string()), clock, {}).error().code,
            RefusalCode::analysis_mismatch);
  test::overwrite(file, R"({"schema":"hebe.placement/1"})");
  of_placement = refuse(RefusalCode::bad_schema, "it has no rows");
  EXPECT_EQ(read_subject(root, file.string(), checks).error().code, RefusalCode::bad_schema);
}

TEST_F(ReceiptTest, whose_subject_leads_out_of_the_data_root_is_named) {
  test::overwrite(folder / "secret", "x");
  const auto line = changed([](Json& s) {
    s["predicate"]["kind"] = "file";
    s["subject"][0]["name"] = "../secret";
  });
  EXPECT_THAT(names(verified(line)), ElementsAre("subject"));
  EXPECT_THAT(names(verified(changed([](Json& s) {
                s["predicate"]["kind"] = "study";
                s["subject"][0]["name"] = "/etc";
              }))),
              ElementsAre("subject"));
}

class ReceiptOfStudy : public ReceiptTest {
protected:
  SealedStudy study;
  void SetUp() override {
    ReceiptTest::SetUp();
    const auto seal = subject(run).digests[0].sha256;
    const auto row = [&](const char* job) {
      return Json{{"job", job}, {"run_id", run}, {"seal", seal}};
    };
    const std::string digest(64, 'd');
    study = seal_study(root,
                       {{"schema", "hebe.study/1"},
                        {"name", "s"},
                        {"campaign", "c"},
                        {"plan_sha256", digest},
                        {"qualification", digest},
                        {"calibration", nullptr},
                        {"runs", {row("aa"), row("primary")}},
                        {"analysis", "analysis_sha256_" + digest},
                        {"dataset", "dataset_sha256_" + digest},
                        {"provenance", "simulated"},
                        {"study_qualified", false},
                        {"verdict", "lower"}},
                       {{"page.html", "p"}, {"effects.svg", "s"}})
                .value();
  }
};

TEST_F(ReceiptOfStudy, names_its_parts) {
  const auto s = subject(study.id);
  EXPECT_EQ(s.kind, "study");
  ASSERT_EQ(s.digests.size(), 5U);
  EXPECT_EQ(s.digests[0],
            (NamedDigest{study.id, sha256_hex(test::bytes_of(study.directory / "study.json"))}));
  EXPECT_EQ(s.digests[1].name, run);
  EXPECT_EQ(s.digests[3].sha256, std::string(64, 'd'));
  EXPECT_THAT(s.missing, ElementsAre("analysis_sha256_" + std::string(64, 'd')));
}

TEST_F(ReceiptOfStudy, is_not_made_without_its_analysis_or_with_a_part_that_does_not_verify) {
  auto refused = receipt_statement(subject(study.id), clock, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::not_found);
  EXPECT_THAT(refused.error().what, HasSubstr("analysis_sha256_"));
  of_study.problems.push_back({RefusalCode::analysis_mismatch, "run 3 is not it", "w", "n", {}});
  refused = receipt_statement(subject(study.id), clock, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("run 3 is not it"));
}

TEST_F(ReceiptOfStudy, signed_elsewhere_is_compared_as_far_as_its_parts_are_here) {
  auto s = subject(study.id);
  s.missing.clear(); // as where all of it lay
  s.says["board"] = "H200";
  auto line = signed_line(receipt_statement(s, clock, {}).value());
  const auto report = verified(line);
  EXPECT_THAT(names(report), ElementsAre());
  EXPECT_THAT(report.not_checked, ElementsAre(HasSubstr("analysis_sha256_")));
  s.says["provenance"] = "measured";
  s.says["qualified"] = true;
  line = signed_line(receipt_statement(s, clock, {}).value());
  EXPECT_THAT(names(verified(line)), ElementsAre("downgraded provenance", "qualified", "claim"));
}

} // namespace
} // namespace hebe::evidence
