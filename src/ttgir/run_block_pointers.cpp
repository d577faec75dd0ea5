// Block pointers: tt.make_tensor_ptr, tt.advance, and loads and stores through them. In:
// operations; out: instructions. Invariant: a block pointer is a value; advancing one leaves the
// other.
#include "ttgir/run_blocks.hpp"
#include "ttgir/run_lanewise.hpp"

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

std::int64_t number_at(Program& program, const Operand& operand) {
  const Lanes& lanes = program.at(operand.slot);
  return operand.lane == Lane::i64 ? lanes.at<std::int64_t>(0) : lanes.at<std::int32_t>(0);
}

bool numbers(Compiler& compiler, const Operation& op, std::span<Value* const> values,
             std::vector<Operand>& out) {
  for (const Value* value : values) {
    const auto operand = compiler.operand(*value, op);
    if (!operand) return false;
    if (operand->lane != Lane::i32 && operand->lane != Lane::i64) {
      compiler.unsupported(op, "a size or offset is neither i32 nor i64");
      return false;
    }
    out.push_back(*operand);
  }
  return true;
}

class MakeBlockPointer final : public Instruction {
public:
  Status run(Program& program) const override {
    Rectangle at;
    at.base = program.at(base).at<std::uint64_t>(0);
    at.rank = block.size();
    for (std::size_t d = 0; d < at.rank; ++d) {
      at.shape[d] = number_at(program, shape[d]);
      at.strides[d] = number_at(program, strides[d]);
      at.offsets[d] = number_at(program, offsets[d]);
      at.block[d] = block[d];
    }
    Lanes lanes = program.dense(sizeof at);
    std::memcpy(lanes.bytes(), &at, sizeof at);
    program.set(to, std::move(lanes));
    return {};
  }
  Slot base = 0, to = 0;
  std::vector<Operand> shape, strides, offsets;
  std::vector<std::int64_t> block;
};

InstructionPtr make_block_pointer(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<MakeBlockPointer>();
  const Type* type = op.result().type;
  if (!type || !type->element || !type->element->shaped() ||
      type->element->shape.size() > Rectangle::kMaxRank)
    return compiler.unsupported(op, "its result is not a pointer to a block");
  made->block.assign(type->element->shape.begin(), type->element->shape.end());
  made->base = compiler.slot(*op.operands[0]);
  made->to = compiler.slot(op.result());
  if (!numbers(compiler, op, op.segment(1), made->shape) ||
      !numbers(compiler, op, op.segment(2), made->strides) ||
      !numbers(compiler, op, op.segment(3), made->offsets))
    return nullptr;
  const std::size_t rank = made->block.size();
  if (made->shape.size() != rank || made->strides.size() != rank || made->offsets.size() != rank)
    return compiler.unsupported(op, "its sizes are not as many as the block has dimensions");
  return made;
}

class Advance final : public Instruction {
public:
  Status run(Program& program) const override {
    Rectangle at = *program.at(from).data<Rectangle>();
    for (std::size_t d = 0; d < offsets.size(); ++d)
      at.offsets[d] += number_at(program, offsets[d]);
    Lanes lanes = program.dense(sizeof at);
    std::memcpy(lanes.bytes(), &at, sizeof at);
    program.set(to, std::move(lanes));
    return {};
  }
  Slot from = 0, to = 0;
  std::vector<Operand> offsets;
};

InstructionPtr make_advance(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Advance>();
  made->from = compiler.slot(*op.operands[0]);
  made->to = compiler.slot(op.result());
  if (!numbers(compiler, op, op.operands.subspan(1), made->offsets)) return nullptr;
  return made;
}

class BlockAccess final : public Instruction {
public:
  Status run(Program& program) const override {
    Rectangle at = *program.at(pointer).data<Rectangle>();
    at.checked = checked;
    if (store) return store_rectangle(program, *this, at, format, program.at(value));
    const bool outside_undefined = checked != 0 && !padded && program.options.poison_undefined;
    Lanes out;
    HEBE_CHECK(load_rectangle(program, *this, at, format,
                              nan || outside_undefined ? undefined_lane(format.scalar) : Lanes(),
                              out));
    program.set(value, std::move(out));
    return {};
  }
  Slot pointer = 0, value = 0;
  MemoryFormat format{};
  std::uint32_t checked = 0;
  bool store = false, padded = false, nan = false;
};

InstructionPtr make_block_access(Compiler& compiler, const Operation& op, bool store) {
  auto made = std::make_unique<BlockAccess>();
  const auto format = memory_format(op.operands[0]->type->element->leaf());
  if (!format)
    return compiler.unsupported(op,
                                fmt::format("no access through {}", op.operands[0]->type->text));
  if ((!store && op.operands.size() > 1) || (store && op.operands.size() > 2))
    return compiler.unsupported(op, "a mask on a block pointer");
  made->format = *format;
  made->pointer = compiler.slot(*op.operands[0]);
  made->store = store;
  made->value = store ? compiler.slot(*op.operands[1]) : compiler.slot(op.result());
  if (const auto text = op.text_of("boundaryCheck"); !text.empty()) {
    const auto dimensions = integers(text);
    if (!dimensions) return compiler.unsupported(op, "its boundaryCheck is not a list");
    for (const auto d : *dimensions)
      if (d >= 0 && d < static_cast<std::int64_t>(Rectangle::kMaxRank)) made->checked |= 1U << d;
  }
  if (const auto text = op.text_of("padding"); !text.empty()) {
    const auto number = integer(text);
    made->padded = true;
    made->nan = (number && *number == 2) || text == "nan";
    if (made->nan && !is_float(format->scalar))
      return compiler.unsupported(op, "NaN padding of integers");
  }
  return made;
}

} // namespace

InstructionPtr make_block_load(Compiler& compiler, const Operation& op) {
  return make_block_access(compiler, op, false);
}
InstructionPtr make_block_store(Compiler& compiler, const Operation& op) {
  return make_block_access(compiler, op, true);
}

void add_block_pointers(Makers& makers) {
  makers[static_cast<std::size_t>(Op::tt_make_tensor_ptr)] = &make_block_pointer;
  makers[static_cast<std::size_t>(Op::tt_advance)] = &make_advance;
}

} // namespace hebe::ttgir
