#include "ttgir/run_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

constexpr std::size_t kOps = 1
#define HEBE_OP(id, name, typing, effect, format) +1
#include "ttgir/ops.def"
#undef HEBE_OP
    ;

bool ends_block(const Operation& op) {
  switch (op.code) {
  case Op::scf_yield:
  case Op::scf_condition:
  case Op::tt_return:
  case Op::tt_reduce_return:
  case Op::tt_scan_return:
  case Op::tt_map_elementwise_return:
  case Op::ttg_warp_yield:
  case Op::ttg_warp_return:
  case Op::ttg_mask_return:
  case Op::cf_br:
  case Op::cf_cond_br:
    return true;
  default:
    return false;
  }
}

Ending::Kind kind_of(const Operation& op) {
  switch (op.code) {
  case Op::scf_condition:
    return Ending::Kind::condition;
  case Op::tt_return:
    return Ending::Kind::give_back;
  case Op::cf_br:
  case Op::cf_cond_br:
    return Ending::Kind::branch;
  default:
    return Ending::Kind::yield;
  }
}

} // namespace

Make maker_of(Op op) {
  static const Makers makers = [] {
    Makers all(kOps, nullptr);
    add_arithmetic(all);
    add_comparisons(all);
    add_constants(all);
    add_conversions(all);
    add_functions(all);
    add_shapes(all);
    add_memory(all);
    add_atomics(all);
    add_block_pointers(all);
    add_descriptors(all);
    add_reductions(all);
    add_products(all);
    add_scaled_products(all);
    add_control(all);
    add_shared_memory(all);
    add_tensor_memory(all);
    add_synchronisation(all);
    return all;
  }();
  return makers[static_cast<std::size_t>(op)];
}

InstructionPtr Compiler::unsupported(const Operation& op, std::string why) {
  refusals.push_back(Refusal{RefusalCode::unsupported,
                             fmt::format("{} cannot be interpreted: {}", op.name, why),
                             fmt::format("line {}", op.line),
                             "interpret a kernel without it, or measure it on a GPU",
                             {}});
  return nullptr;
}

Slot Compiler::slot(const Value& value) {
  const auto [place, made] = slots_.try_emplace(&value, next_slot_);
  if (made) ++next_slot_;
  return place->second;
}

bool Compiler::numeric(const Value& value) const {
  if (!value.type) return false;
  const Type& type = *value.type;
  const Type& leaf = type.leaf();
  if (type.is(Type::Kind::memdesc)) return false;
  if (leaf.is(Type::Kind::pointer)) return !leaf.element || !leaf.element->shaped();
  return leaf.is(Type::Kind::scalar) && lane_of(leaf.scalar);
}

std::optional<Operand> Compiler::operand(const Value& value, const Operation& op) {
  if (!numeric(value)) {
    unsupported(op, value.type ? fmt::format("no arithmetic on {}", value.type->text)
                               : fmt::format("the type of %{} is not known", value.name));
    return std::nullopt;
  }
  const Type& type = *value.type;
  Operand operand;
  operand.slot = slot(value);
  operand.pointer = type.leaf().is(Type::Kind::pointer);
  if (!operand.pointer) {
    operand.scalar = type.leaf().scalar;
    operand.lane = *lane_of(operand.scalar);
  }
  operand.shape = type.shape;
  operand.elements = type.shaped() ? static_cast<std::size_t>(type.elements())
                     : combining() ? 0
                                   : 1;
  return operand;
}

std::unique_ptr<Code> Compiler::code(const Block& block, bool combine) {
  auto code = std::make_unique<Code>();
  combine_ += combine;
  for (const Value& argument : block.arguments) code->arguments.push_back(slot(argument));
  code->lanewise = true;
  for (const Operation* op : block.operations) {
    if (ends_block(*op)) continue;
    const Make make = maker_of(op->code);
    InstructionPtr made;
    if (op->form == Operation::Form::opaque)
      made = unsupported(*op, op->unread.empty()
                                  ? "the operation is not known"
                                  : fmt::format("it is written in another way ({})", op->unread));
    else if (!make)
      made = unsupported(*op, "nothing is known about what it does");
    else
      made = make(*this, *op);
    if (!made) continue;
    made->op = op;
    made->number = static_cast<std::uint32_t>(plan_->instructions.size());
    plan_->instructions.push_back(made.get());
    code->lanewise = code->lanewise && made->lanewise();
    code->steps.push_back({std::move(made), {}});
  }
  end_block(block, *code);
  find_last_uses(block, *code);
  combine_ -= combine;
  return code;
}

