// Control flow, calls, messages, and which program this is. In: operations with regions and those
// without a value; out: instructions that run blocks. Invariant: what a block ends with is moved,
// not copied, into the next round of a loop.
#include "ttgir/run_lanewise.hpp"

#include <limits>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

template <class T> std::int64_t integer_of(const Lanes& lanes, bool is_unsigned) {
  const T value = lanes.at<T>(0);
  if (is_unsigned) return static_cast<std::int64_t>(static_cast<std::make_unsigned_t<T>>(value));
  return value;
}
std::int64_t integer_of(const Lanes& lanes, const Operand& type, bool is_unsigned) {
  switch (type.lane) {
  case Lane::b1:
    return lanes.at<std::uint8_t>(0);
  case Lane::i8:
    return integer_of<std::int8_t>(lanes, is_unsigned);
  case Lane::i16:
    return integer_of<std::int16_t>(lanes, is_unsigned);
  case Lane::i32:
    return integer_of<std::int32_t>(lanes, is_unsigned);
  default:
    return lanes.at<std::int64_t>(0);
  }
}

class ProgramNumber final : public Instruction {
public:
  Status run(Program& program) const override {
    const std::uint32_t value = of_grid ? program.launch.grid[axis] : program.id[axis];
    program.set(to, Lanes::of(std::uint64_t{value}));
    return {};
  }
  bool lanewise() const override { return true; }
  std::size_t axis = 0;
  bool of_grid = false;
  Slot to = 0;
};

InstructionPtr make_program_number(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<ProgramNumber>();
  const auto text = op.text_of("axis");
  const auto number = integer(text);
  if (text == "x" || text == "y" || text == "z")
    made->axis = static_cast<std::size_t>(text[0] - 'x');
  else if (number && *number >= 0 && *number < 3)
    made->axis = static_cast<std::size_t>(*number);
  else
    return compiler.unsupported(op, fmt::format("its axis '{}' is not x, y or z", text));
  made->of_grid = op.is(Op::tt_get_num_programs);
  made->to = compiler.slot(op.result());
  return made;
}

std::vector<Slot> slots_of(Compiler& compiler, std::span<Value* const> values) {
  std::vector<Slot> slots;
  for (const Value* value : values) slots.push_back(compiler.slot(*value));
  return slots;
}
std::vector<Slot> result_slots(Compiler& compiler, const Operation& op) {
  std::vector<Slot> slots;
  for (const Value& value : op.results) slots.push_back(compiler.slot(value));
  return slots;
}
std::vector<Lanes> values_of(Program& program, const std::vector<Slot>& slots) {
  std::vector<Lanes> values;
  values.reserve(slots.size());
  for (const Slot slot : slots) values.push_back(program.at(slot));
  return values;
}

class For final : public Instruction {
public:
  Status run(Program& program) const override {
    const auto at = [&](std::size_t i) {
      return integer_of(program.at(bounds[i].slot), bounds[i], is_unsigned);
    };
    const std::int64_t begin = at(0), end = at(1), step = at(2);
    std::vector<Lanes> carried = values_of(program, initial);
    if (step == 0 || (!is_unsigned && step < 0))
      return refuse(RefusalCode::kernel_failed,
                    fmt::format("{} has step {}", program.name(*this), step));
    const bool any = is_unsigned
                         ? static_cast<std::uint64_t>(begin) < static_cast<std::uint64_t>(end)
                         : begin < end;
    // Differences of 64-bit bounds fit in 64 bits without a sign.
    std::uint64_t rounds = 0;
    if (any)
      rounds = (static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin) - 1) /
                   static_cast<std::uint64_t>(step) +
               1;
    auto now = static_cast<std::uint64_t>(begin);
    const std::vector<Slot>& arguments = body->arguments;
    for (std::uint64_t i = 0; i < rounds; ++i, now += static_cast<std::uint64_t>(step)) {
      HEBE_CHECK(program.spend(*this));
      program.set(arguments[0], Lanes::of(now));
      for (std::size_t j = 0; j < carried.size(); ++j)
        program.set(arguments[j + 1], std::move(carried[j]));
      HEBE_CHECK(program.run(*body));
      carried = program.ending(*body);
    }
    program.assign(results, carried);
    return {};
  }
  std::array<Operand, 3> bounds{};
  bool is_unsigned = false;
  std::vector<Slot> initial, results;
  std::unique_ptr<Code> body;
};

