#include "meter/external_csv.hpp"

#include "core/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>

namespace hebe::meter {
namespace {
namespace fs = std::filesystem;

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r'))
    s.remove_suffix(1);
  if (s.size() >= 2 && s.front() == '"' && s.back() == '"') s = s.substr(1, s.size() - 2);
  return s;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

template <class T> bool whole_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

/// "power_mW", "Power (mW)" and "Power [mW]" are all {"power", "mW"}.
struct ColumnName {
  std::string what, unit;
};
ColumnName column_name(std::string_view header) {
  ColumnName name;
  auto cut = header.find_first_of("([");
  if (cut == std::string_view::npos) cut = header.rfind('_');
  name.what = trimmed(header.substr(0, cut));
  if (cut != std::string_view::npos) {
    auto unit = header.substr(cut + 1);
    if (unit.ends_with(')') || unit.ends_with(']')) unit.remove_suffix(1);
    name.unit = trimmed(unit);
  }
  std::ranges::transform(name.what, name.what.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

struct Unit {
  std::string_view text;
  double si;
};
// Case counts: MW is not mW.
constexpr std::array kTimeUnits{Unit{"s", 1},     Unit{"sec", 1},   Unit{"seconds", 1},
                                Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}};
constexpr std::array kPowerUnits{Unit{"W", 1},     Unit{"w", 1},     Unit{"watts", 1},
                                 Unit{"mW", 1e-3}, Unit{"mw", 1e-3}, Unit{"kW", 1e3},
                                 Unit{"kw", 1e3}};
template <std::size_t N>
std::optional<double> si_of(const std::array<Unit, N>& units, std::string_view text) {
  for (const auto& unit : units)
    if (unit.text == text) return unit.si;
  return {};
}

struct Columns {
  std::size_t count = 0, time = 0, power = 0;
  double time_si = 0; ///< 0: no unit, so the times must be ISO 8601
  double power_si = 0;
};

std::unexpected<Refusal> no(RefusalCode code, std::string what, const std::string& where,
                            std::size_t line,
                            std::string next = "see docs/meters.md for what the file must hold") {
  return refuse(code, std::move(what), std::move(next), fmt::format("{}:{}", where, line));
}

bool is_time(const ColumnName& c) {
  return c.what == "time" || c.what == "t" || c.what == "timestamp" || c.what == "elapsed" ||
         c.what == "seconds" || c.what == "datetime";
}
bool is_power(const ColumnName& c) {
  return c.what == "power" || c.what == "p" || c.what == "watts" || c.what == "milliwatts" ||
         c.what == "kilowatts" ||
         ((c.what == "w" || c.what == "mw" || c.what == "kw") && c.unit.empty());
}

Result<double> power_unit(const ColumnName& c, std::string_view header, const std::string& where,
                          std::size_t line) {
  auto unit = std::string_view(c.unit);
  if (unit.empty() && c.what == "watts") unit = "W";
  if (unit.empty() && c.what == "milliwatts") unit = "mW";
  if (unit.empty() && c.what == "kilowatts") unit = "kW";
  if (unit.empty() && c.what.ends_with('w')) unit = header; // as written: "mW" or "MW"
  if (const auto si = si_of(kPowerUnits, unit)) return *si;
  return no(RefusalCode::bad_schema,
            unit.empty()
                ? fmt::format("the power column \"{}\" names no unit", header)
                : fmt::format("the power column \"{}\" is in \"{}\", only W, mW and kW are known",
                              header, unit),
            where, line, "name the unit in the header, e.g. power_w");
}

Result<double> time_unit(const ColumnName& c, std::string_view header, const std::string& where,
                         std::size_t line) {
  if (c.unit.empty() && (c.what == "t" || c.what == "seconds")) return 1.0;
  if (c.unit.empty()) return 0.0;
  if (const auto si = si_of(kTimeUnits, c.unit)) return *si;
  return no(RefusalCode::bad_schema,
            fmt::format("the time column \"{}\" is in \"{}\", only s, ms, us and ns are known",
                        header, c.unit),
            where, line, "name the unit in the header, e.g. time_s");
}

Result<Columns> columns_of(std::string_view line, const std::string& where, std::size_t number) {
  const auto cells = cells_of(line);
  Columns columns;
  columns.count = cells.size();
  int times = 0, powers = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto name = column_name(cells[i]);
    if (is_time(name)) {
      ++times, columns.time = i;
      HEBE_TRY(columns.time_si, time_unit(name, cells[i], where, number));
    } else if (is_power(name)) {
      ++powers, columns.power = i;
      HEBE_TRY(columns.power_si, power_unit(name, cells[i], where, number));
    }
  }
  if (times == 1 && powers == 1) return columns;
  return no(
      RefusalCode::bad_schema,
      fmt::format("the header has {} time and {} power columns, one of each is needed: \"{}\"",
                  times, powers, line.substr(0, 120)),
      where, number,
      line.contains(';') ? "separate columns with commas, decimals with points"
                         : "begin the file with a header such as time_s,power_w");
}

struct Stamp {
  std::int64_t us = 0; ///< since 1970, in the zone written, or as if UTC
  bool zoned = false;
};

/// 2026-11-29T17:34:46[.123456][Z|+01:00]; a space may stand for the T.
std::optional<Stamp> iso_8601(std::string_view s) {
  const auto field = [&](std::size_t at, std::size_t digits, int& out) {
    if (s.size() < at + digits) return false;
    const auto text = s.substr(at, digits);
    return std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; }) &&
           whole_number(text, out);
  };
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (s.size() < 19 || !field(0, 4, year) || s[4] != '-' || !field(5, 2, month) || s[7] != '-' ||
      !field(8, 2, day) || (s[10] != 'T' && s[10] != ' ') || !field(11, 2, hour) || s[13] != ':' ||
      !field(14, 2, minute) || s[16] != ':' || !field(17, 2, second))
    return {};
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return {};
  Stamp stamp;
  stamp.us = std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86'400'000'000} +
             ((hour * 60 + minute) * 60 + second) * std::int64_t{1'000'000};
  s.remove_prefix(19);
  if (s.starts_with('.')) {
    s.remove_prefix(1);
    std::int64_t weight = 100'000;
    if (s.empty() || std::isdigit(static_cast<unsigned char>(s.front())) == 0) return {};
    for (; !s.empty() && std::isdigit(static_cast<unsigned char>(s.front())) != 0; weight /= 10) {
      stamp.us += (s.front() - '0') * weight;
      s.remove_prefix(1);
    }
  }
  if (s.empty()) return stamp;
  stamp.zoned = true;
  if (s == "Z") return stamp;
  if (s.size() != 6 || (s[0] != '+' && s[0] != '-') || s[3] != ':' || !field(1, 2, hour) ||
      !field(4, 2, minute) || hour > 15 || minute > 59)
    return {};
  const std::int64_t ahead = (hour * 60 + minute) * std::int64_t{60'000'000};
  stamp.us -= s[0] == '+' ? ahead : -ahead;
  return stamp;
}

