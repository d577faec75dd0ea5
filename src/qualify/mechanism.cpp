#include "qualify/mechanism.hpp"

#include "rewrite/pass.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/view.hpp"

#include <algorithm>

namespace hebe::qualify {
namespace {

void read_ttgir(std::string text, const kernel::LaunchSpec& launch, Mechanism& out) {
  auto module = ttgir::read_module(std::move(text), {false, launch.name + ".ttgir"});
  if (!module) {
    out.unavailable["ttgir"] = module.error().what;
    return;
  }
  ttgir::Operation* function = (*module)->function();
  if (!function || !ttgir::Function::of(*function))
    out.unavailable["ttgir"] = "it has no public function";
  else {
    std::vector<std::string> names;
    for (const auto& a : launch.arguments) names.push_back(a.name);
    // Of another number of arguments: the text's own names.
    static_cast<void>(rewrite::name_arguments(**module, *function, names));
    out.table = access_table(**module, *function);
  }
}

template <class T, class Make>
void part(const char* name, const std::string& text, std::optional<T>& into, Mechanism& out,
          Make&& make) {
  if (text.empty()) {
    out.unavailable[name] = "the artifact is not there";
    return;
  }
  auto made = make();
  if (made)
    into = *std::move(made);
  else
    out.unavailable[name] = made.error().what;
}

Json number(const Json& resources, const char* name) {
  return resources.is_object() && resources.contains(name) ? resources.at(name) : Json();
}

/// One row an argument: instructions at each level, bytes.
Json by_argument(const kernel::LaunchSpec& launch, const Mechanism& m) {
  Json rows = Json::array();
  const auto of_code = [](const StaticCode& code, const std::string& name, bool loads) {
    using K = AccessKind;
    return loads ? code.accesses_of(K::global_load, name) + code.accesses_of(K::async_copy, name) +
                       code.accesses_of(K::bulk_load, name)
                 : code.accesses_of(K::global_store, name) + code.accesses_of(K::bulk_store, name);
  };
  for (const kernel::Argument& argument : launch.arguments) {
    if (!argument.is_buffer) continue;
    Json row = {{"argument", argument.name}};
    if (m.table) {
      std::uint64_t loads = 0, stores = 0, atomics = 0;
      for (const TableAccess& each : m.table->rows) {
        if (each.argument != argument.name) continue;
        using K = TableAccess::Kind;
        const bool stored = each.kind == K::store || each.kind == K::descriptor_store;
        ++(each.kind == K::atomic ? atomics : stored ? stores : loads);
      }
      row["ttgir"] = {{"loads", loads}, {"stores", stores}, {"atomics", atomics}};
    }
    const auto code = [&](const char* name, const StaticCode& text) {
      row[name] = {{"loads", of_code(text, argument.name, true)},
                   {"stores", of_code(text, argument.name, false)},
                   {"atomics", text.accesses_of(AccessKind::atomic, argument.name)}};
    };
    if (m.ptx) code("ptx", m.ptx->code);
    if (m.sass) code("sass", m.sass->code);
    if (m.counts)
      for (const auto& each : m.counts->arguments)
        if (each.name == argument.name)
          row["bytes"] = {{"loaded", each.loaded},
                          {"unique_loaded", each.unique_loaded},
                          {"stored", each.stored},
                          {"atomic", each.atomic}};
    if (m.redundancy)
      if (const auto* each = m.redundancy->of(argument.name)) {
        row["bytes"]["again"] = each->again;
        row["bytes"]["by_other_programs"] = each->by_other_programs;
      }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_json(const Opportunity& each) {
  return {{"kind", each.kind},
          {"argument", each.argument.empty() ? Json() : Json(each.argument)},
          {"passes", each.passes},
          {"bytes_saved", each.bytes ? Json(*each.bytes) : Json()},
          {"share_of_traffic", each.share},
          {"provenance", "estimated"},
          {"why", each.why}};
}

} // namespace

Mechanism read_mechanism(const kernel::LaunchSpec& launch, KernelTexts texts, Json resources,
                         std::optional<ttgir::Counts> counts) {
  Mechanism out;
  out.resources = std::move(resources);
  out.counts = std::move(counts);
  if (texts.ttgir.empty())
    out.unavailable["ttgir"] = "the artifact is not there";
  else
    read_ttgir(std::move(texts.ttgir), launch, out);
  std::vector<std::string> names;
  for (const kernel::Argument& each : launch.arguments) names.push_back(each.name);
  part("ptx", texts.ptx, out.ptx, out, [&] { return summarise_ptx(texts.ptx, names); });
  const std::vector<ParameterPlace> places =
      out.ptx ? out.ptx->parameters : std::vector<ParameterPlace>{};
  part("sass", texts.sass, out.sass, out, [&] { return summarise_sass(texts.sass, places); });
  if (!out.counts)
    out.unavailable["redundancy"] = "the launch was not counted";
  else if (auto redundancy = redundancy_of(*out.counts))
    out.redundancy = *std::move(redundancy);
  else
    out.unavailable["redundancy"] = redundancy.error().what;
  const Json registers = number(out.resources, "registers");
  if (!registers.is_number_integer() || registers.get<std::int64_t>() <= 0) {
    const Json why = number(out.resources, "unavailable");
    out.unavailable["occupancy"] =
        why.is_string() ? why.get<std::string>() : "registers a thread are not known";
    return out;
  }
  const auto occupancy = computed_occupancy(
      {launch.arch, registers.get<std::uint32_t>(), launch.num_warps, launch.shared_bytes});
  if (occupancy)
    out.occupancy = *occupancy;
  else
    out.unavailable["occupancy"] = occupancy.error().what;
  return out;
}

Json to_json(const kernel::LaunchSpec& launch, const Mechanism& m) {
  Json json = {{"kernel", launch.name},
               {"entry", launch.entry},
               {"arch", launch.arch},
               {"grid", launch.grid},
               {"num_warps", launch.num_warps},
               {"num_ctas", launch.num_ctas},
               {"shared_bytes", launch.shared_bytes},
               {"resources", m.resources}};
  const auto add = [&](const char* name, const auto& each) {
    if (each) {
      json[name] = to_json(*each);
    } else {
      const auto why = m.unavailable.find(name);
      json[name] = {{"unavailable", why == m.unavailable.end() ? "" : why->second}};
    }
  };
  add("ttgir", m.table);
  add("ptx", m.ptx);
  add("sass", m.sass);
  add("redundancy", m.redundancy);
  add("occupancy", m.occupancy);
  json["by_argument"] = by_argument(launch, m);
  json["opportunities"] = Json::array();
  for (const Opportunity& each : opportunities(launch, m))
    json["opportunities"].push_back(to_json(each));
  return json;
}

Json mechanism_of(const kernel::LaunchSpec& launch, KernelTexts texts, Json resources,
                  std::optional<ttgir::Counts> counts) {
  return to_json(launch,
                 read_mechanism(launch, std::move(texts), std::move(resources), std::move(counts)));
}

} // namespace hebe::qualify
