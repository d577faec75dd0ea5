// Who measures: the board, its driver, the kernel's boot, the program. In: an open machine and the
// program's digest; out: an identity, and in what it differs from one recorded before. Invariant:
// a campaign goes on only where everything that could change its numbers is what it was.
#pragma once

#include "campaign/machine.hpp"
#include "core/json.hpp"

namespace hebe::campaign {

struct Session {
  std::string board_name, board_uuid, driver, boot, program_sha256, program_version;
};

[[nodiscard]] Result<Session> session_of(const Machine& machine, const std::string& program_sha256);
[[nodiscard]] Json to_json(const Session& session);
[[nodiscard]] Session session_from(const Json& json);

/// session_changed, naming every difference with both values. Inside a study board and boot must be
/// the same one; in a free campaign another board of the same model, or another boot, will do.
[[nodiscard]] Status check_same_session(const Session& recorded, const Session& now, bool study,
                                        const std::string& campaign);

} // namespace hebe::campaign
