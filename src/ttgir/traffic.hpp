// Bytes that move, as they are counted while programs run. In: ranges of addresses that an op
// accesses; out: sums by op and buffer, and a map of the bytes touched. Invariant: sums belong to
// one thread and are joined at the end; the maps are shared and only ever gain bits.
#pragma once

#include "ttgir/counts.hpp"
#include "ttgir/global_memory.hpp"
#include "ttgir/rereads.hpp"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

namespace hebe::ttgir {

/// Which bytes of every buffer were loaded, which were stored: two bits a byte.
class TouchedBytes {
public:
  explicit TouchedBytes(const GlobalMemory& memory);
  void load(std::size_t buffer, std::uint64_t offset, std::uint64_t bytes) {
    mark(loaded_[buffer], offset, bytes);
  }
  void store(std::size_t buffer, std::uint64_t offset, std::uint64_t bytes) {
    mark(stored_[buffer], offset, bytes);
  }
  [[nodiscard]] std::uint64_t loaded(std::size_t buffer) const { return bits(loaded_[buffer]); }
  [[nodiscard]] std::uint64_t stored(std::size_t buffer) const { return bits(stored_[buffer]); }
  [[nodiscard]] std::uint64_t sectors(std::size_t buffer) const; ///< of 32 bytes

private:
  using Map = std::vector<std::atomic<std::uint64_t>>;
  static void mark(Map& map, std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] static std::uint64_t bits(const Map& map);
  std::vector<Map> loaded_, stored_;
};

class Traffic {
public:
  enum class Way : std::uint8_t { load, store, atomic };

  Traffic(TouchedBytes& touched, std::size_t instructions, std::size_t buffers, bool rereads);

  /// An op begins, with so many elements.
  void begin(std::uint32_t instruction, std::uint64_t lanes);
  /// `elements` active elements of it access `bytes` bytes from `address` on, in order.
  void range(Way way, std::uint64_t address, std::uint64_t bytes, std::uint64_t elements);
  void shared_read(std::uint64_t bytes) { shared_read_ += bytes; }
  void shared_written(std::uint64_t bytes) { shared_written_ += bytes; }
  /// One program ends; the bytes of global memory that it accessed.
  [[nodiscard]] std::uint64_t end_program() {
    if (rereads) rereads->end_program();
    return std::exchange(program_bytes_, 0);
  }

  struct Entry {
    std::uint32_t buffer;
    AccessCounts counts;
  };
  std::vector<std::vector<Entry>> by_instruction;
  struct Bytes {
    std::uint64_t loaded = 0, stored = 0, atomic = 0;
  };
  std::vector<Bytes> by_buffer;
  std::optional<Rereads> rereads; ///< where asked for
  [[nodiscard]] std::uint64_t all_shared_read() const { return shared_read_; }
  [[nodiscard]] std::uint64_t all_shared_written() const { return shared_written_; }

private:
  TouchedBytes& touched_;
  std::uint32_t instruction_ = 0;
  std::uint64_t lanes_ = 0; ///< of the op that runs; counted with its first range
  std::uint64_t last_sector_ = ~0ULL;
  std::uint64_t shared_read_ = 0, shared_written_ = 0, program_bytes_ = 0;
};

} // namespace hebe::ttgir
