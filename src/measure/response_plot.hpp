// A response as a picture. In: what was found; out: one SVG, self-contained and without scripts.
// Invariant: it draws the record's numbers and nothing else.
#pragma once

#include "measure/response.hpp"

#include <string>

namespace hebe::measure {

/// `title` names the board and says whether it is simulated.
[[nodiscard]] std::string response_svg(const Response& response, const std::string& title);

} // namespace hebe::measure
