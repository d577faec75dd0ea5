// What a meter saw of one window, as raw as it was read. In: counter readings or a mean power, with
// their times, the meter's identity and status; out: typed values for src/tune/marginal. Invariant:
// no window without its meter, no meter without a status and a provenance.
#pragma once

#include "core/provenance.hpp"
#include "core/units.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace hebe::tune {

/// What the board did while its idle power was read. An H200 draws 78 W without a context and
/// 121 to 128 W with one and its clocks up: a cost without this word has no meaning.
enum class Idle { no_context, context_open, clocks_up };

constexpr std::string_view name_of(Idle idle) {
  switch (idle) {
  case Idle::no_context:
    return "no_context";
  case Idle::context_open:
    return "context_open";
  case Idle::clocks_up:
    return "clocks_up";
  }
  return "no_context";
}

constexpr std::optional<Idle> idle_from(std::string_view name) {
  for (auto idle : {Idle::no_context, Idle::context_open, Idle::clocks_up})
    if (name_of(idle) == name) return idle;
  return std::nullopt;
}

/// `status` is the meter's verdict on this board: primary, cross_check, usable, or why it was
/// rejected ("frozen", "no_permission", … docs/protocol.md).
struct MeterIdentity {
  std::string name;
  std::string status;
  Provenance provenance = Provenance::simulated;
  bool operator==(const MeterIdentity&) const = default;
};

/// A meter with one of these may be believed; any other has declined.
constexpr bool accepted_status(std::string_view status) {
  return status == "primary" || status == "cross_check" || status == "usable";
}

/// Two readings of a cumulative counter in its own counts.
struct CounterWindow {
  std::int64_t first_count = 0, last_count = 0;
  Nanos first_at{0}, last_at{0};
  Joules per_count;
  Joules standard_error; ///< beyond the rounding of the two readings, which is added by itself
};

/// A mean power over a stretch of time.
struct PowerWindow {
  Watts mean;
  Watts standard_error; ///< of the mean; above 0
  Nanos duration{0};
};

struct MeteredWindow {
  MeterIdentity meter;
  std::variant<CounterWindow, PowerWindow> readings;
};

} // namespace hebe::tune
