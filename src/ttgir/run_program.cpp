#include "ttgir/run_program.hpp"

#include "ttgir/run_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {

/// The slots of one call; those of the caller are back when it ends.
class FrameScope {
public:
  FrameScope(Program& program, std::uint32_t slots)
      : program_(program), before_(program.frame_), slots_(slots) {
    program.frame_ = slots_.data();
    ++program.depth_;
  }
  ~FrameScope() {
    program_.frame_ = before_;
    --program_.depth_;
  }
  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;

private:
  Program& program_;
  Lanes* before_;
  std::vector<Lanes> slots_;
};

Program::Program(const Plan& p, const GlobalMemory& m, const Launch& l, const InterpretOptions& o,
                 Traffic* t)
    : plan(p), memory(m), launch(l), options(o), executions(p.instructions.size()), traffic(t) {}

Status Program::run_number(std::uint64_t n, const std::vector<Lanes>& arguments) {
  number = n;
  const auto [x, y, z] = launch.grid;
  id = {static_cast<std::uint32_t>(n % x), static_cast<std::uint32_t>(n / x % y),
        static_cast<std::uint32_t>(n / x / y)};
  static_cast<void>(z);
  steps_left_ = launch.limits.steps;
  scratch_.clear();
  tensormaps.clear();
  std::vector<Lanes> results;
  return run_function(plan.functions.front(), arguments, results);
}

Status Program::run(const Code& code) {
  for (const Step& step : code.steps) {
    const Instruction& instruction = *step.instruction;
    if (steps_left_-- == 0) return too_long(instruction);
    executions[instruction.number] += width;
    if (Status status = instruction.run(*this); !status) return status;
    for (const Slot slot : step.dying) frame_[slot] = Lanes();
  }
  return {};
}

Status Program::call(const Instruction& from, const FunctionCode& function,
                     std::vector<Lanes> arguments, std::vector<Lanes>& results) {
  if (depth_ > launch.limits.calls)
    return refuse(RefusalCode::kernel_failed,
                  fmt::format("{} calls deeper than {} functions", name(from), launch.limits.calls),
                  "raise Limits::calls if the recursion ends");
  return run_function(function, std::move(arguments), results);
}

Status Program::run_function(const FunctionCode& function, std::vector<Lanes> arguments,
                             std::vector<Lanes>& results) {
  const FrameScope frame(*this, function.slots);
  HEBE_CHECK(run_blocks(function.blocks, arguments));
  results = std::move(arguments);
  return {};
}

Status Program::run_blocks(const std::vector<std::unique_ptr<Code>>& blocks,
                           std::vector<Lanes>& values) {
  std::uint32_t block = 0;
  while (true) {
    const Code& code = *blocks[block];
    assign(code.arguments, values);
    HEBE_CHECK(run(code));
    const Ending& ending = code.ending;
    if (ending.kind != Ending::Kind::branch) {
      values = this->ending(code);
      return {};
    }
    // An empty block that goes to itself would never be seen by run().
    if (steps_left_-- == 0) return too_long(*plan.instructions.front());
    const bool first =
        ending.targets.size() == 1 || frame_[ending.operands[0]].at<std::uint8_t>(0) != 0;
    const auto& target = ending.targets[first ? 0 : 1];
    values.clear();
    for (std::uint32_t i = 0; i < target.count; ++i)
      values.push_back(frame_[ending.operands[target.first + i]]);
    block = target.block;
  }
}

std::vector<Lanes> Program::ending(const Code& code) {
  std::vector<Lanes> values;
  values.reserve(code.ending.operands.size());
  for (std::size_t i = 0; i < code.ending.operands.size(); ++i) {
    Lanes& value = frame_[code.ending.operands[i]];
    if (code.ending.last_use[i])
      values.push_back(std::exchange(value, Lanes()));
    else
      values.push_back(value);
  }
  return values;
}

void Program::assign(const std::vector<Slot>& slots, std::vector<Lanes>& values) {
  for (std::size_t i = 0; i < slots.size() && i < values.size(); ++i)
    frame_[slots[i]] = std::move(values[i]);
}

std::string Program::name(const Instruction& instruction, std::int64_t element) const {
  const Operation& op = *instruction.op;
  std::string text = fmt::format("{} (line {}", op.name, op.line);
  if (!op.results.empty() && !op.results[0].name.empty())
    text += fmt::format(", %{}", op.results[0].name);
  text += fmt::format(") of program ({}, {}, {})", id[0], id[1], id[2]);
  if (element >= 0) text += fmt::format(", element {},", element);
  return text;
}

Status Program::too_long(const Instruction& instruction) const {
  return refuse(RefusalCode::kernel_failed,
                fmt::format("{} is beyond the {} operations that a program may run",
                            name(instruction), launch.limits.steps),
                "a loop does not end, or it waits for a program that starts later; raise "
                "Limits::steps if neither");
}

void Program::print(std::string_view text) {
  if (printed_bytes_ >= launch.limits.printed) return;
  text = text.substr(0, launch.limits.printed - printed_bytes_);
  printed_bytes_ += text.size();
  printed.emplace_back(number, text);
}

std::uint64_t Program::take_scratch(std::size_t bytes, std::size_t alignment) {
  const std::size_t step = std::max<std::size_t>(alignment, 1);
  const std::size_t begin = (scratch_.size() + step - 1) / step * step;
  scratch_.resize(begin + bytes);
  return address_of_buffer(kScratchBuffer) + begin;
}

std::byte* Program::find_scratch(std::uint64_t address, std::size_t bytes) {
  const auto offset = static_cast<std::uint64_t>(offset_of(address));
  if (offset > scratch_.size() || scratch_.size() - offset < bytes) return nullptr;
  return scratch_.data() + offset;
}

} // namespace hebe::ttgir
