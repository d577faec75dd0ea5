#include "tune/marginal.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace hebe::tune {
namespace {

// Integers beyond this are not exact as JSON numbers or doubles.
constexpr double kMostNanojoules = 9007199254740992.0;

// Energy and its standard error over one window, with the time it took.
struct WindowEnergy {
  Joules energy, standard_error;
  Seconds duration;
};

struct Teller {
  const MeterIdentity& meter;
  const std::string& not_written;
  std::string_view window; ///< "busy" or "idle"

  std::unexpected<Refusal> operator()(RefusalCode code, const std::string& reason,
                                      std::string next = {}) const {
    return std::unexpected(meter_refusal(code, meter,
                                         fmt::format("the {} window {}", window, reason),
                                         not_written, std::move(next)));
  }
};

RefusalCode code_of_status(std::string_view status) {
  constexpr std::array<std::pair<std::string_view, RefusalCode>, 9> kCodes = {{
      {"frozen", RefusalCode::meter_frozen},
      {"unsupported", RefusalCode::meter_unsupported},
      {"no_permission", RefusalCode::no_permission},
      {"read_failed", RefusalCode::meter_failed},
      {"empty", RefusalCode::meter_empty},
      {"resets", RefusalCode::meter_backwards},
      {"not_monotonic", RefusalCode::meter_backwards},
      {"implausible", RefusalCode::meter_implausible},
      {"disagrees", RefusalCode::meter_disagreement},
  }};
  for (const auto& [name, code] : kCodes)
    if (name == status) return code;
  return RefusalCode::meter_not_qualified;
}

Result<Seconds> positive(Nanos duration, const Teller& refused) {
  if (duration.count() > 0) return to_seconds(duration);
  return refused(RefusalCode::bad_argument,
                 fmt::format("lasted {} ns: a window takes time", duration.count()));
}

Result<WindowEnergy> energy_of(const CounterWindow& w, const Teller& refused) {
  const auto span = [&] { return fmt::format("{} to {}", w.first_count, w.last_count); };
  // As a difference of clocks that ran backwards may overflow, the order is asked first.
  if (w.last_at <= w.first_at)
    return refused(RefusalCode::bad_argument,
                   fmt::format("ends at {} ns and began at {} ns: a window takes time",
                               w.last_at.count(), w.first_at.count()));
  if (w.first_at.count() < 0)
    return refused(RefusalCode::bad_argument,
                   fmt::format("began at {} ns, before the clock", w.first_at.count()));
  HEBE_TRY(const auto duration, positive(w.last_at - w.first_at, refused));
  if (!std::isfinite(w.per_count.value()) || w.per_count.value() <= 0)
    return refused(RefusalCode::bad_argument,
                   fmt::format("was counted in units of {} J", w.per_count.value()));
  if (!std::isfinite(w.standard_error.value()) || w.standard_error.value() < 0)
    return refused(RefusalCode::bad_argument,
                   fmt::format("has a standard error of {} J", w.standard_error.value()));
  if (w.last_count < w.first_count)
    return refused(RefusalCode::meter_backwards,
                   fmt::format("has a counter that went backwards, {}", span()));
  if (w.last_count == w.first_count)
    return refused(
        RefusalCode::meter_frozen,
        fmt::format("did not advance in {:.6g} s ({}): a chip draws power doing nothing, "
                    "so a counter that holds is not metering",
                    duration.value(), span()),
        "qualify the board's meters again, or use a longer window");
  // Unsigned: from the least to the most that a counter can say is still a difference.
  const auto counts = static_cast<double>(static_cast<std::uint64_t>(w.last_count) -
                                          static_cast<std::uint64_t>(w.first_count));
  // Two readings, each anywhere within its count: a variance of 1/12 of a count squared each.
  const double rounding = w.per_count.value() / std::sqrt(6.0);
  return WindowEnergy{counts * w.per_count, Joules(std::hypot(rounding, w.standard_error.value())),
                      duration};
}

Result<WindowEnergy> energy_of(const PowerWindow& w, const Teller& refused) {
  HEBE_TRY(const auto duration, positive(w.duration, refused));
  if (!std::isfinite(w.mean.value()))
    return refused(RefusalCode::meter_implausible,
                   fmt::format("has a mean power of {} W", w.mean.value()));
  if (w.mean.value() <= 0)
    return refused(RefusalCode::meter_implausible,
                   fmt::format("has a mean power of {} W over {:.6g} s: a chip draws power doing "
                               "nothing",
                               w.mean.value(), duration.value()));
  if (!std::isfinite(w.standard_error.value()) || w.standard_error.value() <= 0)
    return refused(RefusalCode::bad_argument,
                   fmt::format("has a mean power with a standard error of {} W: a mean without an "
                               "error was not measured",
                               w.standard_error.value()));
  return WindowEnergy{w.mean * duration, w.standard_error * duration, duration};
}

Result<WindowEnergy> energy_of(const std::optional<MeteredWindow>& window, std::string_view name,
                               const std::string& not_written) {
  if (!window) {
    const MeterIdentity none{"no meter", "not measured", Provenance::simulated};
    return std::unexpected(meter_refusal(
        RefusalCode::meter_not_qualified, none,
        fmt::format("the {} window was not measured; that is no 0 J", name), not_written));
  }
  HEBE_CHECK(check_meter(window->meter, not_written));
  const Teller refused{window->meter, not_written, name};
  HEBE_TRY(auto energy,
           std::visit([&](const auto& w) { return energy_of(w, refused); }, window->readings));
  if (!std::isfinite(energy.energy.value()) || !std::isfinite(energy.standard_error.value()))
    return refused(
        RefusalCode::meter_implausible,
        fmt::format("has {} ± {} J", energy.energy.value(), energy.standard_error.value()));
  return energy;
}

// One meter, or a difference of two; and what is measured is not taken from what is simulated.
Status comparable(const MeterIdentity& busy, const MeterIdentity& idle,
                  const std::string& not_written) {
  const auto differ = [&](const std::string& what) -> Status {
    return std::unexpected(
        meter_refusal(RefusalCode::bad_argument, busy,
                      fmt::format("{}; the idle window's meter is {} ({}, {})", what, idle.name,
                                  idle.status, name_of(idle.provenance)),
                      not_written));
  };
  if (busy.provenance != idle.provenance)
    return differ(fmt::format("the busy window is {} and the idle window {}: they do not mix",
                              name_of(busy.provenance), name_of(idle.provenance)));
  if (busy.name != idle.name || busy.status != idle.status)
    return differ("busy and idle were read by different meters");
  return {};
}

Result<MarginalCost> per_operation(MarginalCost out, const Teller& refused) {
  const auto ops = static_cast<double>(out.operations);
  const double exact = out.marginal.value() / ops * 1e9;
  const double half = kNormal95 * out.standard_error.value() / ops * 1e9;
  if (!std::isfinite(exact) || !std::isfinite(half) || exact + half > kMostNanojoules)
    return refused(
        RefusalCode::meter_implausible,
        fmt::format("gives {} ± {} nJ an operation, more than can be said exactly", exact, half));
  if (std::llround(exact) < 1)
    return refused(
        RefusalCode::gate_failed,
        fmt::format("costs {:.6g} nJ an operation ({} operations), which rounds to 0 nJ", exact,
                    out.operations),
        fmt::format("count at least {:.0f} of them as one operation: a window of {:.6g} J has "
                    "room for {:.0f} operations of 1 nJ",
                    std::ceil(1 / exact), out.marginal.value(),
                    std::floor(out.marginal.value() * 1e9)));
  if (!(exact - half > 0))
    return refused(
        RefusalCode::gate_failed,
        fmt::format("cannot be told from idle: {:.6g} ± {:.6g} nJ an operation", exact, half),
        "use longer windows, or more work in them");
  out.exact_nj = exact;
  out.cost_nj = std::llround(exact);
  out.low_nj = exact - half;
  out.high_nj = exact + half;
  return out;
}

} // namespace

