// Element types of kernel arguments, with Triton's names. Invariant: size_of is the size in memory
// and in the parameter buffer.
#pragma once

#include "core/result.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace hebe::kernel {

enum class DType { i1, i8, i16, i32, i64, u8, u16, u32, u64, fp16, bf16, fp32, fp64 };

[[nodiscard]] Result<DType> dtype_from(std::string_view name);
[[nodiscard]] std::string_view name_of(DType type);
[[nodiscard]] std::size_t size_of(DType type);
[[nodiscard]] bool is_float(DType type);

/// The element at `index` as a double (integers up to 2^53 exactly).
[[nodiscard]] double element(std::span<const std::byte> bytes, DType type, std::size_t index);
/// Into `out` (size_of(type) bytes): floats to nearest, ties to even; integers must be whole and in
/// range.
void store(double value, DType type, std::byte* out);

} // namespace hebe::kernel
