#include "tune/present_machine.hpp"

#include "core/build_identity.hpp"
#include "evidence/environment.hpp"
#include "evidence/qualification_store.hpp"

namespace hebe::tune {
namespace {

std::optional<std::string> host_fact(const std::string& name) {
  for (const auto& fact : evidence::host_facts(true, {}))
    if (fact.name == name && fact.value.is_string()) return fact.value.get<std::string>();
  return std::nullopt;
}

} // namespace

std::string operating_system() { return host_fact("host.distribution").value_or("not known"); }

std::optional<std::string> processor() { return host_fact("host.cpu"); }

Result<Present> present_machine(const evidence::DataRoot& root, const campaign::Machine& machine,
                                bool with_meters) {
  const auto& board = machine.meter().board();
  Present out;
  out.board = machine.info().name;
  out.board_uuid = machine.info().uuid;
  out.driver = board.driver;
  out.os = host_fact("host.distribution");
  out.hebe = kVersion;
  if (!with_meters) return out;
  out.meters.emplace();
  if (machine.simulated()) { // its meters are what they are said to be
    (*out.meters)[machine.meter().samples_source().name] = "primary";
    return out;
  }
  HEBE_TRY(const auto boot, machine.boot());
  auto stored = evidence::current_qualification(root, evidence::QualificationKind::meter,
                                                board.uuid, board.driver, boot);
  if (!stored) {
    stored.error().next =
        "qualify it with `hebe probe-meter` (about a minute), or say what is known "
        "with --meter NAME=STATUS";
    return std::unexpected(std::move(stored).error());
  }
  for (const auto& source : stored->json.at("findings").at("sources"))
    (*out.meters)[source.at("name").get<std::string>()] = source.at("verdict").get<std::string>();
  return out;
}

} // namespace hebe::tune