Refusal meter_refusal(RefusalCode code, const MeterIdentity& meter, const std::string& reason,
                      const std::string& not_written, std::string next) {
  Refusal r;
  r.code = code;
  r.what = fmt::format("{}; meter {}: {}", reason, meter.name, meter.status);
  r.where = meter.name;
  r.next = std::move(next);
  r.not_written = not_written;
  return r;
}

Refusal with_meter(const std::string& of, Refusal r, const MeterIdentity& meter,
                   const std::string& not_written) {
  if (r.code == RefusalCode::interrupted) return r;
  r.what = fmt::format("{}: {}; meter {}: {}", of, r.what, meter.name, meter.status);
  if (r.not_written.empty()) r.not_written = not_written;
  return r;
}

Status check_meter(const MeterIdentity& meter, const std::string& not_written) {
  if (accepted_status(meter.status)) return {};
  return std::unexpected(
      meter_refusal(code_of_status(meter.status), meter,
                    "the meter is not believed on this board, so that it gives no value, and no 0",
                    not_written, "see `hebe probe-meter`"));
}

Result<MarginalCost> marginal_cost(const MarginalRequest& q) {
  HEBE_TRY(const auto busy, energy_of(q.busy, "busy", q.not_written));
  HEBE_TRY(const auto idle, energy_of(q.idle, "idle", q.not_written));
  HEBE_CHECK(comparable(q.busy->meter, q.idle->meter, q.not_written));
  const Teller refused{q.busy->meter, q.not_written, "busy"};
  if (q.operations <= 0)
    return refused(RefusalCode::bad_argument,
                   fmt::format("has {} operations: there is none to cost", q.operations));

  MarginalCost out;
  out.operations = q.operations;
  out.idle_state = q.idle_state;
  out.meter = q.busy->meter;
  out.duration = busy.duration;
  out.busy = busy.energy;
  const double times = busy.duration / idle.duration;
  out.idle = idle.energy * times;
  out.marginal = out.busy - out.idle;
  out.standard_error =
      Joules(std::hypot(busy.standard_error.value(), idle.standard_error.value() * times));
  if (!std::isfinite(out.marginal.value()))
    return refused(RefusalCode::meter_implausible, fmt::format("has {} J against {} J of idle",
                                                               out.busy.value(), out.idle.value()));
  if (out.marginal <= Joules(0))
    return refused(RefusalCode::gate_failed,
                   fmt::format("is at or below idle: {:.9g} W against {:.9g} W ({}) over {:.6g} s",
                               (out.busy / busy.duration).value(),
                               (out.idle / busy.duration).value(), name_of(q.idle_state),
                               busy.duration.value()),
                   "check that the work ran, and that idle was idle");
  return per_operation(std::move(out), refused);
}

Result<double> cost_ratio(const RatioOperand& one, const RatioOperand& other,
                          const std::string& not_written) {
  const auto sound = [](double x) { return std::isfinite(x) && x > 0; };
  for (const auto* operand : {&one, &other}) {
    HEBE_CHECK(check_meter(operand->meter, not_written));
    if (!sound(operand->cost))
      return std::unexpected(
          meter_refusal(RefusalCode::meter_implausible, operand->meter,
                        fmt::format("the ratio of {} and {} is not defined: {} is no positive, "
                                    "finite cost",
                                    one.cost, other.cost, operand->cost),
                        not_written));
  }
  if (one.meter.provenance != other.meter.provenance)
    return std::unexpected(
        meter_refusal(RefusalCode::bad_argument, one.meter,
                      fmt::format("a {} and a {} cost have no ratio", name_of(one.meter.provenance),
                                  name_of(other.meter.provenance)),
                      not_written));
  const double ratio = one.cost / other.cost;
  if (!sound(ratio))
    return std::unexpected(meter_refusal(
        RefusalCode::meter_implausible, one.meter,
        fmt::format("the ratio of {} and {} is {}", one.cost, other.cost, ratio), not_written));
  return ratio;
}

} // namespace hebe::tune
