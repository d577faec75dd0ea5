// Text of a module. In: a module, edited or not; out: text that Triton reads. Invariant: an
// untouched module gives the bytes that were read; an edited one keeps every name that still is
// unique.
#pragma once

#include "ttgir/ir.hpp"

#include <string>

namespace hebe::ttgir {

/// The source where nothing was edited, print_structure() otherwise.
[[nodiscard]] std::string print(const Module& module);
/// Every operation from its structure, never from the source. For text as Triton prints it this too
/// gives the source's bytes, which is how the printer is tested.
[[nodiscard]] std::string print_structure(const Module& module);
/// One operation, for messages: without regions and location.
[[nodiscard]] std::string to_text(const Operation& op);

} // namespace hebe::ttgir
