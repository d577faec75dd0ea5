// What a C call gives back. In: a result or a refusal of the C++ call behind it; out: the exit code
// and a JSON text that the caller frees. Invariant: no exception crosses, and no answer is lost:
// where even the text of a refusal cannot be made, the exit code still says it.
#pragma once

#include "core/json.hpp"

#include <functional>

namespace hebe::capi {

/// A refusal as `hebe --json` shows it.
[[nodiscard]] Json refusal_json(const Refusal& refusal);

/// What was answered, with the exit code that the program would end with.
struct Answer {
  Json json;
  int exit_code = 0;
};

/// Parses `request`, calls `make`, writes the answer as JSON into `*out` (null: nobody wants it).
/// 0 to 5 and 130 as the program's; 70 for an exception.
int answer(const char* request, char** out,
           const std::function<Result<Answer>(const Json& request)>& make) noexcept;

} // namespace hebe::capi
