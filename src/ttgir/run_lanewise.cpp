#include "ttgir/run_lanewise.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

constexpr std::size_t kChunk =
    1024; // elements: operands and result of a chunk stay in the first cache

void spread(const Lanes& uniform, std::size_t size, std::byte* out, std::size_t count) {
  switch (size) {
  case 1:
    std::fill_n(reinterpret_cast<std::uint8_t*>(out), count, uniform.at<std::uint8_t>(0));
    break;
  case 2:
    std::fill_n(reinterpret_cast<std::uint16_t*>(out), count, uniform.at<std::uint16_t>(0));
    break;
  case 4:
    std::fill_n(reinterpret_cast<std::uint32_t*>(out), count, uniform.at<std::uint32_t>(0));
    break;
  default:
    std::fill_n(reinterpret_cast<std::uint64_t*>(out), count, uniform.at<std::uint64_t>(0));
    break;
  }
}

} // namespace

void Lanewise::apply(const std::array<const Lanes*, kMost>& in, std::byte* out,
                     std::size_t count) const {
  alignas(64) std::byte repeated[kMost][kChunk * 8];
  const void* at[kMost] = {};
  bool uniform[kMost] = {}, whole = round == nullptr;
  for (std::size_t i = 0; i < operand_count; ++i) {
    uniform[i] = in[i]->uniform();
    at[i] = in[i]->bytes();
    if (uniform[i] && count > 1) {
      spread(*in[i], operands[i].size(), repeated[i], std::min(count, kChunk));
      at[i] = repeated[i];
      whole = whole && count <= kChunk;
    }
  }
  if (whole) return kernel(at, out, count);
  const std::size_t size = result.size();
  for (std::size_t begin = 0; begin < count; begin += kChunk) {
    const std::size_t part = std::min(kChunk, count - begin);
    kernel(at, out, part);
    if (round) round(reinterpret_cast<float*>(out), part);
    out += part * size;
    for (std::size_t i = 0; i < operand_count; ++i)
      if (!uniform[i]) at[i] = static_cast<const std::byte*>(at[i]) + part * operands[i].size();
  }
}

Status Lanewise::run(Program& program) const {
  std::array<const Lanes*, kMost> in{};
  bool uniform = true;
  for (std::size_t i = 0; i < operand_count; ++i) {
    in[i] = &program.at(operands[i].slot);
    uniform = uniform && in[i]->uniform();
  }
  if (uniform) {
    Lanes out;
    const void* at[kMost] = {};
    for (std::size_t i = 0; i < operand_count; ++i) at[i] = in[i]->bytes();
    kernel(at, out.bytes(), 1);
    if (round) round(out.data<float>(), 1);
    program.set(result.slot, std::move(out));
    return {};
  }
  const std::size_t count = result.count(program);
  Lanes out = result_lanes(program, *this, count * result.size(),
                           std::span(operands).first(operand_count), result.size());
  apply(in, out.bytes(), count);
  program.set(result.slot, std::move(out));
  return {};
}

std::string_view work_type_of(const Operand& operand) {
  return operand.pointer ? "ptr" : spelling(operand.scalar);
}

InstructionPtr make_lanewise(Compiler& compiler, const Operation& op, LaneKernel kernel,
                             WorkKind work, bool round) {
  if (op.operands.size() > Lanewise::kMost || op.operands.empty() || op.results.empty())
    return compiler.unsupported(op, "an unexpected number of operands or results");
  auto made = std::make_unique<Lanewise>();
  for (const Value* value : op.operands) {
    const auto operand = compiler.operand(*value, op);
    if (!operand) return nullptr;
    made->operands[made->operand_count++] = *operand;
  }
  const auto result = compiler.operand(op.result(), op);
  if (!result) return nullptr;
  if (!kernel)
    return compiler.unsupported(
        op, fmt::format("no such arithmetic on {}", work_type_of(made->operands[0])));
  made->result = *result;
  made->kernel = kernel;
  if (round && result->lane == Lane::f32) made->round = rounding_to(result->scalar);
  made->work = work;
  made->work_type = work_type_of(*result);
  made->work_elements = std::max<std::size_t>(result->elements, 1);
  return made;
}

InstructionPtr make_alias(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Alias>();
  made->from = compiler.slot(*op.operands[0]);
  made->to = compiler.slot(op.result());
  return made;
}

} // namespace hebe::ttgir
