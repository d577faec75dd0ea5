// Do the sources agree with each other, and who is wrong if not? In: a recording, findings so far;
// out: rejections (wrong_unit, implausible, lies, disagrees) and the ratios at each level.
// Invariant: one instrument under several names has one voice.
#pragma once

#include "measure/source_qualification.hpp"

#include <map>

namespace hebe::measure {

/// The first reason stays.
void reject(SourceFindings& f, Rejection why, std::string reason);
[[nodiscard]] bool is_counter(const SourceRecord& s);

class Agreement {
public:
  Agreement(const Recording& recording, Qualification& q);
  void judge();
  /// Ratios of every readable source to the reference, rejected ones too: they show why.
  void describe(std::size_t reference);

private:
  using Power = std::map<Level, MeanPower>;
  [[nodiscard]] bool candidate(std::size_t i) const;
  void judge_size();
  void judge_agreement();
  [[nodiscard]] std::size_t votes(const std::vector<std::size_t>& group) const;
  void complain(std::size_t i, std::size_t other, bool lies);
  const Recording& recording_;
  Qualification& q_;
  std::vector<Power> powers_;
};

} // namespace hebe::measure
