// One program (block of the grid) while it runs. In: the launch's memory, the values in their
// slots; out: what operations leave there. Invariant: owned by one thread; nothing of one program
// is seen by the next that the thread runs.
#pragma once

#include "core/result.hpp"
#include "ttgir/global_memory.hpp"
#include "ttgir/interpreter.hpp"
#include "ttgir/lane_storage.hpp"
#include "ttgir/traffic.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace hebe::ttgir {

using Slot = std::uint32_t;
struct Code;
struct FunctionCode;
struct Plan;
class Instruction;
struct Barriers;

/// A tensor descriptor as the kernel holds it.
struct Descriptor {
  static constexpr std::size_t kMaxRank = 5;
  std::uint64_t base = 0;
  std::uint32_t rank = 0;
  bool nan_padding = false;
  std::array<std::int64_t, kMaxRank> shape{}, strides{}; ///< in elements
};

class Program {
public:
  Program(const Plan& plan, const GlobalMemory& memory, const Launch& launch,
          const InterpretOptions& options, Traffic* traffic);

  /// Runs the plan's function for the program with that number in the grid.
  [[nodiscard]] Status run_number(std::uint64_t number, const std::vector<Lanes>& arguments);
  /// Runs a block's operations; its ending is left to the caller.
  [[nodiscard]] Status run(const Code& code);
  /// Runs blocks from the first to one that does not branch; what that one ends with is moved into
  /// `values`, which holds the first block's arguments before.
  [[nodiscard]] Status run_blocks(const std::vector<std::unique_ptr<Code>>& blocks,
                                  std::vector<Lanes>& values);
  /// Runs a function; its results are moved into `results`.
  [[nodiscard]] Status call(const Instruction& from, const FunctionCode& function,
                            std::vector<Lanes> arguments, std::vector<Lanes>& results);

  [[nodiscard]] Lanes& at(Slot slot) { return frame_[slot]; }
  void set(Slot slot, Lanes lanes) { frame_[slot] = std::move(lanes); }
  [[nodiscard]] Lanes dense(std::size_t bytes) { return Lanes::dense(pool, bytes); }
  /// The values that a block ends with; those used for the last time are moved out.
  [[nodiscard]] std::vector<Lanes> ending(const Code& code);
  void assign(const std::vector<Slot>& slots, std::vector<Lanes>& values);

  /// One more operation against the limit, for loops whose body may be empty.
  [[nodiscard]] Status spend(const Instruction& instruction) {
    return steps_left_-- == 0 ? too_long(instruction) : Status{};
  }

  /// Bytes of global memory, or of the program's scratch; null where out of bounds.
  [[nodiscard]] std::byte* find(std::uint64_t address, std::size_t bytes) {
    if (buffer_of(address) == kScratchBuffer) [[unlikely]]
      return find_scratch(address, bytes);
    return memory.find(address, bytes);
  }
  [[nodiscard]] std::uint64_t take_scratch(std::size_t bytes, std::size_t alignment);

  /// "tt.load (line 23, %x_15) of program (3, 0, 0)", and an element where there is one.
  [[nodiscard]] std::string name(const Instruction& instruction, std::int64_t element = -1) const;
  void print(std::string_view text);

  Pool pool;
  const Plan& plan;
  const GlobalMemory& memory;
  const Launch& launch;
  const InterpretOptions& options;
  std::array<std::uint32_t, 3> id{};
  std::uint64_t number = 0;
  std::size_t width = 1;                 ///< how many elements a combine region works on at once
  std::vector<std::uint64_t> executions; ///< by instruction, of this program
  Traffic* traffic;                      ///< null: not counted
  std::vector<std::pair<std::uint64_t, std::string>> printed;
  std::unordered_map<std::uint64_t, Descriptor> tensormaps; ///< by their address in scratch
  Barriers* barriers = nullptr; ///< only where warps run apart (ttg.warp_specialize)

private:
  friend class FrameScope;
  [[nodiscard]] Status run_function(const FunctionCode& function, std::vector<Lanes> arguments,
                                    std::vector<Lanes>& results);
  [[nodiscard]] std::byte* find_scratch(std::uint64_t address, std::size_t bytes);
  [[nodiscard]] Status too_long(const Instruction& instruction) const;
  Lanes* frame_ = nullptr;
  std::uint64_t steps_left_ = 0;
  unsigned depth_ = 0;
  std::size_t printed_bytes_ = 0;
  std::vector<std::byte> scratch_;
};

} // namespace hebe::ttgir
