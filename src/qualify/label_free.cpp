#include "qualify/qualified_pair.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <vector>

namespace hebe::qualify {
namespace {

/// "meanPower_mW" to "mean", "power", "m", "w".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out(1);
  bool was_lower = false;
  for (const char c : name) {
    const auto each = static_cast<unsigned char>(c);
    if (std::isalnum(each) == 0 || (was_lower && std::isupper(each) != 0)) out.emplace_back();
    if (std::isalnum(each) != 0) out.back() += static_cast<char>(std::tolower(each));
    was_lower = std::islower(each) != 0;
  }
  std::erase(out, "");
  return out;
}

bool speaks_of_energy_or_time(std::string_view name) {
  static const std::set<std::string> units = {"j",  "mj", "uj",  "nj", "kj", "w",  "mw", "uw",
                                              "kw", "wh", "kwh", "s",  "ms", "us", "ns"};
  static const std::set<std::string> times = {"time", "times", "timing", "second", "seconds"};
  const auto words = words_of(name);
  const auto any = [&](auto&& holds) { return std::ranges::any_of(words, holds); };
  for (const char* stem : {"energy", "energies", "joule", "power", "watt", "latency", "latencies",
                           "duration", "elapsed", "runtime"})
    if (any([&](const std::string& word) { return word.find(stem) != std::string::npos; }))
      return true;
  return any([&](const std::string& word) { return times.contains(word); }) ||
         (words.size() > 1 && units.contains(words.back()));
}

/// Maps whose members users and compilers named. A place is a path with "*" for the index of a row;
/// a baseline and a candidate are both "kernel".
constexpr std::string_view kNamedByOthers[] = {
    "points/*/interpreted_at",       "kernel/launch/parameters",
    "kernel/launch/work/operations", "kernel/compile/attributes",
    "kernel/compile/constants",      "kernel/compile/signature",
    "kernel/compile/helpers",        "kernel/compile/environment",
    "kernel/passes/*/loads",         "kernel/passes/*/stores",
    "kernel/mechanism/sass/opcodes", "kernel/mechanism/sass/other",
    "kernel/mechanism/ptx/other",    "kernel/compile/options/extern_libs"};
/// Maps by argument: a member is a name only where the launch has that argument.
constexpr std::string_view kByArgument[] = {"points/*/inputs", "kernel/bytes", "kernel/outputs/gpu",
                                            "kernel/outputs/interpreter"};

using Names = std::set<std::string>;

Names arguments_of(const Json& kernel) {
  Names out;
  if (const auto& launch = kernel.at("launch"); launch.is_object())
    for (const auto& each : launch.at("arguments")) out.insert(each.at("name"));
  return out;
}

bool named_by_others(const std::string& place, const std::string& name, const Names& arguments) {
  return std::ranges::find(kNamedByOthers, place) != std::end(kNamedByOthers) ||
         (std::ranges::find(kByArgument, place) != std::end(kByArgument) &&
          arguments.contains(name));
}

// The path of the first label in `value`; empty: there is none. `arguments` are those of the kernel
// that it is a part of; of a point, the baseline's.
std::string label_in(const Json& value, const std::string& path, const std::string& place,
                     const Names& arguments);

std::string label_at(const std::string& name, const Json& value, const std::string& path,
                     const std::string& place, const Names& arguments) {
  if (!named_by_others(place, name, arguments) && speaks_of_energy_or_time(name))
    return path + "/" + name;
  // What a check is called says what was looked at, as a member's name does.
  if (place == "kernel/checks/*" && name == "name" &&
      speaks_of_energy_or_time(value.get_ref<const std::string&>()))
    return path + "/" + name + " (" + value.get<std::string>() + ")";
  if (place == "points/*" && name == "baseline")
    return label_in(value, path + "/" + name, "kernel", arguments_of(value));
  return label_in(value, path + "/" + name, place.empty() ? name : place + "/" + name, arguments);
}

std::string label_in(const Json& value, const std::string& path, const std::string& place,
                     const Names& arguments) {
  std::string found;
  if (value.is_object())
    for (const auto& [name, each] : value.items())
      if (found = label_at(name, each, path, place, arguments); !found.empty()) return found;
  if (value.is_array())
    for (std::size_t i = 0; i < value.size() && found.empty(); ++i) {
      const auto row = path + "/" + std::to_string(i);
      if (place == "points/*/candidates")
        found = label_in(value[i], row, "kernel", arguments_of(value[i]));
      else if (place == "points")
        found = label_in(value[i], row, "points/*", arguments_of(value[i].at("baseline")));
      else
        found = label_in(value[i], row, place + "/*", arguments);
    }
  return found;
}

std::string first_label(const Json& record) {
  if (record.value("energy_labels", Json()) != "none: nothing was measured")
    return "/energy_labels";
  for (const auto& [name, value] : record.items()) {
    // Facts of the machine (a power limit is one), and what its author wrote.
    if (name == "environment" || name == "spec" || name == "energy_labels") continue;
    if (auto found = label_at(name, value, {}, {}, {}); !found.empty()) return found;
  }
  return {};
}

} // namespace

Status label_free(const Json& record, const std::string& where) {
  try {
    if (const auto found = first_label(record); !found.empty())
      return refuse(RefusalCode::bad_schema,
                    "the qualification carries a label of energy, power or time: " + found,
                    "qualify again: cases are chosen before anything is measured", where);
  } catch (const Json::exception& e) { // a member that the schema does not ask for, of another type
    return refuse(RefusalCode::bad_schema, e.what(), "restore the record from a copy", where);
  }
  return {};
}

} // namespace hebe::qualify