InstructionPtr make_for(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<For>();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto bound = compiler.operand(*op.operands[i], op);
    if (!bound) return nullptr;
    made->bounds[i] = *bound;
  }
  made->is_unsigned = op.find("unsignedCmp") != nullptr;
  made->initial = slots_of(compiler, op.operands.subspan(3));
  made->results = result_slots(compiler, op);
  made->body = compiler.code(op.regions[0]->front());
  return made;
}

class If final : public Instruction {
public:
  Status run(Program& program) const override {
    const bool yes = program.at(condition).at<std::uint8_t>(0) != 0;
    const Code* taken = yes ? first.get() : second.get();
    if (!taken) return {};
    HEBE_CHECK(program.run(*taken));
    std::vector<Lanes> values = program.ending(*taken);
    program.assign(results, values);
    return {};
  }
  Slot condition = 0;
  std::unique_ptr<Code> first, second; ///< second: null where there is no else
  std::vector<Slot> results;
};

InstructionPtr make_if(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<If>();
  made->condition = compiler.slot(*op.operands[0]);
  made->results = result_slots(compiler, op);
  made->first = compiler.code(op.regions[0]->front());
  if (op.regions.size() > 1 && !op.regions[1]->blocks.empty())
    made->second = compiler.code(op.regions[1]->front());
  return made;
}

class While final : public Instruction {
public:
  Status run(Program& program) const override {
    std::vector<Lanes> carried = values_of(program, initial);
    while (true) {
      HEBE_CHECK(program.spend(*this));
      program.assign(before->arguments, carried);
      HEBE_CHECK(program.run(*before));
      carried = program.ending(*before);
      const bool more = carried.at(0).at<std::uint8_t>(0) != 0;
      carried.erase(carried.begin());
      if (!more) break;
      program.assign(after->arguments, carried);
      HEBE_CHECK(program.run(*after));
      carried = program.ending(*after);
    }
    program.assign(results, carried);
    return {};
  }
  std::vector<Slot> initial, results;
  std::unique_ptr<Code> before, after;
};

InstructionPtr make_while(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<While>();
  made->initial = slots_of(compiler, op.operands);
  made->results = result_slots(compiler, op);
  made->before = compiler.code(op.regions[0]->front());
  made->after = compiler.code(op.regions[1]->front());
  if (made->before->ending.kind != Ending::Kind::condition)
    return compiler.unsupported(op, "its first region does not end with scf.condition");
  return made;
}

class Call final : public Instruction {
public:
  Status run(Program& program) const override {
    std::vector<Lanes> values;
    HEBE_CHECK(program.call(*this, *function, values_of(program, operands), values));
    program.assign(results, values);
    return {};
  }
  const FunctionCode* function = nullptr;
  std::vector<Slot> operands, results;
};

InstructionPtr make_call(Compiler& compiler, const Operation& op) {
  auto name = op.text_of("callee");
  if (name.starts_with('@')) name.remove_prefix(1);
  auto made = std::make_unique<Call>();
  made->function = compiler.callee(name);
  if (!made->function)
    return compiler.unsupported(op, fmt::format("there is no function {} with a body", name));
  made->operands = slots_of(compiler, op.operands);
  made->results = result_slots(compiler, op);
  return made;
}

