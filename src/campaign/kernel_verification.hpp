// A stored qualification looked at again. In: the record and its artifacts; out: what holds, what
// does not. Invariant: needs neither GPU nor compiler: artifacts are checked by digest, and every
// rewrite is done again on the stored baseline.
#pragma once

#include "evidence/content_record.hpp"
#include "evidence/verify.hpp"

namespace hebe::campaign {

/// Of schema hebe.qualification.kernel/1 or hebe.recon/1.
[[nodiscard]] Result<evidence::VerifyReport>
verify_kernel_qualification(const evidence::DataRoot& root, const evidence::StoredRecord& stored);

} // namespace hebe::campaign
