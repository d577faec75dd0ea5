// Whether a receipt holds: envelope, payload type, key, signature, statement, predicate, expiry,
// subject, and what it says of it, in this order.
#include "evidence/receipt_comparison.hpp"

#include "core/schema.hpp"
#include "evidence/dsse.hpp"
#include "evidence/receipt_words.hpp"
#include "evidence/sealed_run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace hebe::evidence {
namespace {

// Shown to people and compared with nothing: never more than a line of somebody else's text.
std::string shown(std::string_view text) { return std::string(text.substr(0, 100)); }

bool is_digest(const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Microseconds since 1970 of a kReceiptTime; none: no such day or time.
std::optional<std::int64_t> time_from(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2u:%2u:%2uZ", &year, &month, &day, &hour, &minute,
                  &second) != 6)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (days * 86'400 + hour * 3'600LL + minute * 60LL + second) * 1'000'000;
}

class Verification {
public:
  Verification(const ReceiptCheck& check, const std::string& where)
      : check_(check), where_(where) {}

  Result<ReceiptReport> run(std::string_view line) {
    if (signature(line) && statement()) {
      expiry();
      HEBE_CHECK(subject());
    }
    return std::move(report_);
  }

private:
  void problem(std::string name, RefusalCode code, std::string what,
               std::string next = "restore the receipt from a copy") {
    report_.problems.push_back(
        {std::move(name), {code, std::move(what), where_, std::move(next), {}}});
  }
  void problem(std::string name, Refusal refusal) {
    report_.problems.push_back({std::move(name), std::move(refusal)});
  }

  bool signature(std::string_view line) {
    const auto envelope = envelope_from(line, where_);
    if (!envelope) {
      problem("envelope", envelope.error());
      return false;
    }
    if (envelope->payload_type != kReceiptPayloadType) {
      problem("payload type", RefusalCode::bad_schema,
              fmt::format("required payload type \"{}\", found \"{}\"", kReceiptPayloadType,
                          shown(envelope->payload_type)),
              "this is another kind of envelope: use the program that made it");
      return false;
    }
    switch (find_signature(*envelope, check_.key)) {
    case SignatureFinding::fits:
      report_.passed.push_back("signature: by key " + check_.key.id());
      payload_ = envelope->payload;
      return true;
    case SignatureFinding::by_other_keys:
      problem("wrong key", RefusalCode::wrong_key, other_keys(*envelope),
              "give the public half of the key that it was signed with");
      return false;
    case SignatureFinding::does_not_fit:
      problem("signature", RefusalCode::digest_mismatch,
              "these are not the bytes that were signed: no signature by key " + check_.key.id() +
                  " fits the payload");
      return false;
    }
    return false;
  }

  std::string other_keys(const Envelope& envelope) const {
    std::string ids;
    for (const auto& s : envelope.signatures) ids += (ids.empty() ? "" : ", ") + shown(s.key_id);
    return fmt::format("it is signed by key {}; the key that was given is {}", ids,
                       check_.key.id());
  }

  bool statement() {
    auto json = parse_json(payload_, where_);
    if (!json || !json->is_object()) {
      problem("statement", RefusalCode::bad_schema, "the payload is no JSON object",
              "ask who signed it");
      return false;
    }
    return type_is(*json, "statement", "_type", kStatementType) &&
           type_is(*json, "predicate", "predicateType", kReceiptPredicateType) &&
           predicate(*json) && subjects(*json) && take(std::move(*json));
  }

  bool type_is(const Json& json, const char* name, const char* member, std::string_view required) {
    const auto found = json.value(member, Json());
    if (found == required) return true;
    problem(name, RefusalCode::bad_schema,
            fmt::format("required {} \"{}\", found {}", member, required,
                        found.is_string() ? '"' + shown(found.get<std::string>()) + '"'
                                          : std::string(found.type_name())),
            "this is another kind of statement: use the program that made it");
    return false;
  }

  bool predicate(const Json& json) {
    auto status = check_schema(json.value("predicate", Json()), "hebe.receipt/1", where_);
    if (!status) problem("predicate", status.error());
    return status.has_value();
  }

  bool subjects(const Json& json) {
    const auto list = json.value("subject", Json());
    bool sound = list.is_array() && !list.empty();
    if (sound)
      for (const auto& s : list)
        sound = sound && s.is_object() && s.value("name", Json()).is_string() &&
                s.value("digest", Json()).is_object() &&
                is_digest(s.at("digest").value("sha256", Json()));
    if (!sound)
      problem("statement", RefusalCode::bad_schema,
              "required a list of subjects, each with a name and a SHA-256", "ask who signed it");
    return sound;
  }

  bool take(Json json) {
    report_.statement = std::move(json);
    report_.passed.push_back("statement: in-toto v1, hebe.receipt/1");
    return true;
  }

  const Json& said() const { return report_.statement.at("predicate"); }

  void expiry() {
    const auto now_us = check_.clock.wall_us();
    const auto now = utc_stamp(kReceiptTime, now_us);
    const auto made = said().at("signed").get<std::string>();
    const auto made_us = time_from(made);
    const bool ends = !said().at("expires").is_null();
    const auto end = ends ? said().at("expires").get<std::string>() : std::string();
    const auto end_us = ends ? time_from(end) : made_us;
    if (!made_us || !end_us)
      return problem("predicate", RefusalCode::bad_schema,
                     fmt::format("{} is no time", made_us ? end : made), "ask who signed it");
    // Only said: it is more often this machine's clock that is wrong.
    if (*made_us > now_us)
      report_.not_checked.push_back(
          fmt::format("when it was signed: {} lies ahead of this machine's clock ({})", made, now));
    if (ends && now_us >= *end_us)
      return problem("expired", RefusalCode::receipt_expired,
                     fmt::format("it was valid until {}, now it is {}", end, now),
                     "ask for a new receipt: `hebe receipt sign`");
    report_.passed.push_back(ends ? fmt::format("expiry: valid until {}, now it is {}", end, now)
                                  : "expiry: none");
  }

  // What is compared is what lies there; nothing there is said, and no fault of the receipt.
  Status subject() {
    const auto kind = said().at("kind").get<std::string>();
    const auto name = report_.statement.at("subject")[0].at("name").get<std::string>();
    auto place = check_.subject;
    if (place.empty()) {
      const auto found = place_of_subject(check_.root, kind, name);
      if (!found) {
        problem("subject", found.error());
        return {};
      }
      if (!*found) {
        report_.not_checked.push_back(fmt::format(
            "subject: {} {} is not in this data root; give --subject PATH", kind, shown(name)));
        return {};
      }
      place = (*found)->string();
    }
    auto there = read_subject(check_.root, place, check_.checks);
    if (!there && !check_.subject.empty() && exit_code_of(there.error().code) == ExitCode::usage)
      return std::unexpected(there.error());
    if (!there)
      problem("subject", there.error());
    else
      compare_with_subject(report_, *there, where_);
    return {};
  }

  const ReceiptCheck& check_;
  const std::string& where_;
  std::string payload_;
  ReceiptReport report_;
};

} // namespace

Result<ReceiptReport> verify_receipt(const ReceiptCheck& check, std::string_view line,
                                     const std::string& where) {
  return Verification(check, where).run(line);
}

} // namespace hebe::evidence
