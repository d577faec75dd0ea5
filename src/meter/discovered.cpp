// See discovered.hpp: the bounds of any reading, and a board that offers nothing more.
#include "meter/discovered.hpp"

#include <fmt/format.h>

namespace hebe::meter {

Status can_be_true(Quantity quantity, double si_value, std::string_view field) {
  constexpr double kMostWatts = 1e7, kMostJoules = kMostWatts * 30 * 365.25 * 86400;
  const bool power = quantity == Quantity::power;
  if (si_value >= 0 && si_value <= (power ? kMostWatts : kMostJoules)) return {};
  return refuse(RefusalCode::meter_implausible,
                fmt::format("{:.3g} {} cannot be true of any board", si_value, power ? "W" : "J"),
                "the driver answered with another type or unit than it documents: use another "
                "source, or another driver",
                std::string(field));
}

std::vector<Discovered> BoardMeter::sources() { return {}; }

} // namespace hebe::meter
