// One thing that was checked of a kernel. In: what was looked at; out: a name, an outcome, the
// evidence. Invariant: a check that could not be made says why and counts as not passed.
#pragma once

#include "core/json.hpp"

#include <string>
#include <vector>

namespace hebe::qualify {

struct Check {
  enum class Outcome { passed, failed, not_run };
  std::string name;
  Outcome outcome = Outcome::not_run;
  std::string by;       ///< "static", "interpreter", or the GPU's name
  std::string evidence; ///< what was seen, with numbers; the reason where it was not run
};

[[nodiscard]] inline std::string_view name_of(Check::Outcome outcome) {
  switch (outcome) {
  case Check::Outcome::passed:
    return "passed";
  case Check::Outcome::failed:
    return "failed";
  case Check::Outcome::not_run:
    return "not_run";
  }
  return "not_run";
}

[[nodiscard]] inline Json to_json(const std::vector<Check>& checks) {
  Json out = Json::array();
  for (const auto& c : checks)
    out.push_back({{"name", c.name},
                   {"outcome", name_of(c.outcome)},
                   {"by", c.by},
                   {"evidence", c.evidence}});
  return out;
}

/// A list of checks, as one executor makes them.
class Checks {
public:
  explicit Checks(std::string by) : by_(std::move(by)) {}
  void passed(std::string name, std::string evidence) {
    rows.push_back({std::move(name), Check::Outcome::passed, by_, std::move(evidence)});
  }
  void failed(std::string name, std::string evidence) {
    rows.push_back({std::move(name), Check::Outcome::failed, by_, std::move(evidence)});
  }
  void not_run(std::string name, std::string why) {
    rows.push_back({std::move(name), Check::Outcome::not_run, by_, std::move(why)});
  }
  void add(std::string name, bool holds, std::string evidence) {
    holds ? passed(std::move(name), std::move(evidence))
          : failed(std::move(name), std::move(evidence));
  }
  [[nodiscard]] bool all_passed() const {
    for (const auto& row : rows)
      if (row.outcome != Check::Outcome::passed) return false;
    return true;
  }
  std::vector<Check> rows;

private:
  std::string by_;
};

} // namespace hebe::qualify
