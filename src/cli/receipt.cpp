// hebe receipt: key makes a key, sign seals a run, study, tune or file with it, verify looks
// whether a receipt holds.
#include "evidence/receipt.hpp"
#include "campaign/finished_study.hpp"
#include "cli/context.hpp"
#include "core/key_file.hpp"
#include "core/new_file.hpp"
#include "tune/placement.hpp"
#include "tune/tune_verification.hpp"

#include <fmt/format.h>

namespace hebe::cli {
namespace {
namespace fs = std::filesystem;

struct Options {
  std::string file, subject, key, out;
  std::optional<int> valid_days;
};

// Every part of a whole in one report; each line says of which part it is.
evidence::VerifyReport flat(const evidence::PartsReport& whole, const fs::path& directory) {
  evidence::VerifyReport out;
  out.directory = directory;
  for (const auto& [what, report] : whole.parts) {
    for (const auto& text : report.passed) out.passed.push_back(what + ": " + text);
    for (const auto& text : report.not_checked) out.not_checked.push_back(what + ": " + text);
    out.problems.insert(out.problems.end(), report.problems.begin(), report.problems.end());
  }
  return out;
}

evidence::SubjectChecks checks() {
  return {[](const evidence::DataRoot& root,
             const evidence::SealedStudy& study) -> Result<evidence::VerifyReport> {
            HEBE_TRY(const auto whole, campaign::verify_study(root, study));
            return flat(whole, study.directory);
          },
          [](const evidence::DataRoot& root,
             const evidence::StoredRecord& record) -> Result<evidence::VerifyReport> {
            HEBE_TRY(const auto tune, tune::verify_tune(record, tune::sealed_finalists(root)));
            return flat(tune.report, record.file);
          },
          tune::verify_profile,
          [](const fs::path& file) -> Status {
            HEBE_CHECK(tune::read_placement(file));
            return {};
          }};
}

int key(const Context& c, const Options& o) {
  if (c.dry_run) {
    c.print("would make " + o.file + " and " + public_file_of(o.file).string());
    return static_cast<int>(ExitCode::done);
  }
  const auto half = make_key_files(o.file);
  if (!half) return c.refused(half.error());
  if (c.json) {
    c.print_json(
        {{"private", o.file}, {"public", public_file_of(o.file).string()}, {"key", half->id()}});
  } else {
    c.print("private: " + o.file + "  (keep it; nobody else can read it)");
    c.print("public:  " + public_file_of(o.file).string());
    c.print("key:     " + half->id());
  }
  return static_cast<int>(ExitCode::done);
}

int sign(const Context& c, const Options& o) {
  const evidence::DataRoot root(c.data_root);
  const auto key = read_signing_key(o.key);
  if (!key) return c.refused(key.error());
  const auto subject = evidence::read_subject(root, o.subject, checks());
  if (!subject) return c.refused(subject.error());
  const RealClock clock;
  const auto statement = evidence::receipt_statement(*subject, clock, o.valid_days);
  if (!statement) return c.refused(statement.error());
  const auto line = evidence::signed_receipt(*statement, *key);
  if (!line) return c.refused(line.error());
  Result<fs::path> file = fs::path(o.out);
  if (!c.dry_run && o.out.empty()) file = evidence::store_receipt(root, *line);
  if (!c.dry_run && !o.out.empty())
    if (auto written = write_unless_there(o.out, *line + "\n", 0444); !written)
      file = std::unexpected(std::move(written).error());
  if (!file) return c.refused(file.error());
  const auto& says = statement->at("predicate");
  if (c.json) {
    c.print_json({{"receipt", c.dry_run ? Json(nullptr) : Json(file->string())},
                  {"key", key->public_key().id()},
                  {"statement", *statement}});
    return static_cast<int>(ExitCode::done);
  }
  const auto text = [](const Json& v) {
    return v.is_null() ? std::string("not said") : v.is_string() ? v.get<std::string>() : v.dump();
  };
  c.print(fmt::format("{} {}", subject->kind, subject->digests.front().name));
  for (const char* member : {"provenance", "qualified", "verdict", "board", "driver"})
    c.print(fmt::format("  {:<11}{}", member, text(says.at(member))));
  c.print(fmt::format("  {:<11}{}", "expires",
                      says.at("expires").is_null() ? "never" : text(says.at("expires"))));
  for (const auto& n : subject->not_checked) c.print("  not checked  " + n);
  c.print("key:     " + key->public_key().id());
  c.print(c.dry_run ? "dry run: nothing was written" : "receipt: " + file->string());
  return static_cast<int>(ExitCode::done);
}

Json json_of(const evidence::ReceiptReport& report, std::size_t number) {
  Json problems = Json::array();
  for (const auto& [name, refusal] : report.problems) {
    problems.push_back(refusal_json(refusal));
    problems.back()["name"] = name;
  }
  return {{"line", number},
          {"valid", report.valid()},
          {"complete", report.complete()},
          {"passed", report.passed},
          {"not_checked", report.not_checked},
          {"problems", problems},
          {"statement", report.statement}};
}

void print(const Context& c, const evidence::ReceiptReport& report, const std::string& where) {
  c.print(where);
  for (const auto& text : report.passed) c.print("  ok           " + text);
  for (const auto& text : report.not_checked) c.print("  not checked  " + text);
  for (const auto& [name, refusal] : report.problems)
    c.print(fmt::format("  BAD          {}: {}", name, refusal.what));
}

int verify(const Context& c, const Options& o) {
  const evidence::DataRoot root(c.data_root);
  const auto key = read_public_key(o.key);
  if (!key) return c.refused(key.error());
  const auto file = evidence::find_receipt(root, o.file);
  if (!file) return c.refused(file.error());
  const auto lines = evidence::receipt_lines(*file);
  if (!lines) return c.refused(lines.error());
  const RealClock clock;
  const auto subject_checks = checks();
  const evidence::ReceiptCheck check{root, *key, clock, subject_checks, o.subject};
  bool valid = true, complete = true, looked_at = true;
  Json list = Json::array();
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const auto where = fmt::format("{}:{}", file->string(), i + 1);
    const auto report = evidence::verify_receipt(check, (*lines)[i], where);
    if (!report) return c.refused(report.error());
    valid = valid && report->valid();
    complete = complete && report->complete();
    looked_at = looked_at && report->looked_at;
    if (c.json)
      list.push_back(json_of(*report, i + 1));
    else
      print(c, *report, where);
  }
  if (c.json)
    c.print_json({{"receipt", file->string()},
                  {"key", key->id()},
                  {"valid", valid},
                  {"complete", complete},
                  {"receipts", std::move(list)}});
  else
    c.print(!valid       ? "the receipt does NOT hold"
            : complete   ? "the receipt holds"
            : !looked_at ? "incomplete: only the signature was checked, not what was signed"
                         : "incomplete: the signature fits; of what was signed not all is here");
  if (!valid) return static_cast<int>(ExitCode::bad_data);
  return static_cast<int>(complete ? ExitCode::done : ExitCode::inconclusive);
}

} // namespace