std::string element_text(const Lanes& lanes, const Operand& type, std::size_t i, bool hex,
                         bool is_signed) {
  if (type.lane == Lane::f64) return fmt::format("{}", lanes.at<double>(i));
  if (type.lane == Lane::f32) return fmt::format("{}", lanes.at<float>(i));
  std::uint64_t bits = 0;
  std::memcpy(&bits, lanes.bytes() + (lanes.uniform() ? 0 : i * type.size()), type.size());
  if (hex || type.pointer) return fmt::format("{:#0{}x}", bits, type.size() * 2 + 2);
  if (!is_signed) return fmt::format("{}", bits);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(type.size());
  return fmt::format("{}", static_cast<std::int64_t>(bits << unused) >> unused);
}

/// A line for every element, as a GPU's printf writes it.
class Print final : public Instruction {
public:
  Status run(Program& program) const override {
    const auto head = fmt::format("pid ({}, {}, {})", program.id[0], program.id[1], program.id[2]);
    if (operands.empty()) program.print(fmt::format("{} {}\n", head, prefix));
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Operand& operand = operands[k];
      for (std::size_t i = 0; i < operand.count(program); ++i) {
        std::string index;
        auto rest = static_cast<std::int64_t>(i);
        for (std::size_t d = operand.shape.size(); d-- > 0; rest /= operand.shape[d])
          index = fmt::format("{}{}{}", rest % operand.shape[d], index.empty() ? "" : ", ", index);
        const auto value = element_text(program.at(operand.slot), operand, i, hex, is_signed[k]);
        program.print(fmt::format("{} idx ({}) {}{}\n", head, index, prefix, value));
      }
    }
    return {};
  }
  std::string prefix;
  std::vector<Operand> operands;
  std::vector<bool> is_signed;
  bool hex = false;
};

InstructionPtr make_print(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Print>();
  made->prefix = string(op.text_of("prefix")).value_or("");
  made->hex = boolean(op.text_of("hex")).value_or(false);
  const auto is_signed = integers(op.text_of("isSigned"));
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const auto operand = compiler.operand(*op.operands[i], op);
    if (!operand) return nullptr;
    made->operands.push_back(*operand);
    made->is_signed.push_back(!is_signed || i >= is_signed->size() || (*is_signed)[i] != 0);
  }
  return made;
}

class Assert final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& held = program.at(condition.slot);
    for (std::size_t i = 0; i < (held.uniform() ? 1 : condition.count(program)); ++i)
      if (held.at<std::uint8_t>(i) == 0)
        return refuse(
            RefusalCode::kernel_failed,
            fmt::format(
                "{} does not hold: {}",
                program.name(*this, condition.shape.empty() ? -1 : static_cast<std::int64_t>(i)),
                message));
    return {};
  }
  Operand condition{};
  std::string message;
};

InstructionPtr make_assert(Compiler& compiler, const Operation& op) {
  const auto condition = compiler.operand(*op.operands[0], op);
  if (!condition) return nullptr;
  auto made = std::make_unique<Assert>();
  made->condition = *condition;
  const auto text = op.is(Op::cf_assert) ? op.text_of("msg") : op.text_of("message");
  made->message = string(text).value_or(std::string(text));
  return made;
}

class Nothing final : public Instruction {
public:
  Status run(Program&) const override { return {}; }
  bool lanewise() const override { return true; }
};

InstructionPtr make_nothing(Compiler&, const Operation&) { return std::make_unique<Nothing>(); }

} // namespace

void add_control(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  add(Op::tt_get_program_id, &make_program_number);
  add(Op::tt_get_num_programs, &make_program_number);
  add(Op::scf_for, &make_for);
  add(Op::scf_if, &make_if);
  add(Op::scf_while, &make_while);
  add(Op::tt_call, &make_call);
  add(Op::tt_print, &make_print);
  add(Op::tt_assert, &make_assert);
  add(Op::cf_assert, &make_assert);
  add(Op::llvm_intr_assume, &make_nothing);
}

} // namespace hebe::ttgir
