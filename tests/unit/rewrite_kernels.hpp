// Kernels of a few lines for the tests of passes. In: a body as TTGIR text, passes as JSON, facts;
// out: the rewritten body and the account. Invariant: what a pass gives is read and verified again.
#pragma once

#include "rewrite/pass.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/verify.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hebe::rewrite {

struct Outcome {
  std::string body;
  Account account;
  [[nodiscard]] std::size_t count(std::string_view what) const {
    std::size_t n = 0;
    for (auto at = body.find(what); at != std::string::npos; at = body.find(what, at + 1)) ++n;
    return n;
  }
  [[nodiscard]] std::string refused() const {
    std::string out;
    for (const auto& each : account.refused) out += each.op + ": " + each.why + "\n";
    return out;
  }
  [[nodiscard]] bool changed(std::string_view what) const {
    for (const auto& each : account.changes)
      if (each.what.find(what) != std::string::npos) return true;
    return false;
  }
};

inline const std::string kArguments =
    "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %c: i1, %a: f32, %b: f32, %d: i1";

inline Outcome rewrite(const std::string& body, const std::string& passes,
                       const LaunchFacts& facts = {}, const std::string& arguments = kArguments) {
  const auto requests = requests_from(Json::parse(passes), "test");
  EXPECT_TRUE(requests) << (requests ? "" : to_text(requests.error()));
  if (!requests) return {};
  auto done = apply("module attributes {ttg.target = \"cuda:90\"} {\n  tt.func public @f(" +
                        arguments + ") {\n" + body + "    tt.return\n  }\n}\n",
                    *requests, facts, "test");
  EXPECT_TRUE(done) << (done ? "" : to_text(done.error()));
  if (!done) return {};
  auto again = ttgir::read_module(done->ttgir);
  EXPECT_TRUE(again) << (again ? "" : to_text(again.error())) << done->ttgir;
  if (again) {
    for (const auto& each : ttgir::verify(**again))
      ADD_FAILURE() << each.op << ": " << each.what << "\n" << done->ttgir;
  }
  const auto begin = done->ttgir.find("{\n    ") + 2;
  const auto end = done->ttgir.rfind("    tt.return");
  return {begin <= end ? done->ttgir.substr(begin, end - begin) : std::string(),
          std::move(done->account)};
}

inline LaunchFacts with_n(std::int64_t n, bool disjoint = false) {
  LaunchFacts facts;
  facts.scalars["n"] = n;
  facts.disjoint = disjoint;
  return facts;
}

} // namespace hebe::rewrite
