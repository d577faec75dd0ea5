// Whether a receipt's statement is still what its subject says. In: the statement, whose signature
// fits, and the subject as it lies there; out: what holds, and what is wrong by name. Invariant:
// what a receipt says of another thing than was signed, or of one that does not verify, is not
// compared: that is said.
#pragma once

#include "evidence/receipt.hpp"

namespace hebe::evidence {

/// `report.statement` follows its schema. `where` names the receipt.
void compare_with_subject(ReceiptReport& report, const ReceiptSubject& there,
                          const std::string& where);

} // namespace hebe::evidence
