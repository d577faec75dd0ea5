// One thing known about the world: a value with its source, or unavailable with the reason.
// Invariant: never both, never neither; missing is never 0.
#pragma once

#include "core/json.hpp"

#include <string>
#include <vector>

namespace hebe {

struct Fact {
  std::string name;        ///< dotted, unit as suffix: "board.power_limit_w"
  Json value;              ///< null when unavailable
  std::string source;      ///< call, file or command
  std::string unavailable; ///< the reason, when there is no value
};

[[nodiscard]] inline Fact known(std::string name, Json value, std::string source) {
  return {std::move(name), std::move(value), std::move(source), {}};
}
[[nodiscard]] inline Fact unknown(std::string name, std::string source, std::string reason) {
  return {std::move(name), nullptr, std::move(source), std::move(reason)};
}
/// A Result as a fact.
template <class T>
[[nodiscard]] Fact fact_of(std::string name, const Result<T>& r, std::string source) {
  return r ? known(std::move(name), Json(*r), std::move(source))
           : unknown(std::move(name), std::move(source), r.error().what);
}

[[nodiscard]] inline Json to_json(const Fact& f) {
  Json j{{"name", f.name}, {"source", f.source}};
  if (f.unavailable.empty())
    j["value"] = f.value;
  else
    j["unavailable"] = f.unavailable;
  return j;
}

} // namespace hebe
