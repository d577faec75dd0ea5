// Which values are equal. In: values of one function; out: equal numbers for expressions of the
// same pure operations, attributes and types on equal values. Invariant: two loads are never equal
// here, nor are two results of anything with effects; operands are not commuted.
#pragma once

#include "rewrite/known_values.hpp"
#include "ttgir/ir.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>

namespace hebe::rewrite {

class ValueNumbers {
public:
  enum class Layouts : std::uint8_t { matter, ignored };
  /// With `known`, integers that the launch's facts decide are equal where their numbers are: a
  /// loop that counts down reads what one that counts up has read.
  explicit ValueNumbers(Layouts layouts = Layouts::matter, KnownValues* known = nullptr)
      : layouts_(layouts), known_(known) {}
  [[nodiscard]] std::uint32_t of(const ttgir::Value& value);
  /// The facts that the number of `value` rests on.
  [[nodiscard]] Interval rests_on(const ttgir::Value& value);
  /// From here on `value` is known to be `same`; values numbered already keep what they have.
  void is(const ttgir::Value& value, const ttgir::Value& same);

private:
  [[nodiscard]] std::string key(const ttgir::Operation& op, std::uint32_t result);
  [[nodiscard]] std::string type_key(ttgir::TypeRef type, bool keeps_layout) const;
  [[nodiscard]] std::uint32_t number(std::string key);
  Layouts layouts_;
  KnownValues* known_;
  std::unordered_map<const ttgir::Value*, Interval> rests_; ///< absent: on nothing
  std::unordered_map<const ttgir::Value*, std::uint32_t> numbers_;
  std::unordered_map<std::string, std::uint32_t> keys_;
  std::uint32_t next_ = 0;
};

/// The operation around it that is no loop and no branch: a function, a reduction, warps of their
/// own. What is inside of the last two does not take values from outside.
[[nodiscard]] const ttgir::Operation* scope_of(const ttgir::Operation& op);

/// An operation whose equal twin may stand for it.
[[nodiscard]] bool is_expression(const ttgir::Operation& op);

} // namespace hebe::rewrite
