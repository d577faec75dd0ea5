// Host code of a stored tune, as the code that made it saw it. In: a shape of a record
// (hebe.tune/1); out: what its host code cost in the search, and when the best was measured again,
// each computed from the readings of the host's own meter. Invariant: of a cost nothing but its
// readings is taken from the record; what is host code follows from the specification.
#pragma once

#include "tune/stored_tune.hpp"

namespace hebe::tune {

/// Whether a recorded candidate is of a backend whose code runs on the host.
[[nodiscard]] bool is_host_code(const Json& candidate, const TuneSpec& spec);

/// Every candidate that is host code and was ready. analysis_mismatch: one of them has no readings,
/// or such as its meter would not have read; else what a cost is refused for.
[[nodiscard]] Result<std::vector<HostContender>> hosts_again(const Json& shape,
                                                             const StoredTune& tune);

/// Weighs the best of them as the tune did. analysis_mismatch: other host code was measured again
/// than the choice asks for.
[[nodiscard]] Status weigh_again(Confirmed& confirmed, const Json& shape,
                                 const SearchedShape& searched, const StoredTune& tune);

} // namespace hebe::tune
