// See discovered.hpp: the bounds of any reading, and a board that offers nothing more.
#include "meter/discovered.hpp"

#include <fmt/format.h>

namespace hebe::meter {

Status can_be_true(Quantity quantity, double in_si, std::string_view field) {
  constexpr double kMostWatts = 1e7, kMostJoules = kMostWatts * 30 * 365.25 * 86400;
  const bool power = quantity == Quantity::power;
  if (in_si >= 0 && in_si <= (power ? kMostWatts : kMostJoules)) return {};
  return refuse(RefusalCode::meter_implausible,
                fmt::format("{:.3g} {} cannot be true of any board", in_si, power ? "W" : "J"),
                "the driver answered with another type or unit than it documents: use another "
                "source, or another driver",
                std::string(field));
}

std::vector<Discovered> BoardMeter::sources() { return {}; }

} // namespace hebe::meter
