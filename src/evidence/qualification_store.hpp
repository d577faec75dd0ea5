// Qualifications of meters and of their response, stored once under their content's name:
// qualifications/<kind>/<sha256>.json with the raw readings under artifacts/. In: what was recorded
// and found; out: immutable files, and back. Invariant: findings can be computed again from the
// readings; a qualification is of one board, driver and boot, and ends with any of them.
#pragma once

#include "evidence/content_record.hpp"
#include "evidence/verify.hpp"
#include "measure/source_recording.hpp"

#include <functional>

namespace hebe::evidence {

enum class QualificationKind { meter, response };
[[nodiscard]] std::string_view name_of(QualificationKind kind);
[[nodiscard]] std::filesystem::path qualifications_folder(const DataRoot& root,
                                                          QualificationKind kind);

/// What a qualification is bound to.
struct QualificationSubject {
  std::string vendor, name, uuid, pci_bus_id, driver, boot;
};

struct QualificationParts {
  QualificationSubject subject;
  std::string provenance;          ///< measured | simulated
  std::optional<std::string> when; ///< UTC; none: simulated time
  measure::Recording recording;
  Json findings; ///< measure::to_json of what was found
  Json load;     ///< which kernel, and how it was driven
};

using StoredQualification = StoredRecord;

/// Refuses before anything is written (bad_schema), or no_space, no_permission.
[[nodiscard]] Result<StoredQualification>
store_qualification(const DataRoot& root, QualificationKind kind, const QualificationParts& parts);

/// By id or a unique part of one; empty: the newest. Checks name, bytes and schema.
[[nodiscard]] Result<StoredQualification>
load_qualification(const DataRoot& root, QualificationKind kind, const std::string& name);

/// The newest id of each board that has one; empty: there is none. Refuses where a file is damaged.
[[nodiscard]] Result<std::vector<std::string>> newest_of_each_board(const DataRoot& root,
                                                                    QualificationKind kind);

/// The recording with its readings, whose digest is checked.
[[nodiscard]] Result<measure::Recording> recording_of(const DataRoot& root,
                                                      const StoredQualification& stored);

/// Computes the findings of a recording again, by the rules that the stored ones say they follow.
using FindAgain = std::function<Result<Json>(const measure::Recording&, const Json& stored)>;
[[nodiscard]] Result<VerifyReport> verify_qualification(const DataRoot& root,
                                                        QualificationKind kind,
                                                        const std::string& name,
                                                        const FindAgain& find);

/// The newest qualification of this board that holds here and now. Refuses meter_not_qualified:
/// there is none, it is of another driver or boot (which is said), or it found no primary.
[[nodiscard]] Result<StoredQualification>
current_qualification(const DataRoot& root, QualificationKind kind, const std::string& board_uuid,
                      const std::string& driver, const std::string& boot);

} // namespace hebe::evidence
