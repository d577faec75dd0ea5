#include "qualify/mechanism_summary.hpp"

#include <map>
#include <optional>

namespace hebe::qualify {
namespace {

/// Null where any member on the way is missing.
Json at(const Json& from, const char* pointer) {
  const Json::json_pointer place(pointer);
  return from.contains(place) ? from.at(place) : Json();
}

Json first_known(Json one, Json other) { return one.is_null() ? std::move(other) : std::move(one); }

/// Accesses of one level of code, over the arguments; null: that level could not be read.
Json accesses(const Json& kernel, const char* level, const char* kind) {
  const Json rows = at(kernel, "/mechanism/by_argument");
  if (!rows.is_array() || rows.empty()) return nullptr;
  std::uint64_t sum = 0;
  for (const auto& row : rows) {
    if (!row.contains(level)) return nullptr;
    sum += row.at(level).at(kind).get<std::uint64_t>();
  }
  return sum;
}

Json by_level(const Json& kernel, const char* kind) {
  Json out = Json::object();
  for (const char* level : {"ttgir", "ptx", "sass"}) out[level] = accesses(kernel, level, kind);
  return out;
}

/// What identifies the launch that was counted: its programs, and the elements of its outputs.
struct CountedLaunch {
  Json programs;
  std::map<std::string, std::uint64_t> outputs;
  bool operator==(const CountedLaunch&) const = default;
};

CountedLaunch counted_launch(const Json& kernel) {
  CountedLaunch out{at(kernel, "/mechanism/redundancy/programs"), {}};
  const Json outputs = at(kernel, "/outputs/interpreter");
  for (const auto& [name, found] : outputs.items()) out.outputs[name] = found.at("elements");
  return out;
}

CountedLaunch measured_launch(const kernel::LaunchSpec& launch) {
  CountedLaunch out{launch.programs(), {}};
  for (const auto& a : launch.arguments)
    if (a.is_buffer && a.role != kernel::Role::in) out.outputs[a.name] = a.elements();
  return out;
}

enum class Counted { here, smaller, unknown };

// A point may have the interpreter see a smaller launch; a candidate that was written for the
// point's own launch is interpreted there all the same, and the record does not say which it was.
Counted where_counted(const Json& point, const Json& kernel, const kernel::LaunchSpec& launch) {
  if (point.at("interpreted_at").is_null()) return Counted::here;
  const auto here = measured_launch(launch);
  if (counted_launch(kernel) != here) return Counted::smaller;
  const auto& baseline = point.at("baseline");
  if (kernel.at("name") == baseline.at("name")) return Counted::smaller;
  if (counted_launch(baseline) != here) return Counted::here;
  // Both launches look alike: equal outputs are those of one launch.
  const auto digests = [](const Json& of) { return of.at("outputs").at("interpreter"); };
  const auto ours = digests(kernel), theirs = digests(baseline);
  for (const auto& [name, found] : ours.items())
    if (!theirs.contains(name) || theirs.at(name).at("sha256") != found.at("sha256"))
      return Counted::unknown;
  return Counted::smaller;
}

Json bytes(const Json& point, const Json& kernel, const kernel::LaunchSpec& launch) {
  if (kernel.at("bytes").is_null()) return nullptr;
  const auto where = where_counted(point, kernel, launch);
  if (where == Counted::unknown) return nullptr;
  Json out = Json::object();
  for (const char* kind : {"loaded", "stored", "unique_loaded", "unique_stored"}) {
    std::uint64_t sum = 0;
    for (const auto& argument : kernel.at("bytes")) sum += argument.at(kind).get<std::uint64_t>();
    out[kind] = sum;
  }
  out["counted_at"] = nullptr;
  if (where == Counted::here) return out;
  out["counted_at"] = point.at("interpreted_at");
  out["programs"] = launch.programs();
  out["programs_counted"] = counted_launch(kernel).programs;
  return out;
}

} // namespace

Json mechanism_summary(const Json& point, const Json& kernel, const kernel::LaunchSpec& launch) {
  const auto driver = [&](const char* name) { return at(kernel.at("occupancy"), name); };
  const auto computed = [&](const char* name) { return at(kernel.at("mechanism"), name); };
  const Json warps = first_known(driver("/warps_per_multiprocessor"), computed("/occupancy/warps"));
  const Json most = computed("/occupancy/most_warps");
  Json ratio = nullptr;
  if (warps.is_number() && most.is_number() && most.get<double>() > 0)
    ratio = warps.get<double>() / most.get<double>();
  return {
      {"variant", kernel.at("name")},
      {"loads", by_level(kernel, "loads")},
      {"stores", by_level(kernel, "stores")},
      {"registers", first_known(at(kernel.at("resources"), "/registers"), driver("/registers"))},
      {"local_bytes",
       first_known(at(kernel.at("resources"), "/local_bytes"), driver("/local_bytes"))},
      // Only the driver's: the assembler's number has the system's own kilobyte in it.
      {"static_shared_bytes", driver("/static_shared_bytes")},
      {"blocks_per_multiprocessor", first_known(driver("/blocks_per_multiprocessor"),
                                                computed("/occupancy/blocks_a_multiprocessor"))},
      {"warps_per_multiprocessor", warps},
      {"occupancy_ratio", ratio},
      {"instructions", computed("/sass/instructions")},
      {"bytes", bytes(point, kernel, launch)}};
}

} // namespace hebe::qualify
