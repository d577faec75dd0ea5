// Named places where a process may die and nothing may be lost. In: a name; out: nothing, unless a
// test listens. Invariant: the shipped program never listens; tests stop the process here and check
// what is left (tests/crash).
#pragma once

#include <functional>
#include <string_view>

namespace hebe {

using CrashPointListener = std::function<void(std::string_view name)>;

/// "seal: rename" and the like: what is about to happen.
void crash_point(std::string_view name);
/// Not thread-safe against crash_point: called once, before work begins. Empty: nobody listens.
void listen_at_crash_points(CrashPointListener listener);

} // namespace hebe
