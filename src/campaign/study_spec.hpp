// What a study asks, as its author wrote it. In: a TOML or JSON file (schema hebe.study.spec/1);
// out: contrasts of one qualification, a control, a floor, a protocol. Invariant: it names no
// kernel's code: that is the qualification's, which is chosen when the study is run.
#pragma once

#include "campaign/campaign_spec.hpp"
#include "campaign/qualified_arms.hpp"

namespace hebe::campaign {

struct StudyControl {
  kernel::CaseRequest subject;
  double fraction = 1;
};

struct StudySpec {
  std::string name, description;
  std::string qualification;                ///< the name that its records carry
  JobSpec protocol;                         ///< tier, pairs, lengths, margins, seed
  std::vector<QualifiedContrast> contrasts; ///< the first is the primary one
  std::optional<StudyControl> control;
  std::optional<kernel::CaseRequest> floor; ///< a plain copy of the primary point's bytes
  /// Of one job's simulated board, by the job's id: for tests of what a study does then.
  std::map<std::string, std::vector<gpu::Fault>> faults;
  std::filesystem::path folder; ///< what relative names in it are relative to
  Json json;                    ///< as it was read
};

/// bad_spec, with the place. The protocol is the tier's own minimum where the file does not say.
[[nodiscard]] Result<StudySpec> read_study_spec(const std::filesystem::path& file,
                                                const CaseResolver& resolve);

/// The id of a contrast's job: "primary", or point and arms in letters that a file name may have.
[[nodiscard]] std::string job_id_of(const StudySpec& spec, std::size_t contrast);

} // namespace hebe::campaign
