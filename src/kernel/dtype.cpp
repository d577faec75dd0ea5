#include "kernel/dtype.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace hebe::kernel {
namespace {
struct Row {
  std::string_view name;
  std::size_t size;
  bool floating;
};
constexpr std::array<Row, 13> kRows = {{{"i1", 1, false},
                                        {"i8", 1, false},
                                        {"i16", 2, false},
                                        {"i32", 4, false},
                                        {"i64", 8, false},
                                        {"u8", 1, false},
                                        {"u16", 2, false},
                                        {"u32", 4, false},
                                        {"u64", 8, false},
                                        {"fp16", 2, true},
                                        {"bf16", 2, true},
                                        {"fp32", 4, true},
                                        {"fp64", 8, true}}};

template <class T> T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T> void put(T v, std::byte* p) { std::memcpy(p, &v, sizeof v); }

std::uint16_t to_bf16(double value) {
  // Through fp32 with round-to-odd, so that the second rounding is the only one that counts.
  float f = static_cast<float>(value);
  auto bits = std::bit_cast<std::uint32_t>(f);
  if (std::isnan(f)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  if (static_cast<double>(f) != value && std::isfinite(f)) {
    if (std::abs(static_cast<double>(f)) > std::abs(value)) bits -= 1;
    bits |= 1;
  }
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
} // namespace

Result<DType> dtype_from(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  if (name == "u1") return DType::i1;
  std::string all;
  for (const auto& row : kRows) all += (all.empty() ? "" : ", ") + std::string(row.name);
  return refuse(RefusalCode::bad_spec, "unknown element type \"" + std::string(name) + "\"",
                "use one of " + all);
}

std::string_view name_of(DType t) { return kRows[static_cast<std::size_t>(t)].name; }
std::size_t size_of(DType t) { return kRows[static_cast<std::size_t>(t)].size; }
bool is_float(DType t) { return kRows[static_cast<std::size_t>(t)].floating; }

double element(std::span<const std::byte> bytes, DType type, std::size_t index) {
  const std::byte* p = bytes.data() + index * size_of(type);
  switch (type) {
  case DType::i1:
    return load<std::uint8_t>(p) != 0;
  case DType::i8:
    return load<std::int8_t>(p);
  case DType::i16:
    return load<std::int16_t>(p);
  case DType::i32:
    return load<std::int32_t>(p);
  case DType::i64:
    return static_cast<double>(load<std::int64_t>(p));
  case DType::u8:
    return load<std::uint8_t>(p);
  case DType::u16:
    return load<std::uint16_t>(p);
  case DType::u32:
    return load<std::uint32_t>(p);
  case DType::u64:
    return static_cast<double>(load<std::uint64_t>(p));
  case DType::fp16:
    return static_cast<double>(load<_Float16>(p));
  case DType::bf16:
    return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(p)} << 16);
  case DType::fp32:
    return load<float>(p);
  case DType::fp64:
    return load<double>(p);
  }
  return 0;
}

void store(double v, DType type, std::byte* out) {
  switch (type) {
  case DType::i1:
    return put<std::uint8_t>(v != 0, out);
  case DType::i8:
    return put(static_cast<std::int8_t>(v), out);
  case DType::i16:
    return put(static_cast<std::int16_t>(v), out);
  case DType::i32:
    return put(static_cast<std::int32_t>(v), out);
  case DType::i64:
    return put(static_cast<std::int64_t>(v), out);
  case DType::u8:
    return put(static_cast<std::uint8_t>(v), out);
  case DType::u16:
    return put(static_cast<std::uint16_t>(v), out);
  case DType::u32:
    return put(static_cast<std::uint32_t>(v), out);
  case DType::u64:
    return put(static_cast<std::uint64_t>(v), out);
  case DType::fp16:
    return put(static_cast<_Float16>(v), out);
  case DType::bf16:
    return put(to_bf16(v), out);
  case DType::fp32:
    return put(static_cast<float>(v), out);
  case DType::fp64:
    return put(v, out);
  }
}

} // namespace hebe::kernel
