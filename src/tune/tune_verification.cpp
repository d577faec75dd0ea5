#include "tune/tune_verification.hpp"

#include "evidence/sealed_run.hpp"
#include "tune/configuration_space.hpp"
#include "tune/disagreement.hpp"
#include "tune/stored_host.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

void take(evidence::VerifyReport& report, std::vector<Refusal> problems) {
  for (auto& p : problems) report.problems.push_back(std::move(p));
}

class TuneVerification {
public:
  TuneVerification(const evidence::StoredRecord& record, const FinalistOf& finalist)
      : record_(record), finalist_(finalist), json_(record.json) {}

  Result<VerifiedTune> run() {
    HEBE_TRY(tune_, stored_tune(json_, record_.file.string()));
    auto& whole = out_.report.part("tune " + record_.id);
    whole.directory = record_.file;
    whole.passed = {"name and schema"};
    header(whole);
    const auto& shapes = json_.at("shapes");
    if (shapes.size() != tune_.spec.shapes.size()) {
      take(whole, disagreements(shapes.size(), tune_.spec.shapes.size(), "shapes: how many"));
      return std::move(out_);
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) shape(shapes[i], tune_.spec.shapes[i]);
    return std::move(out_);
  }

private:
  // What the record says of itself, against its own specification.
  void header(evidence::VerifyReport& report) {
    auto again = record_of({}, tune_.spec, tune_.place);
    if (!again) return report.problems.push_back(std::move(again).error());
    auto recorded = json_;
    recorded["shapes"] = Json::array();
    (*again)["meter"] = recorded.at("meter"); // whatever its status was, the runs name the meter
    const auto before = report.problems.size();
    take(report, disagreements(recorded, *again, "record"));
    if (report.problems.size() == before)
      report.passed.push_back("record: operation, objective and search are its specification's");
    report.not_checked.push_back("the meter's status (" + tune_.meter.status +
                                 "): its qualification is not part of a tune");
  }

  // What a specification alone says of the candidates.
  void candidates(evidence::VerifyReport& report, const Json& shape, const ShapeSpec& due) {
    const auto& all = shape.at("candidates");
    const auto baseline = due.shape.name + ": the baseline's ";
    take(report, disagreements(all[0].at("backend"), due.baseline.backend, baseline + "backend"));
    take(report, disagreements(all[0].at("configuration"), due.baseline.configuration,
                               baseline + "configuration"));
    for (const auto& backend : tune_.spec.backends) {
      const bool is_here =
          backend.shapes.empty() ||
          std::ranges::find(backend.shapes, due.shape.name) != backend.shapes.end();
      if (runs_on_the_host(backend)) { // one candidate, or why there is none
        const auto count = std::ranges::count_if(
            all, [&](const Json& c) { return c.at("backend") == backend.name; });
        take(report, disagreements(count, is_here ? 1 : 0,
                                   due.shape.name + ": how many candidates of " + backend.name));
      }
      if (backend.kind != "triton" || !is_here) continue;
      auto space = backend.space;
      space.values.update(backend.option_space.values);
      const auto listed = space.configurations(sizes_json(due.shape), backend.where);
      if (!listed) return report.problems.push_back(listed.error());
      std::vector<Json> asked = *listed, tried;
      for (const auto& c : all)
        if (c.at("backend") == backend.name) tried.push_back(c.at("configuration"));
      if (due.baseline.backend == backend.name &&
          std::ranges::find(asked, due.baseline.configuration) == asked.end())
        asked.push_back(due.baseline.configuration);
      std::ranges::sort(asked);
      std::ranges::sort(tried);
      take(report,
           disagreements(tried, asked, due.shape.name + ": the configurations of " + backend.name));
    }
  }

  void voided(evidence::VerifyReport& report, const Json& recorded, TunedShape again) const {
    again.voided = Refusal{};
    auto blank = shape_record(again, tune_.spec);
    if (!blank) return report.problems.push_back(std::move(blank).error());
    (*blank)["voided"] = recorded.at("voided");
    take(report, disagreements(recorded, *blank, again.prepared.spec->shape.name));
    if (report.valid()) report.passed.push_back("voided: it has no cost and no row");
  }

  // False where it could not be run again, or where there is none.
  bool search(evidence::VerifyReport& report, const Json& recorded, TunedShape& again) const {
    if (recorded.at("search").is_null() || recorded.at("finalists").is_null()) {
      report.problems.push_back({RefusalCode::bad_schema,
                                 "it is not voided and has no search or no finalists",
                                 again.prepared.spec->shape.name,
                                 "restore the record from a copy",
                                 {}});
      return false;
    }
    auto searched = search_again(recorded, tune_);
    if (!searched) {
      report.problems.push_back(std::move(searched).error());
      return false;
    }
    again.searched = std::move(*searched);
    report.passed.push_back(
        fmt::format("search: {} windows of {} candidates in the order of its seed",
                    again.searched->outcome.taken.size(), again.searched->candidate.size()));
    if (const auto hosts = again.searched->hosts.size(); hosts > 0)
      report.passed.push_back(
          fmt::format("host code: edges and lengths of the windows of {} candidate{}", hosts,
                      hosts == 1 ? "" : "s"));
    report.not_checked.push_back("the samples behind the search's windows: a record keeps their "
                                 "mean power and the counter, not the samples");
    return true;
  }

