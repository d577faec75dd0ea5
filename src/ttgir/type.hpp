// Types of TTIR and TTGIR. In: a type as Triton prints it; out: one immutable object per text.
// Invariant: within a table equal text gives the same pointer; a type that is not understood is
// kept as text (opaque), never dropped.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hebe::ttgir {

/// Storage formats of numbers. `bits_of` gives the width in memory.
enum class Scalar : std::uint8_t {
  none,
  i1,
  i4,
  i8,
  i16,
  i32,
  i64,
  i128,
  index,
  f4e2m1,
  f8e4m3,
  f8e5m2,
  f8e4m3b11fnuz,
  f8e4m3fnuz,
  f8e5m2fnuz,
  f8e8m0,
  f16,
  bf16,
  tf32,
  f32,
  f64,
};
[[nodiscard]] unsigned bits_of(Scalar scalar);
[[nodiscard]] bool is_float(Scalar scalar);
[[nodiscard]] bool is_integer(Scalar scalar); ///< index too
/// As MLIR spells it ("f8E4M3FN"); "" for none.
[[nodiscard]] std::string_view spelling(Scalar scalar);

struct Type {
  enum class Kind : std::uint8_t { scalar, pointer, tensor, memdesc, tensordesc, token, opaque };
  Kind kind = Kind::opaque;
  Scalar scalar = Scalar::none;   ///< of a scalar, or of a tensor's, memdesc's element
  std::uint8_t address_space = 1; ///< of a pointer
  bool is_mutable = false;        ///< of a memdesc
  const Type* element = nullptr;  ///< pointee, or element of a tensor, memdesc, tensordesc's block
  std::span<const std::int64_t> shape{};
  std::string_view encoding{};     ///< "#blocked", "#ttg.slice<{…}>"; empty in TTIR
  std::string_view memory_space{}; ///< "#smem", "#ttng.tensor_memory", of a memdesc
  std::string_view text{};         ///< as printed

  [[nodiscard]] bool is(Kind k) const { return kind == k; }
  [[nodiscard]] bool shaped() const { return kind == Kind::tensor || kind == Kind::memdesc; }
  /// Elements of a tensor or memdesc; 1 otherwise.
  [[nodiscard]] std::int64_t elements() const;
  /// Scalar or pointer: of the value itself or of a tensor's elements.
  [[nodiscard]] const Type& leaf() const { return shaped() && element ? *element : *this; }
  /// Bytes of one element in memory (i1 takes one; two i4 or f4 share one, so 0 for them);
  /// pointers 8.
  [[nodiscard]] unsigned leaf_bytes() const;
};
using TypeRef = const Type*;

/// Where a type stops in `text`, which begins with it: balanced brackets and strings; kNowhere (of
/// scan.hpp) where there is none.
[[nodiscard]] std::size_t end_of_type(std::string_view text);

class TypeTable {
public:
  explicit TypeTable(std::pmr::memory_resource& memory) : memory_(&memory), types_(&memory) {}
  /// Never null. `text` must be a whole type.
  TypeRef get(std::string_view text);
  /// `shaped` with other elements ("tensor<128xf16, #blocked>" and i1 give "tensor<128xi1,
  /// #blocked>"); a type without a shape gives `element` itself.
  TypeRef with_element(TypeRef shaped, std::string_view element);
  /// The pointee of a pointer, or the tensor of pointees; null for another type.
  TypeRef pointee(TypeRef pointer);

private:
  TypeRef parse(std::string_view text);
  bool parse_shaped(std::string_view body, Type& type);

  std::pmr::memory_resource* memory_;
  std::pmr::unordered_map<std::string_view, TypeRef> types_;
  int depth_ = 0;
};

} // namespace hebe::ttgir
