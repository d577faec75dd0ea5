// Edits of a module. In: operations and values of one module; out: the same module, marked as
// edited. Invariant: operands, blocks and lists point at each other again when an edit returns;
// whether the result is right (dominance, types) is verify()'s question.
#include "ttgir/ir.hpp"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

void insert(Block& block, Operation& op, Operation* before) {
  auto place = before ? std::ranges::find(block.operations, before) : block.operations.end();
  if (!before && !block.operations.empty() &&
      block.operations.back()->info().effect == Effect::terminator)
    --place;
  block.operations.insert(place, &op);
  op.block = &block;
}

/// Which of the row's formats the operands ask for.
std::uint8_t format_for(const Module::Draft& draft) {
  const bool scalar_condition = draft.code == Op::arith_select && draft.operands[0]->type &&
                                !draft.operands[0]->type->shaped();
  return scalar_condition ? 1 : 0;
}

} // namespace

Operation& Module::create(const Draft& draft, Block& block, Operation* before) {
  edited_ = true;
  Operation& op = make_operation();
  const OpInfo& info = info_of(draft.code);
  op.code = draft.code;
  op.name = info.name;
  op.form = info.format == "custom"    ? Operation::Form::custom
            : info.format == "generic" ? Operation::Form::generic
                                       : Operation::Form::table;
  op.format = op.form == Operation::Form::table ? format_for(draft) : std::uint8_t{0};
  op.location = keep(draft.location);
  op.operands = make_list<Value*>(draft.operands.size());
  std::ranges::copy(draft.operands, op.operands.begin());
  if (!draft.segments.empty()) {
    auto segments = make_list<std::uint16_t>(draft.segments.size());
    std::ranges::copy(draft.segments, segments.begin());
    op.segments = segments;
  }
  op.attributes = make_list<Attribute>(draft.attributes.size());
  for (std::size_t i = 0; i < op.attributes.size(); ++i)
    op.attributes[i] = {keep(draft.attributes[i].name), keep(draft.attributes[i].text),
                        draft.attributes[i].place};
  op.results = make_list<Value>(draft.results.size());
  // MLIR reads "%4" as a number and stops there: what is made of "4" and more needs a letter first.
  const bool number = !draft.name.empty() && draft.name[0] >= '0' && draft.name[0] <= '9' &&
                      draft.name.find_first_not_of("0123456789") != std::string::npos;
  const auto name = keep(number ? "v" + draft.name : draft.name);
  const bool grouped = op.results.size() > 1;
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    Value& value = op.results[i];
    value.type = draft.results[i];
    value.name = name;
    value.op = &op;
    value.index = static_cast<std::uint32_t>(i);
    value.group = grouped ? static_cast<std::int32_t>(i) : -1;
    init_value(value);
  }
  if (grouped) {
    auto groups = make_list<std::uint8_t>(1);
    groups[0] = static_cast<std::uint8_t>(op.results.size());
    op.result_groups = groups;
  }
  insert(block, op, before);
  return op;
}

void Module::replace_all_uses(Value& of, Value& with) {
  edited_ = true;
  walk(*top_, [&](Operation& op) {
    for (Value*& operand : op.operands)
      if (operand == &of) operand = &with;
  });
}

bool Module::used(const Value& value) const {
  bool found = false;
  walk(*top_, [&](Operation& op) {
    found = found || std::ranges::find(op.operands, &value) != op.operands.end();
  });
  return found;
}

void Module::set_operand(Operation& op, std::size_t i, Value& value) {
  edited_ = true;
  op.operands[i] = &value;
}

void Module::set_attribute(Operation& op, const Attribute& attribute) {
  edited_ = true;
  const Attribute kept{keep(attribute.name), keep(attribute.text), attribute.place};
  for (Attribute& each : op.attributes)
    if (each.name == kept.name) {
      each = kept;
      return;
    }
  auto list = make_list<Attribute>(op.attributes.size() + 1);
  std::ranges::copy(op.attributes, list.begin());
  list.back() = kept;
  std::ranges::stable_sort(list, {}, &Attribute::name); // MLIR prints dictionaries sorted
  op.attributes = list;
}

