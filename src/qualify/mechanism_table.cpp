#include "qualify/mechanism.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::qualify {
namespace {

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.2f} MB", bytes / 1e6);
  if (bytes >= 1e4) return fmt::format("{:.1f} kB", bytes / 1e3);
  return fmt::format("{:.0f} B", bytes);
}

std::string bytes_of(const Json& row, const char* name) {
  const auto bytes = row.value("bytes", Json::object());
  return bytes.contains(name) ? bytes_text(bytes.at(name).get<double>()) : "-";
}

/// "20/6": loads and stores; atomics follow where there are any.
std::string instructions(const Json& row, const char* level) {
  if (!row.contains(level)) return "-";
  const Json& at = row.at(level);
  const auto number = [&](const char* name) { return at.at(name).get<std::uint64_t>(); };
  auto text = fmt::format("{}/{}", number("loads"), number("stores"));
  if (number("atomics") > 0) text += fmt::format("/{}", number("atomics"));
  return text;
}

std::string resource(const Json& mechanism, const char* name) {
  const auto& from = mechanism.at("resources");
  return from.is_object() && from.contains(name) ? from.at(name).dump() : "unknown";
}

void arguments(const Json& mechanism, std::string& out) {
  constexpr auto row = "  {:<16} {:>9} {:>9} {:>9} {:>11} {:>11} {:>11} {:>13} {:>11}\n";
  out += fmt::format(row, "loads/stores of", "TTGIR", "PTX", "SASS", "loaded", "unique",
                     "same program", "other program", "stored");
  for (const Json& each : mechanism.at("by_argument"))
    out +=
        fmt::format(row, each.at("argument").get<std::string>(), instructions(each, "ttgir"),
                    instructions(each, "ptx"), instructions(each, "sass"), bytes_of(each, "loaded"),
                    bytes_of(each, "unique_loaded"), bytes_of(each, "again"),
                    bytes_of(each, "by_other_programs"), bytes_of(each, "stored"));
}

void code(const Json& mechanism, const char* name, std::string& out) {
  const Json& part = mechanism.at(name);
  if (part.contains("unavailable")) {
    out += fmt::format("  {}: not there: {}\n", name, part.at("unavailable").get<std::string>());
    return;
  }
  out += fmt::format("  {}: {} instructions:", name, part.at("instructions").get<std::uint64_t>());
  std::vector<std::pair<std::uint64_t, std::string>> classes;
  for (const auto& [what, number] : part.at("classes").items())
    classes.emplace_back(number.get<std::uint64_t>(), what);
  std::ranges::sort(classes, std::ranges::greater{});
  for (const auto& [number, what] : classes) out += fmt::format(" {} {},", what, number);
  out.back() = '\n';
  std::uint64_t untraced = 0;
  for (const Json& each : part.at("accesses"))
    if (each.contains("untraced")) untraced += each.at("count").get<std::uint64_t>();
  if (untraced > 0)
    out +=
        fmt::format("    {} accesses to global memory are not traced to an argument\n", untraced);
}

} // namespace

std::string mechanism_table(const Json& mechanism) {
  const Json& occupancy = mechanism.at("occupancy");
  std::string out = fmt::format(
      "{} on sm_{}: {} warps, {} registers, {} B shared, {} B stack\n",
      mechanism.at("kernel").get<std::string>(), mechanism.at("arch").get<int>(),
      mechanism.at("num_warps").get<int>(), resource(mechanism, "registers"),
      mechanism.at("shared_bytes").get<std::uint64_t>(), resource(mechanism, "stack_bytes"));
  if (occupancy.contains("unavailable")) {
    out += fmt::format("  occupancy: not computed: {}\n",
                       occupancy.at("unavailable").get<std::string>());
  } else {
    std::string limits;
    for (const Json& each : occupancy.at("limits"))
      limits += (limits.empty() ? "" : ", ") + each.get<std::string>();
    out += fmt::format("  occupancy: {} of {} warps (computed; limited by {})\n",
                       occupancy.at("warps").get<int>(), occupancy.at("most_warps").get<int>(),
                       limits);
  }
  arguments(mechanism, out);
  code(mechanism, "ptx", out);
  code(mechanism, "sass", out);
  const Json& found = mechanism.at("opportunities");
  out += found.empty() ? "  no opportunities found\n" : "  opportunities (estimated):\n";
  for (const Json& each : found) {
    std::string passes;
    for (const Json& pass : each.at("passes"))
      passes += (passes.empty() ? "" : " + ") + pass.get<std::string>();
    const Json& bytes = each.at("bytes_saved");
    out += fmt::format(
        "  {:<18} {:<10} {:>10} {:>6}  {}: {}\n", each.at("kind").get<std::string>(),
        each.at("argument").is_string() ? each.at("argument").get<std::string>() : "",
        bytes.is_null() ? "-" : bytes_text(bytes.get<double>()),
        bytes.is_null() ? ""
                        : fmt::format("{:.1f}%", 100 * each.at("share_of_traffic").get<double>()),
        passes.empty() ? "no pass known" : passes, each.at("why").get<std::string>());
  }
  return out;
}

} // namespace hebe::qualify
