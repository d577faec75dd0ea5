#include "rewrite/value_numbers.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace hebe::rewrite {
using ttgir::Effect;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

bool is_expression(const Operation& op) {
  if (op.form == Operation::Form::opaque || !op.regions.empty() || op.results.empty()) return false;
  return op.info().effect == Effect::pure ||
         (op.info().effect == Effect::call && ttgir::boolean(op.text_of("pure")).value_or(false));
}

const Operation* scope_of(const Operation& op) {
  const Operation* up = op.parent();
  while (up && (up->is(Op::scf_for) || up->is(Op::scf_if) || up->is(Op::scf_while)))
    up = up->parent();
  return up;
}

void ValueNumbers::is(const Value& value, const Value& same) {
  numbers_[&value] = of(same);
  rests_[&value] = rests_on(same);
}

Interval ValueNumbers::rests_on(const Value& value) {
  static_cast<void>(of(value));
  const auto found = rests_.find(&value);
  return found == rests_.end() ? Interval{} : found->second;
}

std::uint32_t ValueNumbers::number(std::string key) {
  const auto [found, fresh] = keys_.try_emplace(std::move(key), next_);
  return fresh ? next_++ : found->second;
}

std::uint32_t ValueNumbers::of(const Value& value) {
  if (const auto found = numbers_.find(&value); found != numbers_.end()) return found->second;
  // Without recursion: a chain of operations may be long.
  std::vector<const Value*> open{&value};
  while (!open.empty()) {
    const Value& at = *open.back();
    if (numbers_.contains(&at)) {
      open.pop_back();
      continue;
    }
    if (const auto fixed = known_ ? known_->constant(at) : std::nullopt) {
      numbers_[&at] = number(fmt::format("={}\x1f{}", fixed->low, type_key(at.type, false)));
      rests_[&at] = *fixed;
      open.pop_back();
      continue;
    }
    if (!at.op || !is_expression(*at.op)) {
      numbers_[&at] = next_++;
      open.pop_back();
      continue;
    }
    const auto depth = open.size();
    for (const Value* operand : at.op->operands)
      if (!numbers_.contains(operand)) open.push_back(operand);
    if (open.size() > depth) continue;
    open.pop_back();
    if (layouts_ == Layouts::ignored && at.op->is(Op::ttg_convert_layout))
      numbers_[&at] = numbers_.at(at.op->operands[0]);
    else
      numbers_[&at] = number(key(*at.op, at.index));
    for (const Value* operand : at.op->operands)
      if (const auto found = rests_.find(operand); found != rests_.end()) {
        const Interval facts = found->second; // rests_ may move
        auto& own = rests_[&at];
        own.arguments.insert(facts.arguments.begin(), facts.arguments.end());
        own.grid = own.grid || facts.grid;
      }
  }
  return numbers_.at(&value);
}

std::string ValueNumbers::type_key(ttgir::TypeRef type, bool keeps_layout) const {
  std::string_view text = type ? type->text : std::string_view{"?"};
  if (layouts_ == Layouts::ignored && type && !type->encoding.empty() && !keeps_layout) {
    const auto at = text.rfind(type->encoding);
    text = text.substr(0, at == std::string_view::npos ? text.size() : at);
  }
  return std::string(text);
}

std::string ValueNumbers::key(const Operation& op, std::uint32_t result) {
  std::string out(op.name);
  const auto add = [&](std::string_view text) {
    out += '\x1f';
    out += text;
  };
  add(std::to_string(result));
  std::vector<ttgir::Attribute> attributes(op.attributes.begin(), op.attributes.end());
  std::ranges::sort(attributes, {}, &ttgir::Attribute::name);
  for (const auto& each : attributes) {
    add(each.name);
    add(each.text);
  }
  add("|");
  for (const auto each : op.segments) add(std::to_string(each));
  add("|");
  for (const Value* each : op.operands) add(std::to_string(numbers_.at(each)));
  // A reshape that may reorder depends on the layouts.
  for (const Value& each : op.results) add(type_key(each.type, op.is(Op::tt_reshape)));
  return out;
}

} // namespace hebe::rewrite
