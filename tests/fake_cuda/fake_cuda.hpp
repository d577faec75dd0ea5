// What the stand-in for libcuda.so.1 remembers. Invariant: one state for the driver and its test.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hebe::test {

struct FakeCuda {
  std::vector<std::pair<std::string, const void*>> calls;
  void* current = nullptr; ///< context
  int retained = 0;        ///< primary contexts
  unsigned made = 0;       ///< streams and events
  [[nodiscard]] int count(const std::string& call, const void* handle) const {
    int n = 0;
    for (const auto& [name, of] : calls) n += name == call && of == handle ? 1 : 0;
    return n;
  }
};

} // namespace hebe::test
