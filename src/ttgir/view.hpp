// Operations by what they mean, so that passes read like prose. In: an operation; out: its parts
// under their names. Invariant: a view holds no state; `of` gives nothing for another op or an odd
// form.
#pragma once

#include "ttgir/ir.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hebe::ttgir {

/// tt.load: global memory through pointers (or a block pointer).
struct Load {
  Operation& op;
  [[nodiscard]] static std::optional<Load> of(Operation& op);
  [[nodiscard]] Value& pointer() const { return *op.segment(0)[0]; }
  [[nodiscard]] Value* mask() const;  ///< null: every lane
  [[nodiscard]] Value* other() const; ///< null: masked lanes are undefined
  [[nodiscard]] Value& result() const { return op.result(); }
  [[nodiscard]] std::string_view cache() const;    ///< "none", "ca", "cg", …
  [[nodiscard]] std::string_view eviction() const; ///< "evict_normal", …
  [[nodiscard]] bool is_volatile() const;
};

struct Store {
  Operation& op;
  [[nodiscard]] static std::optional<Store> of(Operation& op);
  [[nodiscard]] Value& pointer() const { return *op.segment(0)[0]; }
  [[nodiscard]] Value& value() const { return *op.segment(1)[0]; }
  [[nodiscard]] Value* mask() const;
  [[nodiscard]] std::string_view cache() const;
  [[nodiscard]] std::string_view eviction() const;
};

struct For {
  Operation& op;
  [[nodiscard]] static std::optional<For> of(Operation& op);
  [[nodiscard]] Value& lower() const { return *op.operands[0]; }
  [[nodiscard]] Value& upper() const { return *op.operands[1]; }
  [[nodiscard]] Value& step() const { return *op.operands[2]; }
  [[nodiscard]] bool is_unsigned() const { return op.find("unsignedCmp") != nullptr; }
  [[nodiscard]] Region& body() const { return *op.regions[0]; }
  [[nodiscard]] Value& induction() const { return body().front().arguments[0]; }
  [[nodiscard]] std::span<Value> carried() const { return body().front().arguments.subspan(1); }
  [[nodiscard]] std::span<Value*> initial() const { return op.operands.subspan(3); }
  /// The body's yield; null where the body has none (no carried values, edited).
  [[nodiscard]] Operation* yield() const;
  /// How often the body runs, where bounds and step are constants.
  [[nodiscard]] std::optional<std::int64_t> trip_count() const;
};

struct Reduce {
  Operation& op;
  [[nodiscard]] static std::optional<Reduce> of(Operation& op);
  [[nodiscard]] std::int64_t axis() const { return integer(op.text_of("axis")).value_or(0); }
  [[nodiscard]] Block& combiner() const { return op.regions[0]->front(); }
};

struct Dot {
  Operation& op;
  [[nodiscard]] static std::optional<Dot> of(Operation& op);
  [[nodiscard]] Value& a() const { return *op.segment(0)[0]; }
  [[nodiscard]] Value& b() const { return *op.segment(1)[0]; }
  [[nodiscard]] Value& accumulator() const { return *op.segment(2)[0]; }
  /// "tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"; what it is without the keyword: ieee.
  [[nodiscard]] std::string_view input_precision() const;
};

struct Function {
  Operation& op;
  [[nodiscard]] static std::optional<Function> of(Operation& op);
  [[nodiscard]] std::string_view name() const { return op.text_of("sym_name"); }
  [[nodiscard]] bool is_kernel() const { return op.text_of("sym_visibility") != "private"; }
  [[nodiscard]] Region& body() const { return *op.regions[0]; }
  [[nodiscard]] std::span<Value> arguments() const { return body().front().arguments; }
};

/// The integer that a value is, everywhere in its tensor: arith.constant, and splats of one.
[[nodiscard]] std::optional<std::int64_t> constant_integer(const Value& value);
/// An attribute of an argument, tt.divisibility for one.
[[nodiscard]] std::optional<std::int64_t> argument_attribute(const Value& argument,
                                                             std::string_view name);

} // namespace hebe::ttgir
