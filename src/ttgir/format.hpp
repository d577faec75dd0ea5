// Assembly formats: how an op is written, as data. In: the format text of a row of ops.def; out:
// the elements that reader and printer walk, so that both follow one description. Invariant: a
// format is compiled once; a mistake in ops.def throws at its first use (a test uses them
// all).
//
//   word , : -> =   itself                       $x       an operand; $x* any number of them
//   @x              an attribute's value          {}       the attribute dictionary
//   type(%)         the result's type             type($x) an operand's
//   short_ptr($x)   its type without "!tt.ptr"; likewise short_memdesc, short_tensordesc
//   types(…)        several, between commas       fn       (operand types) -> result types
//   ?( … )          all of it or nothing: there if its first element (reader) or its first operand
//                   or attribute (printer) is
//   any( a | b )    clauses in any order          ?flag( w )    w<…>
//   ?unit( w )      the word w or nothing         ?word( x a b ) attribute x is one of the words
//   ?token( $x )    [%x] or [] where there is a token
//   ?pairs( $x $y )  , %x[%y] any number of times
//   A || B          A, or where that does not fit, B
#pragma once

#include "ttgir/op.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace hebe::ttgir {

struct Element {
  enum class Kind : std::uint8_t {
    literal,
    operand,
    operands,
    attribute,
    dictionary,
    type,
    types,
    function_type,
    group,
    any,
    flag,
    unit,
    word,
    token,
    pairs,
  };
  static constexpr std::uint8_t kResults = 255; ///< in `specs`: the results
  Kind kind = Kind::literal;
  std::uint8_t spec = 0;           ///< number of the operand
  std::string_view text;           ///< literal, or name of the attribute
  std::vector<std::uint8_t> specs; ///< whose types
  std::vector<std::string_view> words;
  std::vector<std::vector<Element>> parts; ///< of a group (one) or of any (a clause each)
};

/// What MLIR leaves out where a format names a dialect's own type; Element::text of such a type.
inline constexpr std::string_view kShortened[] = {"!tt.ptr", "!ttg.memdesc", "!tt.tensordesc"};

struct Format {
  std::vector<Element> elements;
  std::uint8_t specs = 0; ///< how many operands (each may be optional or a list)
};

/// The alternatives of an op's row; empty for an op whose syntax is code or generic.
[[nodiscard]] const std::vector<Format>& formats_of(Op op);

} // namespace hebe::ttgir
