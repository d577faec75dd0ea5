// The kernel's global memory: buffers at addresses far apart. In: an address and a length; out: the
// bytes there, or which buffer was missed and by how much. Invariant: no byte outside a buffer is
// reachable; an address within 512 GiB of a buffer's begin is always told as that buffer's.
#pragma once

#include "ttgir/interpreter.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hebe::ttgir {

/// An address is (number + 1) << 40, plus 1 << 39, plus the offset: offsets may be negative on the
/// way.
inline constexpr unsigned kBufferShift = 40;
inline constexpr std::uint64_t kBufferOrigin = std::uint64_t{1} << 39;
/// The number of each program's own scratch memory (ttg.global_scratch_alloc).
inline constexpr std::size_t kScratchBuffer = (std::size_t{1} << 22) - 1;

[[nodiscard]] constexpr std::size_t buffer_of(std::uint64_t address) {
  return (address >> kBufferShift) - 1;
}
[[nodiscard]] constexpr std::int64_t offset_of(std::uint64_t address) {
  return static_cast<std::int64_t>(address & ((std::uint64_t{1} << kBufferShift) - 1)) -
         static_cast<std::int64_t>(kBufferOrigin);
}

class GlobalMemory {
public:
  struct Buffer {
    std::byte* data = nullptr; ///< null: no buffer has this number
    std::uint64_t size = 0;
    bool writable = false;
    std::string name;
  };
  explicit GlobalMemory(std::vector<Buffer> buffers) : buffers_(std::move(buffers)) {}

  /// Null where the bytes are not all inside one buffer.
  [[nodiscard]] std::byte* find(std::uint64_t address, std::size_t bytes) const {
    const std::size_t number = buffer_of(address);
    if (number >= buffers_.size()) return nullptr;
    const Buffer& buffer = buffers_[number];
    const auto offset = static_cast<std::uint64_t>(offset_of(address)); // a negative one is huge
    if (offset > buffer.size || buffer.size - offset < bytes) return nullptr;
    return buffer.data + offset;
  }
  [[nodiscard]] bool writable(std::uint64_t address) const {
    const std::size_t number = buffer_of(address);
    return number < buffers_.size() && buffers_[number].writable;
  }
  [[nodiscard]] const std::vector<Buffer>& buffers() const { return buffers_; }
  /// "reads 2 bytes at byte offset 1562 of 'X', which has 1562 bytes".
  [[nodiscard]] std::string describe(std::string_view verb, std::uint64_t address,
                                     std::size_t bytes) const;

private:
  std::vector<Buffer> buffers_;
};

} // namespace hebe::ttgir
