// One measurement at a time in this process: two would be part of each other's windows. Invariant:
// who does not get the right is refused at once, a callable that measures among them, and whoever
// has it gives it back on every way out.
#pragma once

#include "core/result.hpp"

#include <atomic>

namespace hebe::capi {

class Exclusive {
public:
  [[nodiscard]] static Result<Exclusive> take() {
    if (measuring().exchange(true))
      return refuse(RefusalCode::lease_held, "this process is measuring already",
                    "measure one thing at a time");
    return Exclusive(true);
  }
  Exclusive(Exclusive&& o) noexcept : mine_(std::exchange(o.mine_, false)) {}
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;
  ~Exclusive() {
    if (mine_) measuring() = false;
  }

private:
  explicit Exclusive(bool mine) : mine_(mine) {}
  static std::atomic<bool>& measuring() {
    static std::atomic<bool> one{false};
    return one;
  }
  bool mine_;
};

} // namespace hebe::capi
