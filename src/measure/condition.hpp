// One thing that must hold, with what shows whether it does. Invariant: the evidence has the
// numbers, so that a reader can disagree.
#pragma once

#include <string>

namespace hebe::measure {

struct Condition {
  std::string name;
  bool holds = false;
  std::string evidence;
};

} // namespace hebe::measure
