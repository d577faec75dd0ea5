#include "tune/profile_row.hpp"

#include "tune/marginal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace hebe::tune {
namespace {

constexpr std::int64_t kLargestExact = (std::int64_t{1} << 53) - 1;
constexpr std::array<std::string_view, 5> kVerdicts = {"lower", "higher", "equivalent",
                                                       "inconclusive", "invalid"};

// What is wrong with an amount; empty: nothing.
std::string fault_of(std::string_view name, const Amount& a) {
  if (a.value < 1) return fmt::format("{} is {}: nothing costs that", name, a.value);
  if (a.value > kLargestExact) return fmt::format("{} is {}: not exact in JSON", name, a.value);
  if (!std::isfinite(a.low) || !std::isfinite(a.high) || a.low <= 0)
    return fmt::format("{} has the interval [{}, {}]", name, a.low, a.high);
  // The interval is of the exact cost, which may lie half a unit away.
  const auto value = static_cast<double>(a.value);
  if (!(a.low <= value + 0.5 && value - 0.5 <= a.high && a.low <= a.high))
    return fmt::format("{} is {}, outside its interval [{}, {}]", name, a.value, a.low, a.high);
  return {};
}

std::string fault_of(const Implementation& implementation) {
  if (implementation.name.empty() || !on_one_line(implementation.name))
    return "the implementation has no name, or one with a control character";
  if (!implementation.configuration.is_object()) return "the configuration is no JSON object";
  return {};
}

std::string fault_of(const Baseline& baseline) {
  for (auto fault :
       {fault_of(baseline.implementation), fault_of("the baseline's energy_nj", baseline.energy_nj),
        fault_of("the baseline's time_ns", baseline.time_ns)})
    if (!fault.empty()) return fault;
  if (baseline.meter && !accepted_status(baseline.meter->status))
    return "the baseline's meter is not believed on this board, so that it gives no cost";
  return {};
}

std::string fault_of(const ProfileRow& row) {
  for (auto fault : {fault_of("energy_nj", row.energy_nj), fault_of("time_ns", row.time_ns),
                     fault_of(row.implementation)})
    if (!fault.empty()) return fault;
  for (const auto* text : {&row.key.operation, &row.key.dtype, &row.key.board, &row.meter.name,
                           &row.platform.driver, &row.platform.os, &row.platform.hebe})
    if (text->empty() || !on_one_line(*text))
      return "operation, dtype, board, meter, driver, OS or Hebe version is empty or holds a "
             "control "
             "character";
  if (!accepted_status(row.meter.status))
    return "its meter is not believed on this board, so that it gives no cost";
  if (!seconds_of_date(row.date)) return fmt::format("\"{}\" is no UTC date", row.date);
  if (row.meter.provenance == Provenance::measured && !row.study && row.runs.empty())
    return "it says measured and names no study or run that it rests on";
  if (row.meter.provenance == Provenance::measured && !row.downgraded.empty())
    return "it says measured and was downgraded";
  if (row.verdict && !row.baseline) return "it has a verdict and no baseline";
  if (row.verdict && row.baseline->meter)
    return "it has a verdict of pairs, and its baseline another meter";
  if (row.verdict && std::find(kVerdicts.begin(), kVerdicts.end(), *row.verdict) == kVerdicts.end())
    return fmt::format("there is no verdict \"{}\"", *row.verdict);
  if (row.effect) {
    const auto& e = *row.effect;
    if (!row.verdict) return "it has an effect and no verdict";
    if (!(std::isfinite(e.low_percent) && std::isfinite(e.high_percent) && e.low_percent > -100 &&
          e.low_percent <= e.percent && e.percent <= e.high_percent))
      return fmt::format("its effect is {} %, with the interval [{}, {}]", e.percent, e.low_percent,
                         e.high_percent);
  }
  if (row.objective && row.objective->latency_bound_ns.has_value() !=
                           (row.objective->name == "energy_under_latency"))
    return "a latency bound is of energy_under_latency, and only of that";
  if (row.objective && row.objective->latency_bound_ratio && !row.objective->latency_bound_ns)
    return "it has a latency bound's ratio and no bound";
  return row.baseline ? fault_of(*row.baseline) : std::string();
}

} // namespace

std::string text_of(const RowObjective& o) {
  return o.name + (o.idle_included ? ", idle power included" : "");
}

bool within_its_bound(const ProfileRow& row) {
  return !row.objective || !row.objective->latency_bound_ns ||
         static_cast<double>(row.time_ns.value) <= *row.objective->latency_bound_ns;
}

bool on_one_line(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string text_of(const RowKey& key) {
  return fmt::format("{} {} {} on {}", key.operation, key.shape, key.dtype, key.board);
}

Status check_row(const ProfileRow& row, const std::string& file) {
  auto fault = fault_of(row);
  if (fault.empty()) {
    if (const auto bucket = bucket_from(row.key.shape, file); !bucket) fault = bucket.error().what;
  }
  if (fault.empty()) return {};
  auto refusal = meter_refusal(RefusalCode::bad_schema, row.meter,
                               fmt::format("row {}: {}", text_of(row.key), fault), file);
  refusal.where = file;
  return std::unexpected(std::move(refusal));
}

std::optional<std::int64_t> seconds_of_date(std::string_view date) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  if (date.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < date.size(); ++i)
    if (kForm[i] == 'd' ? date[i] < '0' || date[i] > '9' : date[i] != kForm[i]) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits) {
    int out = 0;
    for (const char c : date.substr(at, digits)) out = 10 * out + (c - '0');
    return out;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const auto days = std::chrono::sys_days(day).time_since_epoch().count();
  return std::int64_t{days} * 86400 + hour * 3600 + minute * 60 + second;
}

} // namespace hebe::tune