/// Reads row after row; the first one fixes the kind of time.
class Rows {
public:
  Rows(const Columns& columns, const std::string& where, const ExternalCsvLimits& limits)
      : columns_(columns), where_(where), limits_(limits) {}

  Status add(std::string_view line, std::size_t number) {
    const auto cells = cells_of(line);
    if (cells.size() != columns_.count)
      return no(RefusalCode::bad_schema,
                fmt::format("{} columns where the header has {}", cells.size(), columns_.count),
                where_, number);
    HEBE_TRY(const double time, time_of(cells[columns_.time], number));
    double power = 0;
    if (!whole_number(cells[columns_.power], power))
      return no(
          RefusalCode::bad_schema,
          fmt::format("the power \"{}\" is not a number", cells[columns_.power].substr(0, 40)),
          where_, number);
    if (!std::isfinite(power))
      return no(RefusalCode::meter_implausible,
                fmt::format("the power is {}", cells[columns_.power]), where_, number,
                "record again: the meter lost its reading here");
    HEBE_CHECK(follows(time, number));
    trace.time_s.push_back(time);
    trace.power_w.push_back(power * columns_.power_si);
    last_line_ = number;
    return {};
  }

  ExternalTrace trace;

private:
  Result<double> time_of(std::string_view cell, std::size_t number) {
    if (columns_.time_si > 0) {
      double time = 0;
      if (!whole_number(cell, time) || !std::isfinite(time))
        return no(RefusalCode::bad_schema,
                  fmt::format("the time \"{}\" is not a finite number", cell.substr(0, 40)), where_,
                  number);
      time *= columns_.time_si;
      if (trace.time_s.empty()) trace.first_s = time;
      return time - trace.first_s;
    }
    const auto stamp = iso_8601(cell);
    if (!stamp)
      return no(RefusalCode::bad_schema,
                fmt::format("the time \"{}\" is not ISO 8601, and its column \"{}\" names no unit",
                            cell.substr(0, 40), trace.time_column),
                where_, number, "write 2026-11-29T17:34:46.5Z, or seconds under the name time_s");
    if (trace.time_s.empty()) {
      first_ = *stamp;
      trace.first_s = static_cast<double>(stamp->us) * 1e-6;
      if (stamp->zoned) trace.first_wall_us = stamp->us;
    }
    if (stamp->zoned != first_.zoned)
      return no(RefusalCode::bad_schema, "some times name a zone and some do not", where_, number);
    return static_cast<double>(stamp->us - first_.us) * 1e-6;
  }

