#include "qualify/sass_origins.hpp"

#include "qualify/ptx_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace hebe::qualify {
namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, word) != list.end();
}

/// "R16", "UR4", "R16.64", "-R3.reuse": the number in the state; nothing for RZ and others.
std::optional<std::size_t> register_of(std::string_view operand) {
  while (!operand.empty() && one_of(operand.substr(0, 1), {"-", "|", "~", "!", "+"}))
    operand.remove_prefix(1);
  const bool uniform = operand.starts_with("UR");
  if (!uniform && !operand.starts_with('R')) return std::nullopt;
  operand.remove_prefix(uniform ? 2 : 1);
  std::size_t number = 0;
  const auto [end, error] =
      std::from_chars(operand.data(), operand.data() + operand.size(), number);
  if (error != std::errc() || number > 254) return std::nullopt; // RZ, URZ
  return number + (uniform ? 256 : 0);
}

/// How many registers the result takes.
std::size_t results_of(const SassInstruction& at) {
  if (at.has("128")) return 4;
  return at.has("64") || at.has("WIDE") || at.mnemonic().starts_with('D') || at.mnemonic() == "CS2R"
             ? 2
             : 1;
}

bool jumps(std::string_view mnemonic) {
  return one_of(mnemonic,
                {"BRA", "BRX", "JMP", "JMX", "BRXU", "JMXU", "EXIT", "RET", "CALL", "KILL"});
}

std::string_view target_of(const SassInstruction& at) {
  for (const auto operand : at.operands)
    if (const auto open = operand.find("`("); open != std::string_view::npos)
      return operand.substr(open + 2, operand.find(')', open) - open - 2);
  return {};
}

} // namespace

SassOrigins::SassOrigins(const SassText& text, std::span<const ParameterPlace> parameters,
                         std::uint32_t base)
    : text_(text), parameters_(parameters), base_(base) {
  const std::size_t count = text.instructions.size();
  std::vector<bool> begins(count + 1, false);
  begins[0] = true;
  for (const auto& [name, number] : text.labels)
    if (number < count) begins[number] = true;
  for (std::size_t i = 0; i < count; ++i)
    if (jumps(text.instructions[i].mnemonic())) begins[i + 1] = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (begins[i]) begins_.push_back(i);
    block_of_.push_back(begins_.size() - 1);
  }
  before_.resize(begins_.size());
  std::vector<std::size_t> open;
  std::vector<bool> seen(begins_.size(), false);
  const auto reach = [&](std::size_t block, const State& state) {
    bool changed = !seen[block];
    seen[block] = true;
    for (std::size_t r = 0; r < state.size(); ++r) {
      const Set joined = before_[block][r] | state[r];
      changed = changed || joined != before_[block][r];
      before_[block][r] = joined;
    }
    if (changed) open.push_back(block);
  };
  if (!begins_.empty()) reach(0, State{});
  while (!open.empty()) {
    const std::size_t block = open.back();
    open.pop_back();
    State state = before_[block];
    const std::size_t end = block + 1 < begins_.size() ? begins_[block + 1] : count;
    for (std::size_t i = begins_[block]; i < end; ++i) flow(text.instructions[i], state);
    const auto& last = text.instructions[end - 1];
    if (jumps(last.mnemonic()))
      if (const auto label = text.labels.find(target_of(last));
          label != text.labels.end() && label->second < count)
        reach(block_of_[label->second], state);
    // BRA's condition may be an operand ("BRA.U UP0, …"), too: falling through is always looked at.
    if (end < count && !(last.predicate.empty() && one_of(last.mnemonic(), {"EXIT", "RET", "JMP"})))
      reach(block + 1, state);
  }
}

SassOrigins::Set SassOrigins::constant(std::string_view operand, std::uint32_t further) const {
  const auto at = operand.find("c[0x0][0x");
  if (at == std::string_view::npos || base_ == 0) return 0;
  std::uint32_t offset = 0;
  std::from_chars(operand.data() + at + 9, operand.data() + operand.size(), offset, 16);
  for (std::size_t i = 0; i < std::min<std::size_t>(parameters_.size(), 62); ++i)
    if (parameters_[i].pointer && offset + further == base_ + parameters_[i].offset)
      return Set{1} << i;
  return 0;
}

SassOrigins::Set SassOrigins::value(const State& state, std::string_view operand) const {
  if (const auto number = register_of(operand)) return state[*number];
  return constant(operand);
}

void SassOrigins::flow(const SassInstruction& at, State& state) const {
  if (at.operands.empty()) return;
  const auto to = register_of(at.operands[0]);
  if (!to || at.operands[0].starts_with('[')) return;
  const auto mnemonic = at.mnemonic();
  // Sources: what follows the result and the predicates that are results, too.
  std::vector<std::string_view> from;
  for (std::size_t i = 1; i < at.operands.size(); ++i)
    if (const auto& o = at.operands[i];
        !o.starts_with("P") && !o.starts_with("UP") && !o.starts_with("!"))
      from.push_back(o);
  Set result = 0;
  if (one_of(mnemonic, {"MOV", "UMOV", "IADD3", "UIADD3", "IADD", "UIADD", "VIADD", "UVIADD", "SEL",
                        "USEL", "R2UR", "LOP3", "ULOP3"})) {
    for (const auto each : from) result |= value(state, each);
  } else if (one_of(mnemonic, {"IMAD", "UIMAD"})) {
    if (from.size() > 2) result = value(state, from[2]);
  } else if (one_of(mnemonic, {"LEA", "ULEA"})) {
    if (from.size() > 1) result = value(state, from[1]);
  } else if (one_of(mnemonic, {"LDG", "LD", "LDS", "LDL", "SHFL", "ATOMG"})) {
    result = kLoaded;
  }
  // One load of constants may bring two pointers (LDCU.128).
  const bool constants = one_of(mnemonic, {"LDC", "ULDC", "LDCU"}) && !from.empty();
  const bool always = at.predicate.empty();
  const std::size_t results = results_of(at);
  for (std::size_t r = 0; r < results && *to + r < state.size(); ++r) {
    const Set each = constants ? constant(from[0], static_cast<std::uint32_t>(4 * r))
                     : r == 0 || result == kLoaded ? result
                                                   : 0;
    state[*to + r] = always ? each : state[*to + r] | each;
  }
}

SassOrigins::Set SassOrigins::of_operand(std::size_t number, std::string_view operand) const {
  const std::size_t block = block_of_[number];
  State state = before_[block];
  for (std::size_t i = begins_[block]; i < number; ++i) flow(text_.instructions[i], state);
  return value(state, operand);
}

SassOrigins::Set SassOrigins::of_address(std::size_t number, std::string_view address) const {
  const auto open = address.rfind('['); // the last brackets: a descriptor stands before them
  if (open == std::string_view::npos) return of_operand(number, address);
  auto inside = address.substr(open + 1, address.find(']', open) - open - 1);
  Set all = 0;
  while (!inside.empty()) {
    const auto plus = inside.find('+');
    all |= of_operand(number, inside.substr(0, plus));
    inside.remove_prefix(plus == std::string_view::npos ? inside.size() : plus + 1);
  }
  return all;
}

} // namespace hebe::qualify
