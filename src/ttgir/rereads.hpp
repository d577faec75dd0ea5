// What one program loads more than once. In: every range that a program loads or writes, in its
// order; out: bytes loaded for the first time, again, or after the program's own write, and which
// two operations read the same bytes. Invariant: programs are apart: what another program loaded is
// not "again"; the classes sum to the bytes loaded. Holds 4 bytes for each byte that one program
// touches.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace hebe::ttgir {

class Rereads {
public:
  explicit Rereads(std::size_t buffers) : by_buffer(buffers) {}

  /// An instruction is executed once more.
  void begin(std::uint32_t instruction) { executed_.push_back(instruction); }
  void load(std::size_t buffer, std::uint64_t offset, std::uint64_t bytes);
  void write(std::size_t buffer, std::uint64_t offset, std::uint64_t bytes); ///< atomics too
  void end_program();

  struct Bytes {
    std::uint64_t first = 0;       ///< not loaded by this program before
    std::uint64_t lanes = 0;       ///< by another element of the same execution
    std::uint64_t again = 0;       ///< by an earlier execution, not written since
    std::uint64_t after_write = 0; ///< what this program wrote last
  };
  std::vector<Bytes> by_buffer;

  struct Pair {
    std::uint32_t buffer = 0;
    std::uint32_t earlier = 0, later = 0; ///< instructions
    bool written = false;                 ///< the earlier one is the program's own write
    auto operator<=>(const Pair&) const = default;
  };
  std::map<Pair, std::uint64_t> pairs; ///< bytes

private:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint32_t kWritten = 1U << 31;
  /// By byte: the execution that touched it last (1: the first), kWritten where it wrote; 0: none.
  using Page = std::array<std::uint32_t, kPage>;
  Page& page(std::size_t buffer, std::uint64_t number);
  void found(std::size_t buffer, std::uint32_t last, std::uint64_t bytes);

  std::vector<std::uint32_t> executed_; ///< instructions, in order
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::vector<std::unique_ptr<Page>> spare_;
};

} // namespace hebe::ttgir
