// A tune from its specification to a profile. In: shapes, backends, an objective, a board; out: one
// row a shape, resting on sealed runs, and the record of everything that was tried. Invariant: a
// shape in which a candidate ran and was not measured has no row, and the others go on; where no
// shape is left nothing is written; an interrupted tune writes the shapes that were finished, a
// killed one leaves sealed runs and nothing half-written.
#pragma once

#include "tune/finalists.hpp"
#include "tune/profile.hpp"

namespace hebe::tune {

struct TuneRequest {
  TuneSpec spec;
  campaign::JobRequest job; ///< machine, worker, scratch, what is recorded, sealer
  HostMetering host = rapl_metering();
  bool dry_run = false;
};

/// A shape that was searched and confirmed, or why it has no row.
struct TunedShape {
  PreparedShape prepared;
  std::optional<SearchedShape> searched;
  std::optional<Confirmed> confirmed;
  std::optional<Refusal> voided;
};

struct TuneOutcome {
  std::vector<TunedShape> shapes;
  Json record; ///< hebe.tune/1; of a dry run: what would be tried
  std::string record_id;
  std::filesystem::path record_file, profile_file;
  Profile profile;
  [[nodiscard]] const Refusal* first_void() const;
  /// The user had enough: a shape, or the comparison of one with the fastest, was not measured.
  [[nodiscard]] bool interrupted() const;
};

/// Refuses what is wrong with the specification, the board or its meter before anything is
/// compiled; then only what ends the whole tune. All shapes voided: the first one's refusal.
[[nodiscard]] Result<TuneOutcome> run_tune(const evidence::DataRoot& root,
                                           const TuneRequest& request,
                                           const campaign::JobCallbacks& callbacks);

/// Where profiles and the records of tunes lie.
[[nodiscard]] std::filesystem::path profiles_of(const evidence::DataRoot& root);
[[nodiscard]] std::filesystem::path tunes_of(const evidence::DataRoot& root);

} // namespace hebe::tune
