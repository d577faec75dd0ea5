// Studies as tests make them, analysed; and what their analyses say, by name.
#pragma once

#include "evidence/study_analysis.hpp"

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"
#include "../data/support/sealed_study.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hebe::evidence {
namespace fs = std::filesystem;
using test::Documents;
using test::MadeStudy;

inline constexpr const char* kSecond = "16384x8192.hoisted";

inline Result<Json> analysed(const MadeStudy& s, const DataRoot& root) {
  return study_analysis("spring", s.study, s.record, s.sealed(root));
}
inline Result<Json> analysed(const MadeStudy& s) {
  const test::ScratchFolder folder;
  return analysed(s, DataRoot(folder.path()));
}
inline Json changed(MadeStudy s, const std::function<void(MadeStudy&)>& change) {
  change(s);
  s.name_record();
  auto result = analysed(s);
  EXPECT_TRUE(result) << (result ? "" : to_text(result.error()));
  return result ? *result : Json();
}

inline std::string evidence_of(const Json& analysis, const std::string& condition) {
  for (const auto& c : analysis.at("conditions"))
    if (c.at("name") == condition) return c.at("evidence");
  return "no such condition";
}
inline std::vector<std::string> failing(const Json& analysis) {
  std::vector<std::string> out;
  for (const auto& c : analysis.at("conditions"))
    if (!c.at("holds").get<bool>()) out.push_back(c.at("name"));
  return out;
}
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
inline std::string joined(const Json& words) {
  std::string out;
  for (const auto& w : words) out += w.get<std::string>() + "\n";
  return out;
}

// Studies that many facts look at.
inline const Json& simulated() {
  static const auto json = analysed(test::made_study()).value();
  return json;
}
inline const Json& measured() {
  static const auto json = analysed(test::as_measured()).value();
  return json;
}

} // namespace hebe::evidence