bool Module::remove_attribute(Operation& op, std::string_view name) {
  const auto found = std::ranges::find(op.attributes, name, &Attribute::name);
  if (found == op.attributes.end()) return false;
  edited_ = true;
  std::shift_left(found, op.attributes.end(), 1);
  op.attributes = op.attributes.first(op.attributes.size() - 1);
  return true;
}

void Module::erase(Operation& op) {
  edited_ = true;
  std::erase(op.block->operations, &op);
  op.block = nullptr;
}

void Module::move(Operation& op, Block& block, Operation* before) {
  edited_ = true;
  if (before == &op) return;
  std::erase(op.block->operations, &op);
  insert(block, op, before);
}

Operation& Module::splice(Region& region, std::span<Value* const> arguments, Operation& before) {
  edited_ = true;
  Block& from = region.front();
  for (std::size_t i = 0; i < from.arguments.size(); ++i)
    replace_all_uses(from.arguments[i], *arguments[i]);
  Operation& terminator = *from.operations.back();
  from.operations.pop_back();
  for (Operation* op : from.operations) op->block = before.block;
  auto& into = before.block->operations;
  into.insert(std::ranges::find(into, &before), from.operations.begin(), from.operations.end());
  from.operations.clear();
  terminator.block = nullptr;
  return terminator;
}

namespace {

/// A deep copy; operands defined inside the original become the copies.
struct Cloner {
  std::unordered_map<const Value*, Value*> values;
  std::unordered_map<const Block*, Block*> blocks;
};

} // namespace

Operation& Module::clone(const Operation& op, Block& block, Operation* before) {
  edited_ = true;
  Cloner cloner;
  const auto copy_values = [&](std::span<const Value> from, Operation* owner, Block* home) {
    auto list = make_list<Value>(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      list[i] = from[i];
      list[i].op = owner;
      list[i].block = home;
      list[i].line = 0;
      init_value(list[i]);
      cloner.values[&from[i]] = &list[i];
    }
    return list;
  };
  const auto copy = [&](const auto& self, const Operation& original, Block& home) -> Operation& {
    Operation& made = make_operation();
    made = original;
    made.block = &home;
    made.line = 0;
    made.operands = make_list<Value*>(original.operands.size());
    std::ranges::copy(original.operands, made.operands.begin());
    made.attributes = make_list<Attribute>(original.attributes.size());
    std::ranges::copy(original.attributes, made.attributes.begin());
    made.successors = make_list<Successor>(original.successors.size());
    std::ranges::copy(original.successors, made.successors.begin());
    made.regions = make_list<Region*>(original.regions.size());
    for (std::size_t r = 0; r < original.regions.size(); ++r) {
      Region& region = make_region(made);
      made.regions[r] = &region;
      for (const Block* from : original.regions[r]->blocks) {
        Block& to = make_block(region);
        to.label = from->label;
        to.comment = from->comment;
        to.arguments = copy_values(from->arguments, nullptr, &to);
        cloner.blocks[from] = &to;
      }
      for (std::size_t b = 0; b < region.blocks.size(); ++b)
        for (const Operation* inner : original.regions[r]->blocks[b]->operations)
          region.blocks[b]->operations.push_back(&self(self, *inner, *region.blocks[b]));
    }
    made.results = copy_values(original.results, &made, nullptr);
    return made;
  };
  Operation& made = copy(copy, op, block);
  walk(made, [&](Operation& each) {
    for (Value*& operand : each.operands)
      if (const auto found = cloner.values.find(operand); found != cloner.values.end())
        operand = found->second;
    for (Successor& next : each.successors)
      if (const auto found = cloner.blocks.find(next.block); found != cloner.blocks.end())
        next.block = found->second;
  });
  insert(block, made, before);
  return made;
}

} // namespace hebe::ttgir
