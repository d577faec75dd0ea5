// Independent work on several cores. In: how many items, how many threads, what to do with one;
// out: nothing, or the refusal of the first item (by index) that was refused. Invariant: an
// exception thrown for an item is thrown again to the caller; every thread has ended on return.
#pragma once

#include "core/result.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace hebe {

/// At least 1.
[[nodiscard]] inline unsigned core_count() {
  return std::max(1U, std::thread::hardware_concurrency());
}

/// Calls `Status body(std::size_t index)` for every index below `count`, on up to `threads` threads
/// (the caller's is one of them; a single item starts none). After a failure no new item begins.
template <class Body>
[[nodiscard]] Status for_each_index(std::size_t count, unsigned threads, Body&& body) {
  struct Failure {
    std::size_t index;
    Refusal refusal;
    std::exception_ptr exception;
  };
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex guard;
  std::optional<Failure> failure;
  const auto failed = [&](Failure f) {
    const std::lock_guard lock(guard);
    stop = true;
    if (!failure || f.index < failure->index) failure = std::move(f);
  };
  const auto work = [&] {
    while (!stop) {
      const auto index = next++;
      if (index >= count) return;
      try {
        if (Status status = body(index); !status)
          failed({index, std::move(status).error(), nullptr});
      } catch (...) {
        failed({index, {}, std::current_exception()});
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const auto wanted = std::min<std::size_t>(std::max(1U, threads), count);
    try {
      while (others.size() + 1 < wanted) others.emplace_back(work);
    } catch (const std::system_error&) { // no more threads allowed here: fewer do the same work
    }
    work();
  }
  if (failure && failure->exception) std::rethrow_exception(failure->exception);
  if (failure) return std::unexpected(std::move(failure->refusal));
  return {};
}

} // namespace hebe