void Compiler::end_block(const Block& block, Code& code) {
  if (block.operations.empty() || !ends_block(*block.operations.back())) return;
  const Operation& op = *block.operations.back();
  Ending& ending = code.ending;
  ending.kind = kind_of(op);
  ending.op = &op;
  for (const Value* value : op.operands) ending.operands.push_back(slot(*value));
  for (const Successor& next : op.successors) {
    const auto target = block_numbers_.find(next.block);
    if (target == block_numbers_.end())
      unsupported(op, "its target is not a block of the function");
    else
      ending.targets.push_back({target->second, next.first, next.count});
  }
}

// A value dies with the last operation of its own block that uses it, be it inside a region of that
// operation. A value that another block of the function uses lives until the function returns.
void Compiler::find_last_uses(const Block& block, Code& code) {
  std::unordered_map<const Value*, std::size_t> last;
  const auto own = [&](const Value& value) {
    return (value.op ? value.op->block : value.block) == &block;
  };
  std::size_t step = 0;
  std::unordered_map<const Operation*, std::size_t> step_of;
  for (std::size_t i = 0; i < code.steps.size(); ++i) step_of[code.steps[i].instruction->op] = i;
  for (Operation* op : block.operations) {
    const auto found = step_of.find(op);
    if (found != step_of.end()) {
      step = found->second;
      for (const Value& result : op->results) last[&result] = step; // unused ones die at once
    } else {
      step = code.steps.size(); // the ending
    }
    walk(*op, [&](Operation& inner) {
      for (const Value* value : inner.operands)
        if (own(*value)) last[value] = step;
    });
  }
  if (block.region->blocks.size() > 1)
    for (const Block* other : block.region->blocks)
      if (other != &block)
        for (Operation* op : other->operations)
          walk(*op, [&](Operation& inner) {
            for (const Value* value : inner.operands) last.erase(value);
          });
  for (const auto& [value, at] : last)
    if (at < code.steps.size()) {
      Step& dying_at = code.steps[at];
      dying_at.dying.push_back(slot(*value));
      const auto& operands = dying_at.instruction->op->operands;
      for (std::size_t i = 0; i < std::min<std::size_t>(operands.size(), 8); ++i)
        if (operands[i] == value) dying_at.instruction->dying |= static_cast<std::uint8_t>(1U << i);
    }
  // Of several places of one value in the ending, the last may move it.
  code.ending.last_use.assign(code.ending.operands.size(), false);
  if (code.ending.op)
    for (std::size_t i = 0; i < code.ending.operands.size(); ++i) {
      const Value* value = code.ending.op->operands[i];
      const auto found = last.find(value);
      bool again = false;
      for (std::size_t j = i + 1; j < code.ending.operands.size(); ++j)
        again = again || code.ending.op->operands[j] == value;
      code.ending.last_use[i] = own(*value) && found != last.end() && !again;
    }
}

const FunctionCode* Compiler::callee(std::string_view name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  const Operation* op = module_.function(name);
  if (!op || op->regions.empty() || op->regions[0]->blocks.empty()) return nullptr;
  FunctionCode& function = plan_->functions.emplace_back();
  function.name = op->text_of("sym_name");
  by_name_[function.name] = &function;
  waiting_.push_back(op);
  return &function;
}

void Compiler::compile_function(const Operation& op, FunctionCode& function) {
  slots_.clear();
  block_numbers_.clear();
  next_slot_ = 0;
  function.blocks = blocks(*op.regions[0]);
  function.slots = next_slot_;
}

Blocks Compiler::blocks(const Region& region, bool combine) {
  for (std::size_t i = 0; i < region.blocks.size(); ++i)
    block_numbers_[region.blocks[i]] = static_cast<std::uint32_t>(i);
  Blocks made;
  for (const Block* block : region.blocks) made.push_back(code(*block, combine));
  return made;
}

std::unique_ptr<Plan> Compiler::compile(const Operation& function) {
  plan_ = std::make_unique<Plan>();
  if (!callee(function.text_of("sym_name"))) {
    unsupported(function, "it has no body");
    return nullptr;
  }
  for (std::size_t i = 0; i < waiting_.size(); ++i) // callees are added while this runs
    compile_function(*waiting_[i], *by_name_.at(waiting_[i]->text_of("sym_name")));
  return refusals.empty() ? std::move(plan_) : nullptr;
}

Lanes result_lanes(Program& program, const Instruction& instruction, std::size_t bytes,
                   std::span<const Operand> operands, std::size_t element_size) {
  if (instruction.dying != 0)
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Lanes& lanes = program.at(operands[i].slot);
      if ((instruction.dying >> i & 1) && operands[i].size() == element_size && lanes.sole() &&
          lanes.capacity() >= bytes)
        return lanes; // shares; the operand's own slot is emptied after the instruction
    }
  return program.dense(bytes);
}

} // namespace hebe::ttgir
