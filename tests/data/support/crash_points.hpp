// Crash points as a test sees them. In: what to do; out: the points it passed, or a process that
// ended at one. Invariant: nobody listens afterwards.
#pragma once

#include "core/crash_point.hpp"

#include "child_process.hpp"

#include <functional>
#include <string>
#include <vector>

namespace hebe::test {

inline std::vector<std::string> crash_points_of(const std::function<void()>& action) {
  std::vector<std::string> out;
  listen_at_crash_points([&](std::string_view point) { out.emplace_back(point); });
  action();
  listen_at_crash_points({});
  return out;
}

/// Whether a child that does `action` ended at its crash point number `at`, from 0.
inline bool ends_at_crash_point(std::size_t at, const std::function<void()>& action) {
  constexpr int kEnded = 42;
  return exit_code_in_child([&] {
           std::size_t passed = 0;
           listen_at_crash_points([&](std::string_view) {
             if (passed++ == at) ::_exit(kEnded);
           });
           action();
           return 0;
         }) == kEnded;
}

} // namespace hebe::test
