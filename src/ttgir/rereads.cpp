#include "ttgir/rereads.hpp"

#include <algorithm>

namespace hebe::ttgir {

Rereads::Page& Rereads::page(std::size_t buffer, std::uint64_t number) {
  auto& held = pages_[(std::uint64_t{buffer} << 40) | number];
  if (!held) {
    if (spare_.empty()) {
      held = std::make_unique<Page>();
    } else {
      held = std::move(spare_.back());
      spare_.pop_back();
    }
    held->fill(0);
  }
  return *held;
}

void Rereads::found(std::size_t buffer, std::uint32_t last, std::uint64_t bytes) {
  Bytes& sum = by_buffer[buffer];
  if (last == 0) {
    sum.first += bytes;
    return;
  }
  const bool written = (last & kWritten) != 0;
  const std::uint32_t execution = last & ~kWritten;
  if (!written && execution == executed_.size()) {
    sum.lanes += bytes;
    return;
  }
  (written ? sum.after_write : sum.again) += bytes;
  pairs[{static_cast<std::uint32_t>(buffer), executed_[execution - 1], executed_.back(),
         written}] += bytes;
}

void Rereads::load(std::size_t buffer, std::uint64_t offset, std::uint64_t bytes) {
  const auto now = static_cast<std::uint32_t>(executed_.size());
  for (const std::uint64_t end = offset + bytes; offset < end;) {
    Page& at = page(buffer, offset / kPage);
    const std::uint64_t stop = std::min(end, (offset / kPage + 1) * kPage);
    // Bytes side by side mostly have one history: a look at the pairs for each run of them.
    while (offset < stop) {
      const std::uint32_t last = at[offset % kPage];
      const std::uint64_t from = offset;
      while (offset < stop && at[offset % kPage] == last) at[offset++ % kPage] = now;
      found(buffer, last, offset - from);
    }
  }
}

void Rereads::write(std::size_t buffer, std::uint64_t offset, std::uint64_t bytes) {
  const auto now = static_cast<std::uint32_t>(executed_.size()) | kWritten;
  for (const std::uint64_t end = offset + bytes; offset < end;) {
    Page& at = page(buffer, offset / kPage);
    const std::uint64_t stop = std::min(end, (offset / kPage + 1) * kPage);
    std::fill(at.begin() + static_cast<std::ptrdiff_t>(offset % kPage),
              at.begin() + static_cast<std::ptrdiff_t>(offset % kPage + (stop - offset)), now);
    offset = stop;
  }
}

void Rereads::end_program() {
  for (auto& [key, held] : pages_) spare_.push_back(std::move(held));
  pages_.clear();
  executed_.clear();
}

} // namespace hebe::ttgir
