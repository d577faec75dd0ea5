#include "rewrite/value_numbers.hpp"

#include <algorithm>
#include <vector>

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

void ValueNumbers::is(const Value& value, const Value& same) { numbers_[&value] = of(same); }

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
    else if (const auto [found, fresh] = keys_.try_emplace(key(*at.op, at.index), next_); fresh)
      numbers_[&at] = next_++;
    else
      numbers_[&at] = found->second;
  }
  return numbers_.at(&value);
}

std::string ValueNumbers::key(const Operation& op, std::uint32_t result) {
  std::string out(op.name);
  const auto add = [&](std::string_view text) {
    out += '\x1f';
    out += text;
  };
  const auto type = [&](ttgir::TypeRef of) {
    std::string_view text = of ? of->text : std::string_view{"?"};
    // A reshape that may reorder depends on the layouts.
    if (layouts_ == Layouts::ignored && of && !of->encoding.empty() && !op.is(Op::tt_reshape)) {
      const auto at = text.rfind(of->encoding);
      add(text.substr(0, at == std::string_view::npos ? text.size() : at));
      return;
    }
    add(text);
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
  for (const Value& each : op.results) type(each.type);
  return out;
}

} // namespace hebe::rewrite
