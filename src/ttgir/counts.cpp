#include "ttgir/counts.hpp"

namespace hebe::ttgir {
namespace {

Json to_json(const Spread& spread, std::uint64_t programs) {
  return {{"min", spread.minimum},
          {"max", spread.maximum},
          {"mean",
           programs == 0 ? 0.0 : static_cast<double>(spread.total) / static_cast<double>(programs)},
          {"total", spread.total}};
}

Json to_json(const AccessCounts& counts) {
  return {{"executions", counts.executions},
          {"elements", counts.lanes},
          {"active", counts.active},
          {"bytes", counts.bytes},
          {"sectors", counts.sectors}};
}

Json to_json(const OpPlace& place) {
  Json json = {{"op", place.op}, {"line", place.line}};
  if (!place.value.empty()) json["value"] = place.value;
  return json;
}

} // namespace

std::string_view name_of(WorkKind kind) {
  constexpr std::string_view names[] = {
      "none",    "add",         "multiply",  "fma",           "divide",     "remainder",
      "sqrt",    "exponential", "logarithm", "trigonometric", "other_math", "minimum_maximum",
      "compare", "select",      "convert",   "integer",       "address",    "product"};
  return names[static_cast<std::size_t>(kind)];
}

Json to_json(const Counts& counts) {
  Json operations = Json::object();
  for (const auto& [key, count] : counts.operations)
    operations[std::string(name_of(key.first))][key.second] = count;
  Json accesses = Json::array();
  for (const OpAccess& each : counts.accesses) {
    Json access = to_json(each.counts);
    access["op"] = each.op;
    access["line"] = each.line;
    access["argument"] = each.argument;
    if (!each.value.empty()) access["value"] = each.value;
    accesses.push_back(std::move(access));
  }
  Json arguments = Json::array();
  for (const ArgumentBytes& each : counts.arguments) {
    arguments.push_back({{"name", each.name},
                         {"size", each.size},
                         {"loaded", each.loaded},
                         {"stored", each.stored},
                         {"atomic", each.atomic},
                         {"unique_loaded", each.unique_loaded},
                         {"unique_stored", each.unique_stored},
                         {"unique_sectors", each.unique_sectors}});
    if (const auto& loads = each.by_program)
      arguments.back()["by_program"] = {{"first", loads->first},
                                        {"lanes", loads->lanes},
                                        {"again", loads->again},
                                        {"after_write", loads->after_write}};
  }
  Json json = {{"programs", counts.programs},
               {"operations", operations},
               {"accesses", accesses},
               {"arguments", arguments},
               {"shared_read", counts.shared_read},
               {"shared_written", counts.shared_written},
               {"barriers", counts.barriers},
               {"operations_per_program", to_json(counts.operations_per_program, counts.programs)},
               {"products_per_program", to_json(counts.products_per_program, counts.programs)},
               {"bytes_per_program", to_json(counts.bytes_per_program, counts.programs)}};
  for (const Reread& each : counts.rereads)
    json["rereads"].push_back({{"argument", each.argument},
                               {"earlier", to_json(each.earlier)},
                               {"later", to_json(each.later)},
                               {"written", each.written},
                               {"bytes", each.bytes}});
  return json;
}

} // namespace hebe::ttgir