Command receipt_command() {
  return {
      "receipt",
      "Sign runs, studies, tunes and files (DSSE, in-toto, Ed25519), and verify what was signed",
      [](CLI::App& app, Context& c) {
        auto o = std::make_shared<Options>();
        auto action = std::make_shared<std::function<int()>>();
        app.require_subcommand(1);
        const auto add = [&](const char* name, const char* help,
                             int (*run)(const Context&, const Options&)) {
          auto* sub = app.add_subcommand(name, help);
          sub->callback([&c, o, action, run] { *action = [&c, o, run] { return run(c, *o); }; });
          return sub;
        };
        add("key", "Make a key: FILE, for you alone, and FILE.pub, for everybody", key)
            ->add_option("file", o->file, "a file that is not there yet")
            ->required();
        auto* signing = add("sign", "Verify a subject, then sign what it says", sign);
        signing->add_option("subject", o->subject, "a run, study or tune (id or place), or a file")
            ->required();
        signing->add_option("--key", o->key, "the private key's file")->required();
        signing->add_option("--valid-days", o->valid_days,
                            "days until it expires (default: never)");
        signing->add_option("--out", o->out, "a new file (default: receipts/ in the data root)");
        auto* verifying =
            add("verify", "Does a receipt hold, and is it still what its subject says", verify);
        verifying->add_option("receipt", o->file, "a file, or part of a receipt's name")
            ->required();
        verifying->add_option("--key", o->key, "the public key's file")->required();
        verifying->add_option("--subject", o->subject,
                              "where the subject lies (default: looked for in the data root)");
        return [action] { return (*action)(); };
      }};
}

} // namespace hebe::cli