  void shape(const Json& recorded, const ShapeSpec& due) {
    const RowKey key{tune_.spec.operation, bucket_text(due), tune_.spec.dtype, tune_.place.board};
    if (recorded.at("voided").is_null()) out_.not_known.insert(key);
    TunedShape again;
    again.prepared = candidates_in(recorded, due);
    {
      auto& report = out_.report.part("shape " + due.shape.name);
      candidates(report, recorded, due);
      if (!recorded.at("voided").is_null()) return voided(report, recorded, std::move(again));
      if (!search(report, recorded, again)) return;
    }
    const auto measured = finalists(recorded);
    auto& report = out_.report.part("choice of " + due.shape.name);
    if (measured) {
      auto confirmed = confirm_again(recorded, *again.searched, tune_, *measured);
      if (confirmed) {
        again.confirmed = std::move(*confirmed);
        if (const auto& why = again.confirmed->not_compared)
          report.not_checked.push_back("why no run pairs the choice with the fastest: " +
                                       why->what);
      } else {
        report.problems.push_back(std::move(confirmed).error());
      }
    } else {
      report.not_checked.push_back("the choice: one of its runs is not here, or does not verify");
    }
    compare(report, recorded, again);
  }

  std::string bucket_text(const ShapeSpec& due) const {
    const auto bucket = bucket_of(due.shape.sizes, tune_.spec.bucketed);
    return bucket ? text_of(*bucket) : std::string(); // the specification was read with it
  }

  /// What each run gave; none, where one is missing or is not what it should be.
  std::optional<std::vector<campaign::JobOutcome>> finalists(const Json& recorded) {
    std::vector<campaign::JobOutcome> out;
    for (const auto& run : recorded.at("finalists").at("runs")) {
      const auto seal = run.at("seal").get<std::string>();
      auto& report = out_.report.part("run " + seal);
      const auto candidates = recorded.at("candidates").size();
      if (run.at("a") >= candidates || run.at("b") >= candidates) {
        report.problems.push_back({RefusalCode::bad_schema,
                                   "it pairs a candidate that is not in the record",
                                   recorded.at("name"),
                                   "restore the record from a copy",
                                   {}});
        continue;
      }
      if (auto outcome = finalist_(out_.report, report, {recorded, run, tune_}))
        out.push_back(std::move(*outcome));
    }
    if (out.size() != recorded.at("finalists").at("runs").size()) return std::nullopt;
    return out;
  }

  void compare(evidence::VerifyReport& report, const Json& recorded, const TunedShape& again) {
    auto computed = shape_record(again, tune_.spec);
    if (!computed) return report.problems.push_back(std::move(computed).error());
    if (!again.confirmed) (*computed)["finalists"] = recorded.at("finalists");
    const auto name = recorded.at("name").get<std::string>();
    take(report, disagreements(recorded, *computed, name));
    if (!report.valid()) return;
    report.passed.push_back("costs, drops and idle power: computed again from the readings");
    if (!again.confirmed) return;
    report.passed.push_back("choice, effects and verdicts: computed again from the runs' samples");
    auto row = row_of(again, tune_.spec, tune_.place, record_.id, "the profile");
    if (row)
      if (auto taken = out_.rows.record(*row, "the profile"); !taken)
        row = std::unexpected(std::move(taken).error());
    if (!row) return report.problems.push_back(std::move(row).error());
    out_.not_known.erase(row->key);
  }

  const evidence::StoredRecord& record_;
  const FinalistOf& finalist_;
  const Json& json_;
  StoredTune tune_;
  VerifiedTune out_;
};

} // namespace

Result<evidence::StoredRecord> find_tune(const evidence::DataRoot& root, const std::string& name) {
  return evidence::find_record(tunes_of(root), kTuneSchema, name, "hebe tune SPEC");
}

FinalistOf sealed_finalists(const evidence::DataRoot& root) {
  return [&root](evidence::PartsReport& all, evidence::VerifyReport& report,
                 const FinalistPair& pair) -> std::optional<campaign::JobOutcome> {
    const auto seal = pair.run.at("seal").get<std::string>();
    const auto place = root.find_sealed(seal);
    if (place) return check_finalist(report, *place, pair);
    all.missing(report, "the run");
    return std::nullopt;
  };
}

Result<VerifiedTune> verify_tune(const evidence::StoredRecord& record, const FinalistOf& finalist) {
  try {
    return TuneVerification(record, finalist).run();
  } catch (const Json::exception& e) { // of another type than the schema asks for
    return refuse(RefusalCode::bad_schema, e.what(), "restore the record from a copy",
                  record.file.string());
  }
}

} // namespace hebe::tune
