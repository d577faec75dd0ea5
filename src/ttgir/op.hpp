// The operations of TTIR and TTGIR that Hebe knows. In: a name; out: its row of ops.def. Invariant:
// what a row does not say is not assumed; an op without a row has effect `unknown`.
#pragma once

#include <cstdint>
#include <string_view>

namespace hebe::ttgir {

enum class Op : std::uint16_t {
  unknown,
#define HEBE_OP(id, name, typing, effect, format) id,
#include "ttgir/ops.def"
#undef HEBE_OP
};

/// How the types that an op's text leaves out follow from those it gives.
enum class Typing : std::uint8_t {
  none,     ///< no results
  written,  ///< results are written
  same,     ///< one written type is that of every operand and result
  compare,  ///< the result is the written type with i1 elements
  extended, ///< sum and overflow: both written
  select,   ///< the result is that of both alternatives
  powi,     ///< the result is the first operand's
  load,     ///< what the pointer points to; mask of its shape
  split,    ///< both results are the written one
  token,    ///< an asynchronous token
  element,  ///< the element of the operand's tensor
  i32,
  as_operands, ///< result i is operand i's
  token_last,  ///< as written, and a token where there is one result more
};

/// What an op does besides giving its results.
enum class Effect : std::uint8_t {
  unknown, ///< not in the table: anything
  pure,
  read, ///< global memory
  write,
  read_write,
  read_shared, ///< shared or tensor memory
  write_shared,
  read_write_shared, ///< asynchronous copies: the source may be global
  alloc,
  call,   ///< as its callee
  region, ///< as its regions
  terminator,
  other, ///< synchronisation, messages
};

struct OpInfo {
  std::string_view name; ///< as printed; empty for unknown
  Typing typing = Typing::none;
  Effect effect = Effect::unknown;
  std::string_view format;
};

[[nodiscard]] const OpInfo& info_of(Op op);
[[nodiscard]] Op op_named(std::string_view name);

} // namespace hebe::ttgir
