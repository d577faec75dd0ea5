// What a launch did, counted. In: what the interpreter saw; out: operations by kind and element
// type, bytes by argument and by op, in all and per program. Invariant: an operation is one per
// element of a tensor (a scalar op is one per program); the counts do not depend on the number of
// threads.
#pragma once

#include "core/json.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hebe::ttgir {

enum class WorkKind : std::uint8_t {
  none, ///< moves, shapes, control: nothing is computed
  add,
  multiply,
  fma,
  divide,
  remainder,
  sqrt,
  exponential,
  logarithm,
  trigonometric,
  other_math,
  minimum_maximum,
  compare,
  select,
  convert,
  integer,
  address,
  product, ///< multiply-adds of a dot
};
[[nodiscard]] std::string_view name_of(WorkKind kind);

struct AccessCounts {
  std::uint64_t executions = 0; ///< of the op
  std::uint64_t lanes = 0;      ///< elements, masked off ones too
  std::uint64_t active = 0;
  std::uint64_t bytes = 0; ///< of active elements
  std::uint64_t sectors =
      0; ///< 32-byte sectors, a new one wherever an element leaves the one before
};

/// One load, store, atomic or bulk copy of the text, and one argument that it reached.
struct OpAccess {
  std::string op;    ///< "tt.load"
  std::string value; ///< "x_15"; empty for stores
  std::uint32_t line = 0;
  std::string argument;
  AccessCounts counts;
};

/// An op of the text.
struct OpPlace {
  std::string op, value; ///< as OpAccess has them
  std::uint32_t line = 0;
};

/// Loaded bytes by what the same program did with them before; these sum to `loaded`.
struct ProgramLoads {
  std::uint64_t first = 0;       ///< not loaded before
  std::uint64_t lanes = 0;       ///< by another element of the same execution
  std::uint64_t again = 0;       ///< by an earlier execution, and not written since
  std::uint64_t after_write = 0; ///< what the program itself wrote
};

/// Two ops by which a program reached the same bytes, one after the other.
struct Reread {
  std::string argument;
  OpPlace earlier, later; ///< the same op: executions of a loop
  bool written = false;   ///< the earlier one wrote them
  std::uint64_t bytes = 0;
};

struct ArgumentBytes {
  std::string name;
  std::uint64_t size = 0;
  std::uint64_t loaded = 0, stored = 0, atomic = 0;   ///< bytes of active elements
  std::uint64_t unique_loaded = 0, unique_stored = 0; ///< bytes touched at least once
  std::uint64_t unique_sectors = 0;                   ///< 32-byte sectors touched at least once
  std::optional<ProgramLoads> by_program;             ///< where rereads were asked for
};

struct Spread {
  std::uint64_t minimum = 0, maximum = 0, total = 0;
};

struct Counts {
  std::uint64_t programs = 0;
  /// By kind, then by element type ("f32"; of a product, of its inputs: "f16*f16").
  std::map<std::pair<WorkKind, std::string>, std::uint64_t> operations;
  std::vector<OpAccess> accesses;                    ///< in the order of the text
  std::vector<ArgumentBytes> arguments;              ///< buffers, in order
  std::uint64_t shared_read = 0, shared_written = 0; ///< bytes of shared and tensor memory
  std::uint64_t barriers = 0;
  std::vector<Reread> rereads;   ///< where asked for
  Spread operations_per_program; ///< all kinds but products
  Spread products_per_program;   ///< multiply-adds
  Spread bytes_per_program;      ///< global, loaded and stored
};

[[nodiscard]] Json to_json(const Counts& counts);

} // namespace hebe::ttgir
