// What a board or a machine offers as an instrument. In: nothing; out: a source to be read, or the
// reason why it cannot be. Invariant: exactly one of the two; an offer is no recommendation.
#pragma once

#include "meter/source.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hebe::meter {

struct Discovered {
  std::unique_ptr<Source> source;  ///< none when it cannot be read at all
  std::string name;                ///< also of what cannot be read
  std::optional<Refusal> unusable; ///< why
};

/// What no board can say, whatever it is: a negative value, a power beyond 10 MW, or an
/// energy that 10 MW need 30 years for (another member of a union was read): meter_implausible.
[[nodiscard]] Status can_be_true(Quantity quantity, double in_si, std::string_view field);

} // namespace hebe::meter
