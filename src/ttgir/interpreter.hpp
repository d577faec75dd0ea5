// Runs a TTIR or TTGIR function on the CPU. In: a module, the name of a function, a grid and its
// arguments; out: what it wrote, and counts. Invariant: nothing runs before every operation is
// understood; an access outside the arguments is refused by op, program and element; results
// without float atomics do not depend on the number of threads. What the numbers do:
// docs/interpreter.md.
#pragma once

#include "core/result.hpp"
#include "ttgir/counts.hpp"
#include "ttgir/ir.hpp"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hebe::ttgir {

struct BufferArgument {
  std::span<std::byte> bytes; ///< aligned to 8; not written where not writable
  bool writable = true;
  std::string name; ///< for messages; empty: the function's own name for it
};
struct ScalarArgument {
  Scalar type = Scalar::i32;
  std::uint64_t bits = 0; ///< in the low bits, as in memory
};
/// A host tensor descriptor; the block is that of the argument's type.
struct DescriptorArgument {
  BufferArgument buffer;
  std::vector<std::int64_t> shape, strides; ///< in elements
  bool nan_padding = false;
};
using LaunchArgument = std::variant<BufferArgument, ScalarArgument, DescriptorArgument>;

struct Limits {
  std::uint64_t steps = 200'000'000; ///< operations that one program may run
  unsigned calls = 64;               ///< depth of tt.call
  std::size_t printed = 1 << 16;     ///< bytes of tt.print
};

struct Launch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::vector<LaunchArgument> arguments; ///< as the function has them
  std::vector<BufferArgument> reachable; ///< more buffers, for pointers that lie in memory
  unsigned threads = 1;
  Limits limits;
};

/// The address of a buffer as the kernel sees it: argument `number`, or arguments.size() + i for
/// reachable[i]. Addresses of different buffers are far apart; they are divisible by 256.
[[nodiscard]] std::uint64_t address_of_buffer(std::size_t number);

struct InterpretOptions {
  bool count = false;
  /// Elements without a defined value (masked off without `other`, ub.poison) are NaN or 0xCC…
  /// instead of 0, so that reliance on them shows.
  bool poison_undefined = false;
  /// With `count`: what each program loads more than once, and by which ops. Slower.
  bool rereads = false;
};

struct Outcome {
  std::optional<Counts> counts;
  std::string printed; ///< by tt.print, in the order of programs where threads is 1
  std::uint64_t programs = 0;
  std::size_t lane_bytes = 0; ///< memory for values, all threads
};

[[nodiscard]] Result<Outcome> interpret(const Module& module, std::string_view function,
                                        const Launch& launch, const InterpretOptions& options = {});

/// Every operation of the function that cannot be interpreted, with its line and the reason.
[[nodiscard]] std::vector<Refusal> not_interpretable(const Module& module,
                                                     std::string_view function = {});

} // namespace hebe::ttgir
