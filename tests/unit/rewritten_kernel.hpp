// A pass on a kernel in a test: its text, options and facts. In: TTGIR text; out: the rewritten
// text and its account. Invariant: what a pass leaves must be read and verified again, or the test
// fails.
#pragma once

#include "interpreted_kernel.hpp"

#include "core/files.hpp"
#include "rewrite/pass.hpp"
#include "ttgir/verify.hpp"

#include <algorithm>
#include <filesystem>

namespace hebe::rewrite::testing_passes {

using ttgir::testing_kernels::function;

inline LaunchFacts facts_of(std::map<std::string, std::int64_t> scalars,
                            std::array<std::uint32_t, 3> grid = {0, 0, 0}, bool disjoint = true) {
  return {std::move(scalars), grid, disjoint};
}

inline std::string dump(const std::string& name) {
  auto text = read_file(std::string(HEBE_TEST_DATA) + "/ttgir/" + name);
  EXPECT_TRUE(text);
  return text ? *text : "";
}

inline std::vector<std::string> ttgir_dumps() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(HEBE_TEST_DATA) + "/ttgir"))
    if (entry.path().extension() == ".ttgir") names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

inline Result<Rewritten> applied(const std::string& text, const char* passes,
                                 const LaunchFacts& facts = {}) {
  HEBE_TRY(const auto requests, requests_from(Json::parse(passes), "test"));
  return apply(text, requests, facts, "test");
}

/// One pass or a list of them, as JSON.
inline Rewritten rewritten(const std::string& text, const char* passes,
                           const LaunchFacts& facts = {}) {
  auto made = applied(text, passes, facts);
  EXPECT_TRUE(made) << to_text(made.error()) << "\n" << text;
  if (!made) return {};
  const auto again = ttgir::read_module(made->ttgir);
  EXPECT_TRUE(again) << to_text(again.error()) << "\n" << made->ttgir;
  if (again) {
    const auto findings = ttgir::verify(**again);
    EXPECT_TRUE(findings.empty()) << findings.front().what << "\n" << made->ttgir;
  }
  return *std::move(made);
}

inline std::string refusal(const std::string& text, const char* passes,
                           const LaunchFacts& facts = {}) {
  const auto made = applied(text, passes, facts);
  return made ? "no refusal"
              : std::string(name_of(made.error().code)) + ": " + made.error().what + "; " +
                    made.error().next;
}

/// Why the first refused place was left; "" where none was.
inline std::string why(const Rewritten& made) {
  return made.account.refused.empty() ? "" : made.account.refused.front().why;
}

inline std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

} // namespace hebe::rewrite::testing_passes
