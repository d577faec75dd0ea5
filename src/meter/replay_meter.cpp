#include "meter/replay_meter.hpp"

#include "core/files.hpp"
#include "meter/discovered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace hebe::meter {
namespace {

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

template <class T> bool number(std::string_view cell, T& out) {
  const auto [end, ec] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
  return ec == std::errc{} && end == cell.data() + cell.size();
}

// Calls `row(cells, line number)` for each line; `row` says whether it could read it.
template <class Row>
Status each_row(const std::filesystem::path& path, std::size_t columns, Row row) {
  HEBE_TRY(const auto text, read_file(path));
  std::string_view rest = text;
  for (int line_number = 1; !rest.empty(); ++line_number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto cells = split(line);
    if (cells.size() != columns || !row(cells, line_number))
      return refuse(RefusalCode::bad_schema,
                    fmt::format("required {} numeric columns, found \"{}\"", columns, line),
                    "see docs/traces.md for the columns",
                    fmt::format("{}:{}", path.string(), line_number));
  }
  return {};
}

std::unexpected<Refusal> not_in_trace(const char* what) {
  return refuse(RefusalCode::meter_unsupported, std::string("the stored trace has no ") + what);
}

} // namespace

Result<std::unique_ptr<ReplayMeter>> ReplayMeter::open(const std::filesystem::path& samples_csv,
                                                       const std::filesystem::path& poll_csv,
                                                       Clock& clock) {
  auto meter = std::unique_ptr<ReplayMeter>(new ReplayMeter(clock));
  HEBE_CHECK(each_row(samples_csv, 2, [&](const auto& cells, int) {
    PowerSample s;
    if (!number(cells[0], s.wall_us) || !number(cells[1], s.raw_mw)) return false;
    meter->samples_.push_back(s);
    return true;
  }));
  double first = -1;
  HEBE_CHECK(each_row(poll_csv, 6, [&](const auto& cells, int line) {
    if (line == 1 && cells[0] == "t") return true;
    double t = 0;
    Poll p{};
    if (!number(cells[0], t) || !number(cells[2], p.average_mw) ||
        !number(cells[3], p.instant_mw) || !number(cells[4], p.usage_mw) ||
        !number(cells[5], p.energy_mj))
      return false;
    if (first < 0) first = t;
    p.at = clock.now() + to_nanos(Seconds(t - first));
    if (meter->marks_.empty() || meter->marks_.back().tag != cells[1])
      meter->marks_.push_back({std::string(cells[1]), p.at, p.at});
    meter->marks_.back().to = p.at;
    meter->polls_.push_back(p);
    return true;
  }));
  if (meter->samples_.empty() || meter->polls_.empty())
    return refuse(RefusalCode::meter_empty, "the trace has no rows", {}, poll_csv.string());
  const auto shift = clock.wall_us() - meter->samples_.front().wall_us;
  for (auto& s : meter->samples_) s.wall_us += shift;
  return meter;
}

SourceIdentity ReplayMeter::samples_source() const {
  return {"replay.samples.total_power", "stored sample buffer", "gpu", "mW"};
}
SourceIdentity ReplayMeter::counter_source() const {
  return {"replay.counter.total_energy", "stored energy counter", "gpu", "mJ"};
}

Result<std::vector<PowerSample>> ReplayMeter::read_power_samples(std::int64_t since) {
  std::vector<PowerSample> out;
  for (const auto& s : samples_)
    if (s.wall_us > since && s.wall_us <= clock_.wall_us()) out.push_back(s);
  return out;
}

Result<Boundary> ReplayMeter::read_boundary() {
  Boundary b;
  b.before = b.after = clock_.now();
  const auto* at = poll_at(b.before);
  if (at == nullptr) return not_in_trace("row this early");
  const auto& p = *at;
  b.energy_mj = p.energy_mj;
  b.power_average_mw = p.average_mw;
  b.temperature_c = not_in_trace("temperature");
  b.sm_clock_mhz = b.memory_clock_mhz = not_in_trace("clocks");
  b.event_reasons = not_in_trace("event reasons");
  b.throttle = {not_in_trace("throttle times"), not_in_trace("throttle times"),
                not_in_trace("throttle times"), not_in_trace("throttle times"),
                not_in_trace("throttle times")};
  return b;
}

const ReplayMeter::Poll* ReplayMeter::poll_at(Instant t) const {
  const auto next = std::upper_bound(polls_.begin(), polls_.end(), t,
                                     [](Instant at, const Poll& p) { return at < p.at; });
  return next == polls_.begin() ? nullptr : &*(next - 1);
}

class ReplayMeter::Column final : public Source {
public:
  Column(const ReplayMeter& meter, SourceDescription description, std::int64_t Poll::*column)
      : meter_(meter), description_(std::move(description)), column_(column) {}
  [[nodiscard]] const SourceDescription& description() const override { return description_; }
  [[nodiscard]] Result<SourceReading> read() override {
    const auto now = meter_.clock_.now();
    const auto* poll = meter_.poll_at(now);
    if (poll == nullptr) return not_in_trace("row this early");
    return SourceReading{poll->*column_, now, now, std::nullopt};
  }

private:
  const ReplayMeter& meter_;
  SourceDescription description_;
  std::int64_t Poll::*column_;
};

std::vector<Discovered> ReplayMeter::sources() {
  std::vector<Discovered> out;
  const auto add = [&](const char* name, Quantity quantity, std::int64_t Poll::*column) {
    SourceDescription d{{name, "stored poll", "gpu", quantity == Quantity::power ? "mW" : "mJ"},
                        quantity,
                        1e-3,
                        identity_.vendor,
                        identity_.driver,
                        identity_.uuid,
                        std::nullopt};
    out.push_back({std::make_unique<Column>(*this, std::move(d), column), name, std::nullopt});
  };
  add("replay.counter.total_energy", Quantity::energy_counter, &Poll::energy_mj);
  add("replay.field.power_average", Quantity::power, &Poll::average_mw);
  add("replay.field.power_instant", Quantity::power, &Poll::instant_mw);
  add("replay.call.power_usage", Quantity::power, &Poll::usage_mw);
  return out;
}

Result<Watts> ReplayMeter::power_limit() { return not_in_trace("power limit"); }
Result<std::int64_t> ReplayMeter::uncorrected_errors() { return not_in_trace("ECC counter"); }

} // namespace hebe::meter