  [[nodiscard]] Status follows(double time, std::size_t number) const {
    if (trace.time_s.empty()) return {};
    const double step = time - trace.time_s.back();
    if (step == 0)
      return no(RefusalCode::bad_schema,
                fmt::format("the same time as line {}: rows overlap", last_line_), where_, number,
                "give one log, of one meter, at its full resolution");
    if (step < 0)
      return no(RefusalCode::bad_schema,
                fmt::format("{:.6g} s before line {}: times are unsorted or two logs overlap",
                            -step, last_line_),
                where_, number, "give one log, of one meter, in the order it was recorded");
    if (step > limits_.max_gap_s)
      return no(RefusalCode::meter_gap,
                fmt::format("{:.6g} s after line {}, a gap over the limit of {:.6g} s", step,
                            last_line_, limits_.max_gap_s),
                where_, number, "record again without the gap, or allow a longer one");
    return {};
  }

  Columns columns_;
  const std::string& where_;
  const ExternalCsvLimits& limits_;
  Stamp first_;
  std::size_t last_line_ = 0;
};

} // namespace

Result<ExternalTrace> external_trace_from(std::string_view text, const std::string& where,
                                          const ExternalCsvLimits& limits) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::optional<Rows> rows;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (trimmed(line).empty()) continue;
    if (rows) {
      HEBE_CHECK(rows->add(line, number));
      continue;
    }
    HEBE_TRY(const auto columns, columns_of(line, where, number));
    rows.emplace(columns, where, limits);
    rows->trace.time_column = cells_of(line)[columns.time];
    rows->trace.power_column = cells_of(line)[columns.power];
  }
  if (!rows) return no(RefusalCode::meter_empty, "the file is empty", where, 1);
  if (rows->trace.time_s.size() < limits.min_rows)
    return refuse(
        RefusalCode::meter_empty,
        fmt::format("{} rows, at least {} are needed", rows->trace.time_s.size(), limits.min_rows),
        "record for longer", where);
  return std::move(rows->trace);
}

Result<ExternalTrace> read_external_csv(const fs::path& path, const ExternalCsvLimits& limits) {
  HEBE_TRY(const auto record, read_record(path, limits.max_bytes));
  return external_trace_from(record.bytes, path.string(), limits);
}

} // namespace hebe::meter
