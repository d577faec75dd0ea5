#include "campaign/pipeline_probe.hpp"

#include "core/build_identity.hpp"
#include "qualify/static_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::campaign {
namespace {

struct Edit {
  std::vector<rewrite::PassRequest> passes;
  std::string ttgir;
};

// An edit that every kernel can bear and that changes what is below: a load marked for early
// eviction.
Result<Edit> edited(const kernel::CompiledCase& compiled) {
  for (const auto& a : compiled.launch.arguments) {
    if (!a.is_buffer) continue;
    HEBE_TRY(
        const auto requests,
        rewrite::requests_from(
            Json::array({{{"pass", "hint"}, {"loads", {{a.name, {{"evict", "evict_first"}}}}}}}),
            "the probe's edit"));
    const auto made = rewrite::apply(compiled.ttgir, requests, qualify::facts_of(compiled.launch),
                                     compiled.launch.name + ".ttgir");
    if (made && made->ttgir != compiled.ttgir) return Edit{requests, made->ttgir};
  }
  return refuse(RefusalCode::bad_spec, "the kernel has no load that could carry a hint",
                "probe a case that loads through pointers", compiled.launch.name);
}

const Json* row_named(const Json& rows, std::string_view way) {
  const auto found =
      std::ranges::find_if(rows, [&](const Json& row) { return row.at("way") == way; });
  return found == rows.end() ? nullptr : &*found;
}

bool all_same(const Json& row) {
  return row.at("same").is_object() && !row.at("same").empty() &&
         std::ranges::all_of(row.at("same"), [](const Json& same) { return same == true; });
}

/// What rewriting needs of the toolchain.
qualify::Checks demands(const Json& answer) {
  qualify::Checks out("static");
  const auto& rows = answer.at("rows");
  for (const auto* way : {"compile again from nothing", "compile its own ttgir by path"}) {
    const auto* row = row_named(rows, way);
    out.add(std::string("same bytes: ") + way, row && all_same(*row),
            row ? row->at("evidence").get<std::string>() : "was not tried");
  }
  const auto* edit = row_named(rows, "compile an edited ttgir by path");
  out.add("an edit reaches the cubin",
          edit && edit->at("possible") == true && edit->at("same").value("cubin", true) == false,
          edit ? edit->at("evidence").get<std::string>() : "was not tried");
  const auto& connections = answer.at("connections");
  out.add("nothing downloaded", connections.empty(),
          connections.empty() ? "no connection was tried" : connections.front().get<std::string>());
  std::string foreign;
  for (const auto& program : answer.at("programs"))
    if (const auto name = program.get<std::string>(); !name.starts_with("triton/"))
      foreign += (foreign.empty() ? "" : ", ") + name;
  out.add("nothing built", foreign.empty(),
          foreign.empty() ? "only tools of the Triton package ran" : "also ran: " + foreign);
  return out;
}

} // namespace

Result<PipelineProbe> probe_pipeline(const evidence::DataRoot& root,
                                     const PipelineProbeRequest& request) {
  HEBE_CHECK(root.initialise());
  HEBE_TRY(const auto worker, kernel::Worker::start(request.worker));
  HEBE_TRY(const auto hello, worker->request("hello", Json::object(), Seconds(60)));
  const kernel::ArtifactStore store(root.path());
  HEBE_TRY(const auto compiled,
           kernel::compile_case(*worker, store, request.subject, root.cache() / "triton"));
  HEBE_TRY(const auto edit, edited(compiled));
  HEBE_TRY(const auto edit_digest, store.put(edit.ttgir));
  HEBE_TRY(
      const auto answer,
      worker->request(
          "probe_pipeline",
          {{"case", request.subject.file.string()},
           {"function", request.subject.function},
           {"parameters", request.subject.parameters},
           {"options", request.subject.options},
           {"target", {{"backend", "cuda"}, {"arch", request.subject.arch}, {"warp_size", 32}}},
           {"edited", edit.ttgir}},
          Seconds(600)));
  auto facts = evidence::build_facts();
  for (auto& f : evidence::host_facts(true, request.variables)) facts.push_back(std::move(f));
  for (auto& f : evidence::toolchain_facts(hello)) facts.push_back(std::move(f));
  if (request.redact) evidence::redact(facts);
  const auto checks = demands(answer);
  PipelineProbe out;
  out.qualified = checks.all_passed();
  out.record = {{"schema", "hebe.qualification.toolchain/1"},
                {"when", nullptr}, // equal toolchains give equal records
                {"hebe_version", fmt::format("{} ({})", kVersion, kGit)},
                {"environment", evidence::environment_json(facts)},
                {"subject", {{"launch", compiled.launch.json}, {"artifacts", compiled.artifacts}}},
                {"edit", {{"passes", rewrite::to_json(edit.passes)}, {"ttgir", edit_digest}}},
                {"demands", qualify::to_json(checks.rows)},
                {"qualified", out.qualified}};
  for (const auto* name : {"rows", "programs", "connections", "artifacts", "triton", "ptxas"})
    out.record[name] = answer.at(name);
  return out;
}

} // namespace hebe::campaign
