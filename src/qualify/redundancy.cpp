#include "qualify/redundancy.hpp"

#include <algorithm>

namespace hebe::qualify {

const ArgumentRedundancy* Redundancy::of(std::string_view argument) const {
  const auto found = std::ranges::find(arguments, argument, &ArgumentRedundancy::argument);
  return found == arguments.end() ? nullptr : &*found;
}

Result<Redundancy> redundancy_of(const ttgir::Counts& counts) {
  Redundancy out;
  out.programs = counts.programs;
  for (const ttgir::ArgumentBytes& each : counts.arguments) {
    if (each.loaded == 0) continue;
    if (!each.by_program)
      return refuse(RefusalCode::bad_argument,
                    "the counts do not tell what each program loads more than once",
                    "count with InterpretOptions::rereads", each.name);
    ArgumentRedundancy row;
    row.argument = each.name;
    row.loaded = each.loaded;
    row.again = each.by_program->again;
    row.after_own_write = each.by_program->after_write;
    row.by_other_lanes = each.by_program->lanes;
    // Bytes that only atomics or programs that wrote them before touched are unique ones as well,
    // but no program's first load.
    row.unique = std::min(each.unique_loaded, each.by_program->first);
    row.by_other_programs = each.by_program->first - row.unique;
    row.stored_too = each.stored + each.atomic > 0;
    out.arguments.push_back(std::move(row));
  }
  out.pairs = counts.rereads;
  std::ranges::stable_sort(out.pairs, std::ranges::greater{}, &ttgir::Reread::bytes);
  return out;
}

Json to_json(const Redundancy& redundancy) {
  const auto place = [](const ttgir::OpPlace& at) {
    Json json = {{"op", at.op}, {"line", at.line}};
    if (!at.value.empty()) json["value"] = at.value;
    return json;
  };
  Json arguments = Json::array(), pairs = Json::array();
  for (const ArgumentRedundancy& each : redundancy.arguments)
    arguments.push_back({{"argument", each.argument},
                         {"loaded", each.loaded},
                         {"unique", each.unique},
                         {"redundant", each.redundant()},
                         {"again_by_the_same_program", each.again},
                         {"by_other_programs", each.by_other_programs},
                         {"after_own_write", each.after_own_write},
                         {"by_other_lanes", each.by_other_lanes},
                         {"stored_too", each.stored_too}});
  for (const ttgir::Reread& each : redundancy.pairs)
    pairs.push_back({{"argument", each.argument},
                     {"earlier", place(each.earlier)},
                     {"later", place(each.later)},
                     {"earlier_wrote", each.written},
                     {"bytes", each.bytes}});
  return {
      {"provenance", "counted by the interpreter: bytes that active lanes ask for in one launch"},
      {"programs", redundancy.programs},
      {"arguments", arguments},
      {"pairs", pairs}};
}

} // namespace hebe::qualify
