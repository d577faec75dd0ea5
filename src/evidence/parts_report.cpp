// A verification of something that is made of other records, part by part.
#include "evidence/verify.hpp"

#include <algorithm>

namespace hebe::evidence {

bool PartsReport::valid() const {
  return std::ranges::all_of(parts, [](const VerifiedPart& p) { return p.report.valid(); });
}

VerifyReport& PartsReport::part(std::string what) {
  parts.push_back({std::move(what), {}});
  return parts.back().report;
}

void PartsReport::missing(VerifyReport& report, const std::string& what) {
  report.not_checked.push_back(what + ": not in this data root");
  complete = false;
  for (const auto& part : parts)
    if (&part.report == &report) absent.push_back(part.what + ": " + what);
}

} // namespace hebe::evidence
