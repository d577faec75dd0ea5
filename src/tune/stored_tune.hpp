// A stored tune, as the code that made it saw it. In: a record (hebe.tune/1) and, of the finalists,
// what their sealed runs give; out: its specification and place, and each shape searched and
// confirmed again from the readings alone. Invariant: nothing that follows from readings is taken
// from the record; a reading that the search would not have asked for is a refusal with its place.
#pragma once

#include "tune/tune_record.hpp"

namespace hebe::tune {

inline constexpr std::string_view kTuneSchema = "hebe.tune/1";

struct StoredTune {
  TuneSpec spec; ///< with the protocol that the finalists were measured by
  TunePlace place;
  MeterIdentity meter;
  [[nodiscard]] std::uint64_t seed_of(const std::string& what) const;
};
/// Of a record that follows its schema. bad_spec, bad_schema.
[[nodiscard]] Result<StoredTune> stored_tune(const Json& record, const std::string& where);

/// A shape's candidates with the state that they were left in before anything was measured.
[[nodiscard]] PreparedShape candidates_in(const Json& shape, const ShapeSpec& spec);

/// Whether a recorded candidate could be measured when the search began.
[[nodiscard]] bool was_ready(const Json& candidate);

/// analysis_mismatch: order, number or length of the windows is not what the search asks for, or a
/// window's readings contradict each other; else what a cost is refused for.
[[nodiscard]] Result<SearchedShape> search_again(const Json& shape, const StoredTune& tune);

/// `measured`: what each run of the record gave, in its order. analysis_mismatch: other pairs were
/// measured than the choice asks for.
[[nodiscard]] Result<Confirmed> confirm_again(const Json& shape, const SearchedShape& searched,
                                              const StoredTune& tune,
                                              const std::vector<campaign::JobOutcome>& measured);

} // namespace hebe::tune
