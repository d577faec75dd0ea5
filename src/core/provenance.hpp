// Where an energy or power value comes from. Invariant: nothing but a named meter that saw the
// window is `measured`; the label travels with the value into every file and page.
#pragma once

#include <optional>
#include <string_view>

namespace hebe {

enum class Provenance { measured, estimated, simulated };

constexpr std::string_view name_of(Provenance p) {
  switch (p) {
  case Provenance::measured:
    return "measured";
  case Provenance::estimated:
    return "estimated";
  case Provenance::simulated:
    return "simulated";
  }
  return "simulated";
}

constexpr std::optional<Provenance> provenance_from(std::string_view name) {
  for (auto p : {Provenance::measured, Provenance::estimated, Provenance::simulated})
    if (name_of(p) == name) return p;
  return std::nullopt;
}

} // namespace hebe
