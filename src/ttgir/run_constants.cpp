// Constants, ranges, and what has no value. In: operations that make tensors of nothing; out:
// instructions. Invariant: a constant is rounded to its type once, when it is read.
#include "ttgir/run_lanewise.hpp"
#include "ttgir/scan.hpp"

#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

class Constant final : public Instruction {
public:
  Status run(Program& program) const override {
    if (elements.empty()) {
      program.set(to, uniform);
      return {};
    }
    Lanes lanes = program.dense(elements.size());
    std::memcpy(lanes.bytes(), elements.data(), elements.size());
    program.set(to, std::move(lanes));
    return {};
  }
  bool lanewise() const override { return elements.empty(); }
  Slot to = 0;
  Lanes uniform;
  std::vector<std::byte> elements;
};

/// One element of a constant in the form of a lane; false where the text is not a number.
bool constant_element(std::string_view text, const Operand& type, std::byte* out) {
  if (!is_float(type.scalar)) {
    const auto value = integer(text);
    if (!value) return false;
    const std::int64_t bits = type.lane == Lane::b1 ? *value & 1 : *value;
    std::memcpy(out, &bits, type.size());
    return true;
  }
  const auto value = floating(text);
  if (!value) return false;
  if (value->bits) {
    std::byte memory[8];
    std::memcpy(memory, &*value->bits, 8);
    decoder(type.scalar)(memory, out, 1);
  } else if (type.lane == Lane::f64) {
    std::memcpy(out, &value->value, 8);
  } else {
    float lane =
        type.scalar == Scalar::f32 ? static_cast<float>(value->value) : to_odd(value->value);
    if (const auto round = rounding_to(type.scalar)) round(&lane, 1);
    std::memcpy(out, &lane, 4);
  }
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// dense<"0x…">: the elements' bytes in memory order.
bool constant_bytes(std::string_view text, const Operand& type, std::vector<std::byte>& out) {
  if (!text.starts_with("\"0x") || !text.ends_with('"') || type.lane == Lane::b1) return false;
  text = text.substr(3, text.size() - 4);
  std::vector<std::byte> memory;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    memory.push_back(static_cast<std::byte>(high * 16 + low));
  }
  const std::size_t width = bits_of(type.scalar) / 8;
  const std::size_t count = memory.size() / width;
  if (memory.size() % width != 0 || (count != type.elements && count != 1)) return false;
  out.resize(type.elements * type.size());
  for (std::size_t i = 0; i < type.elements; ++i)
    decoder(type.scalar)(memory.data() + (count == 1 ? 0 : i * width), out.data() + i * type.size(),
                         1);
  return true;
}

InstructionPtr make_constant(Compiler& compiler, const Operation& op) {
  const auto type = compiler.operand(op.result(), op);
  if (!type) return nullptr;
  auto made = std::make_unique<Constant>();
  made->to = type->slot;
  auto text = op.text_of("value");
  const auto inside = dense(text);
  if (inside) text = *inside;
  if (!inside || (!text.starts_with('[') && !text.starts_with('"'))) {
    if (!constant_element(text, *type, made->uniform.bytes()))
      return compiler.unsupported(op,
                                  fmt::format("its value {} is not a number", text.substr(0, 40)));
    return made;
  }
  if (text.starts_with('"')) {
    if (!constant_bytes(text, *type, made->elements))
      return compiler.unsupported(op, "its bytes are not those of its type");
    return made;
  }
  std::string flat;
  for (const char c : text)
    if (c != '[' && c != ']') flat += c;
  const auto parts = parts_of(flat);
  if (parts.size() != type->elements)
    return compiler.unsupported(op, "its elements are not as many as its type has");
  made->elements.resize(parts.size() * type->size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!constant_element(parts[i], *type, made->elements.data() + i * type->size()))
      return compiler.unsupported(op, fmt::format("its element {} is not a number", parts[i]));
  return made;
}

class Poison final : public Instruction {
public:
  Status run(Program& program) const override {
    program.set(to, program.options.poison_undefined ? undefined_lane(scalar) : Lanes());
    return {};
  }
  bool lanewise() const override { return true; }
  Slot to = 0;
  Scalar scalar = Scalar::none;
};

InstructionPtr make_poison(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Poison>();
  made->to = compiler.slot(op.result());
  if (compiler.numeric(op.result())) made->scalar = compiler.operand(op.result(), op)->scalar;
  return made;
}

class Range final : public Instruction {
public:
  Status run(Program& program) const override {
    Lanes lanes = program.dense(count * sizeof(std::int32_t));
    std::iota(lanes.data<std::int32_t>(), lanes.data<std::int32_t>() + count, start);
    program.set(to, std::move(lanes));
    return {};
  }
  Slot to = 0;
  std::int32_t start = 0;
  std::size_t count = 0;
};

InstructionPtr make_range(Compiler& compiler, const Operation& op) {
  const auto start = integer(op.text_of("start")), end = integer(op.text_of("end"));
  const auto type = compiler.operand(op.result(), op);
  if (!type) return nullptr;
  if (!start || !end || type->lane != Lane::i32 ||
      *end - *start != static_cast<std::int64_t>(type->elements))
    return compiler.unsupported(op, "its bounds are not those of its type");
  auto made = std::make_unique<Range>();
  made->to = type->slot;
  made->start = static_cast<std::int32_t>(*start);
  made->count = type->elements;
  return made;
}

} // namespace

Lanes undefined_lane(Scalar scalar) {
  if (scalar == Scalar::f64) return Lanes::of(std::numeric_limits<double>::quiet_NaN());
  if (is_float(scalar)) return Lanes::of(std::numeric_limits<float>::quiet_NaN());
  if (scalar == Scalar::i1) return Lanes::of(std::uint8_t{1});
  return Lanes::of(std::uint64_t{0xcccccccccccccccc});
}

void add_constants(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  add(Op::arith_constant, &make_constant);
  add(Op::ub_poison, &make_poison);
  add(Op::tt_make_range, &make_range);
}

} // namespace hebe::ttgir
