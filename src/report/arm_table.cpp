#include "report/arm_table.hpp"

#include "report/markup.hpp"
#include "report/members.hpp"
#include "report/quantity_text.hpp"

#include <fmt/format.h>

#include <functional>
#include <vector>

namespace hebe::report {
namespace {

using Cell = std::function<std::string(const Json& arm)>;
using Shown = std::function<std::string(double)>;
using Path = std::vector<std::string_view>;

struct Row {
  const char* name;
  Cell cell;
  bool joined = false; ///< one cell where both arms say the same
};

const Json& at(const Json& arm, const Path& path) {
  const Json* found = &arm;
  for (const auto name : path) found = &member(*found, {name});
  return *found;
}

// Why the number at the path is missing: the first thing on its way that says so.
std::string reason(const Json& arm, const Path& path, const char* otherwise) {
  const Json* found = &arm;
  for (const auto name : path) {
    found = &member(*found, {name});
    if (const auto why = text(member(*found, {"unavailable"})); !why.empty()) return why;
  }
  return otherwise;
}

Cell value(Path path, Shown shown, const char* why) {
  return [=](const Json& arm) {
    const auto v = number(at(arm, path));
    return v ? shown(*v) : unknown(reason(arm, path, why));
  };
}

Cell words(Path path, const char* why) {
  return [=](const Json& arm) {
    const auto shown = text(at(arm, path));
    return shown.empty() ? unknown(reason(arm, path, why)) : escaped(shown);
  };
}

Shown in(const char* unit) {
  return [=](double v) { return with_prefix(v, unit); };
}

std::string clock_text(double mhz) { return digits_text(mhz, 5) + " MHz"; }

constexpr const char* kNoMechanism = "the qualification found none";
constexpr const char* kNoSplit = "the analysis has no split";

// Of the floor: how many times it, and whether that floor was measured, simulated or estimated.
Cell above_floor(const char* ratio) {
  return [=](const Json& arm) {
    const auto v = number(member(arm, {"floor", ratio}));
    if (!v) return unknown(reason(arm, {"floor"}, "the analysis has no floor"));
    const auto from = text(member(arm, {"floor", "provenance"}));
    return fmt::format("{} × the floor ({})", digits_text(*v, 4),
                       from.empty() ? unknown("provenance") : escaped(from));
  };
}

// The code at its three levels: what was asked for, what the compiler made of it.
Cell by_level(const char* kind) {
  return [=](const Json& arm) {
    std::string out;
    for (const char* level : {"ttgir", "ptx", "sass"}) {
      const auto v = number(member(arm, {"mechanism", kind, level}));
      out += out.empty() ? "" : " / ";
      out += v ? count_text(*v) : unknown("");
    }
    return out;
  };
}

std::string launch_of(const Json& counted_at) {
  if (!counted_at.is_object()) return text(counted_at);
  std::string out;
  for (const auto& [name, size] : counted_at.items())
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, text(size));
  return out;
}

// Counted at this very launch, or at a smaller one of the same code: then also scaled by programs,
// which holds for what each program moves, not for how much of it is distinct.
Cell moved(const char* kind, bool scales) {
  return [=](const Json& arm) {
    const auto& bytes = member(arm, {"mechanism", "bytes"});
    const auto v = number(member(bytes, {kind}));
    if (!v) return unknown("nothing was counted");
    auto out = fmt::format("{} ({})", count_text(*v), with_prefix(*v, "B"));
    if (member(bytes, {"counted_at"}).is_null()) return out;
    out += " at the smaller launch";
    const auto all = number(member(bytes, {"programs"}));
    const auto some = number(member(bytes, {"programs_counted"}));
    if (scales && all && some && *some > 0)
      out += fmt::format("; {} at this one (estimated)", with_prefix(*v / *some * *all, "B"));
    return out;
  };
}

std::string counted_at(const Json& arm) {
  const auto& bytes = member(arm, {"mechanism", "bytes"});
  if (!bytes.is_object()) return unknown("nothing was counted");
  const auto& where = member(bytes, {"counted_at"});
  if (where.is_null()) return "this very launch";
  const auto count = [&](const char* name) {
    const auto v = number(member(bytes, {name}));
    return v ? count_text(*v) : unknown("");
  };
  return fmt::format("{} programs at {}; this launch has {}", count("programs_counted"),
                     escaped(launch_of(where)), count("programs"));
}

std::vector<Row> rows() {
  const auto code = [](const char* name) {
    return value({"mechanism", name}, count_text, kNoMechanism);
  };
  return {{"energy a launch", value({"energy_per_launch_j"}, in("J"), "not in the analysis")},
          {"time a launch", value({"latency_s"}, in("s"), "not in the analysis")},
          {"power", value({"power_w"}, in("W"), "not in the analysis")},
          {"SM clock", value({"sm_clock_mhz"}, clock_text, "unread")},
          {"memory clock", value({"memory_clock_mhz"}, clock_text, "unread")},
          {"time under the power cap", value({"power_capped_ratio"}, share_text, "unread")},
          {"time throttled otherwise", value({"throttled_ratio"}, share_text, "unread")},
          {"active energy a launch", value({"split", "active_j"}, in("J"), kNoSplit)},
          {"idle energy a launch", value({"split", "idle_j"}, in("J"), kNoSplit)},
          {"idle share", value({"split", "idle_share_ratio"}, share_text, kNoSplit)},
          {"idle power", value({"split", "idle_w"}, in("W"), kNoSplit)},
          {"idle power is from", words({"split", "idle_from"}, kNoSplit), true},
          {"energy, against the floor", above_floor("energy_ratio")},
          {"time, against the floor", above_floor("time_ratio")},
          {"the floor's energy",
           value({"floor", "floor_energy_j"}, in("J"), "the analysis has no floor")},
          {"the floor is", words({"floor", "how"}, "the analysis has no floor"), true},
          {"global loads, TTGIR / PTX / SASS", by_level("loads")},
          {"global stores, TTGIR / PTX / SASS", by_level("stores")},
          {"instructions (SASS)",
           value({"mechanism", "instructions"}, count_text, "there was no SASS to count")},
          {"registers a thread", code("registers")},
          {"local memory a thread, bytes", code("local_bytes")},
          {"static shared memory, bytes", code("static_shared_bytes")},
          {"blocks per SM", code("blocks_per_multiprocessor")},
          {"warps per SM", code("warps_per_multiprocessor")},
          {"occupancy", value({"mechanism", "occupancy_ratio"}, share_text, kNoMechanism)},
          {"bytes loaded", moved("loaded", true)},
          {"distinct bytes loaded", moved("unique_loaded", false)},
          {"bytes stored", moved("stored", true)},
          {"distinct bytes stored", moved("unique_stored", false)},
          {"bytes were counted at", counted_at, true},
          {"qualified as", words({"mechanism", "variant"}, kNoMechanism)},
          {"cubin", [](const Json& arm) {
             const auto digest = text(member(arm, {"cubin_sha256"}));
             return digest.empty() ? unknown("not in the analysis")
                                   : element("code", escaped(digest));
           }}};
}

} // namespace

std::string arm_table(const Json& arms) {
  std::string body = "<thead><tr><th></th>";
  for (const char* arm : {"A", "B"}) {
    const auto name = text(member(arms, {arm, "variant"}));
    body += element("th", fmt::format("{}: {}", arm, name.empty() ? unknown("") : escaped(name)),
                    R"(scope="col")");
  }
  body += "</tr></thead>\n<tbody>";
  for (const auto& row : rows()) {
    const auto a = row.cell(member(arms, {"A"})), b = row.cell(member(arms, {"B"}));
    body += element("tr", element("th", row.name, R"(scope="row")") +
                              (row.joined && a == b ? element("td", a, R"(colspan="2")")
                                                    : element("td", a) + element("td", b))) +
            "\n";
  }
  return element("table", body + "</tbody>", R"(class="arms")");
}

} // namespace hebe::report
