#include "ttgir/type.hpp"

#include "ttgir/scan.hpp"

#include <algorithm>
#include <cstring>

namespace hebe::ttgir {
namespace {

struct ScalarRow {
  Scalar scalar;
  unsigned bits;
  std::string_view spelling;
};
constexpr ScalarRow kScalars[] = {
    {Scalar::none, 0, ""},
    {Scalar::i1, 1, "i1"},
    {Scalar::i4, 4, "i4"},
    {Scalar::i8, 8, "i8"},
    {Scalar::i16, 16, "i16"},
    {Scalar::i32, 32, "i32"},
    {Scalar::i64, 64, "i64"},
    {Scalar::i128, 128, "i128"},
    {Scalar::index, 64, "index"},
    {Scalar::f4e2m1, 4, "f4E2M1FN"},
    {Scalar::f8e4m3, 8, "f8E4M3FN"},
    {Scalar::f8e5m2, 8, "f8E5M2"},
    {Scalar::f8e4m3b11fnuz, 8, "f8E4M3B11FNUZ"},
    {Scalar::f8e4m3fnuz, 8, "f8E4M3FNUZ"},
    {Scalar::f8e5m2fnuz, 8, "f8E5M2FNUZ"},
    {Scalar::f8e8m0, 8, "f8E8M0FNU"},
    {Scalar::f16, 16, "f16"},
    {Scalar::bf16, 16, "bf16"},
    {Scalar::tf32, 32, "tf32"}, // 19 bits of it count; 4 bytes in memory
    {Scalar::f32, 32, "f32"},
    {Scalar::f64, 64, "f64"},
};

const ScalarRow& row(Scalar scalar) { return kScalars[static_cast<std::size_t>(scalar)]; }

Scalar scalar_spelled(std::string_view text) {
  for (const auto& each : kScalars)
    if (!text.empty() && each.spelling == text) return each.scalar;
  return Scalar::none;
}

} // namespace

unsigned bits_of(Scalar scalar) { return row(scalar).bits; }
bool is_float(Scalar scalar) { return scalar >= Scalar::f4e2m1; }
bool is_integer(Scalar scalar) { return scalar >= Scalar::i1 && scalar <= Scalar::index; }
std::string_view spelling(Scalar scalar) { return row(scalar).spelling; }

std::int64_t Type::elements() const {
  if (!shaped()) return 1;
  std::int64_t n = 1;
  for (const auto dimension : shape) n *= dimension;
  return n;
}

unsigned Type::leaf_bytes() const {
  const Type& inner = leaf();
  if (inner.is(Kind::pointer) || inner.is(Kind::tensordesc)) return 8;
  return inner.scalar == Scalar::i1 ? 1 : bits_of(inner.scalar) / 8;
}

std::size_t end_of_type(std::string_view text) {
  std::size_t i = 0;
  if (!text.empty() && text[0] == '(') { // a function type
    const auto inputs = end_of_brackets(text, 0);
    if (inputs == kNowhere) return inputs;
    i = inputs;
    while (i < text.size() && text[i] == ' ') ++i;
    if (text.substr(i, 2) != "->") return kNowhere;
    i += 2;
    while (i < text.size() && text[i] == ' ') ++i;
    if (i < text.size() && text[i] == '(') return end_of_brackets(text, i);
    const auto result = end_of_type(text.substr(i));
    return result == kNowhere ? result : i + result;
  }
  if (i < text.size() && (text[i] == '!' || text[i] == '#')) ++i;
  const auto begin = i;
  while (i < text.size() && name_character(text[i]) && text.substr(i, 2) != "->") ++i;
  if (i == begin) return kNowhere;
  if (i < text.size() && text[i] == '<') return end_of_brackets(text, i);
  return i;
}

TypeRef TypeTable::get(std::string_view text) {
  if (const auto found = types_.find(text); found != types_.end()) return found->second;
  auto* kept = static_cast<char*>(memory_->allocate(text.size() + 1, 1));
  std::memcpy(kept, text.data(), text.size());
  const std::string_view own(kept, text.size());
  const TypeRef type = parse(own);
  types_.emplace(own, type);
  return type;
}

TypeRef TypeTable::parse(std::string_view text) {
  Type type;
  type.text = text;
  const auto body = [&](std::string_view prefix) -> std::string_view {
    return text.substr(prefix.size(), text.size() - prefix.size() - 1);
  };
  constexpr int kDeepest = 16; // pointers to pointers; more is nobody's kernel
  if (const Scalar scalar = scalar_spelled(text); scalar != Scalar::none) {
    type.kind = Type::Kind::scalar;
    type.scalar = scalar;
  } else if (text == "!ttg.async.token") {
    type.kind = Type::Kind::token;
  } else if (depth_ < kDeepest && text.ends_with('>')) {
    ++depth_;
    if (text.starts_with("!tt.ptr<")) {
      const auto parts = parts_of(body("!tt.ptr<"));
      type.kind = Type::Kind::pointer;
      type.element = get(parts[0]);
      if (parts.size() > 1 && parts[1].size() == 1 && parts[1][0] >= '0' && parts[1][0] <= '9')
        type.address_space = static_cast<std::uint8_t>(parts[1][0] - '0');
    } else if (text.starts_with("tensor<")) {
      if (parse_shaped(body("tensor<"), type)) type.kind = Type::Kind::tensor;
    } else if (text.starts_with("!ttg.memdesc<")) {
      if (parse_shaped(body("!ttg.memdesc<"), type)) type.kind = Type::Kind::memdesc;
    } else if (text.starts_with("!tt.tensordesc<")) {
      const auto inner = body("!tt.tensordesc<");
      type.kind = Type::Kind::tensordesc;
      // Since Triton 3.8 the block is written without "tensor<…>".
      type.element =
          inner.starts_with("tensor<") ? get(inner) : get("tensor<" + std::string(inner) + ">");
    }
    --depth_;
  }
  return std::pmr::polymorphic_allocator<Type>(memory_).new_object<Type>(type);
}

// "8192x!tt.ptr<f16>, #blocked" and "3x64x128xf16, #shared, #smem, mutable, 3x64x128".
bool TypeTable::parse_shaped(std::string_view body, Type& type) {
  const auto parts = parts_of(body);
  std::vector<std::int64_t> shape;
  std::string_view rest = parts[0];
  while (true) {
    std::size_t i = 0;
    std::int64_t dimension = 0;
    while (i < rest.size() && rest[i] >= '0' && rest[i] <= '9' && i < 12)
      dimension = dimension * 10 + (rest[i++] - '0');
    if (i == 0 || i == rest.size() || rest[i] != 'x') break;
    shape.push_back(dimension);
    rest.remove_prefix(i + 1);
  }
  std::int64_t elements = 1;
  for (const auto dimension : shape)
    if (__builtin_mul_overflow(elements, dimension, &elements)) return false;
  if (rest.empty()) return false;
  type.element = get(rest);
  if (!type.element->is(Type::Kind::scalar) && !type.element->is(Type::Kind::pointer)) return false;
  type.scalar = type.element->scalar;
  auto* kept = std::pmr::polymorphic_allocator<std::int64_t>(memory_).allocate(shape.size() + 1);
  std::copy(shape.begin(), shape.end(), kept);
  type.shape = {kept, shape.size()};
  if (parts.size() > 1) type.encoding = parts[1];
  for (std::size_t i = 2; i < parts.size(); ++i) {
    if (parts[i] == "mutable")
      type.is_mutable = true;
    else if (type.memory_space.empty())
      type.memory_space = parts[i];
  }
  return true;
}

TypeRef TypeTable::with_element(TypeRef shaped, std::string_view element) {
  if (!shaped || !shaped->shaped()) return get(element);
  std::string text = shaped->is(Type::Kind::tensor) ? "tensor<" : "!ttg.memdesc<";
  for (const auto dimension : shaped->shape) text += std::to_string(dimension) + 'x';
  text += element;
  if (!shaped->encoding.empty()) (text += ", ") += shaped->encoding;
  return get(text += '>');
}

TypeRef TypeTable::pointee(TypeRef pointer) {
  if (!pointer || !pointer->leaf().is(Type::Kind::pointer)) return nullptr;
  const Type& inner = *pointer->leaf().element;
  return pointer->is(Type::Kind::tensor) ? with_element(pointer, inner.text) : &inner;
}

} // namespace hebe::ttgir
