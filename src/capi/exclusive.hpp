// One measurement at a time in this process: two would be part of each other's windows. Invariant:
// who does not get the right is refused at once, and whoever has it gives it back on every way out.
#pragma once

#include "core/result.hpp"

#include <mutex>

namespace hebe::capi {

class Exclusive {
public:
  [[nodiscard]] static Result<Exclusive> take() {
    static std::mutex measuring;
    std::unique_lock lock(measuring, std::try_to_lock);
    if (!lock.owns_lock())
      return refuse(RefusalCode::lease_held, "another thread of this process is measuring",
                    "measure one thing at a time");
    return Exclusive(std::move(lock));
  }

private:
  explicit Exclusive(std::unique_lock<std::mutex> lock) : lock_(std::move(lock)) {}
  std::unique_lock<std::mutex> lock_;
};

} // namespace hebe::capi
