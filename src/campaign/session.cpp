#include "campaign/session.hpp"

#include "core/build_identity.hpp"

#include <fmt/format.h>

namespace hebe::campaign {

Result<Session> session_of(const Machine& machine, const std::string& program_sha256) {
  HEBE_TRY(auto boot, machine.boot());
  const auto& info = machine.info();
  return Session{info.name,       info.uuid,      machine.driver(),
                 std::move(boot), program_sha256, fmt::format("{} ({})", kVersion, kGit)};
}

Json to_json(const Session& s) {
  return {{"board_name", s.board_name},
          {"board_uuid", s.board_uuid},
          {"driver", s.driver},
          {"boot", s.boot},
          {"program_sha256", s.program_sha256},
          {"program_version", s.program_version}};
}

Session session_from(const Json& j) {
  return {j.at("board_name"), j.at("board_uuid"),     j.at("driver"),
          j.at("boot"),       j.at("program_sha256"), j.at("program_version")};
}

Status check_same_session(const Session& recorded, const Session& now, bool study,
                          const std::string& campaign) {
  std::string differences;
  const auto compare = [&](const char* what, const std::string& before, const std::string& after) {
    if (before != after)
      differences += fmt::format("{}{}: \"{}\" then, \"{}\" now", differences.empty() ? "" : "; ",
                                 what, before, after);
  };
  compare("board model", recorded.board_name, now.board_name);
  compare("driver", recorded.driver, now.driver);
  compare("binary (hebe, sha256)", recorded.program_sha256, now.program_sha256);
  if (study) {
    compare("board", recorded.board_uuid, now.board_uuid);
    compare("boot session", recorded.boot, now.boot);
  }
  if (differences.empty()) return {};
  return refuse(
      RefusalCode::session_changed, "this is not what the campaign was begun with: " + differences,
      study ? "go on on that board, in that boot session, with that binary; or plan a new "
              "campaign: a study cannot be split"
            : "go on with the same board model, driver and binary, or plan a new campaign",
      campaign);
}

} // namespace hebe::campaign
