// Shared memory: allocations, views, loads, stores, copies from global memory. In: ttg operations;
// out: instructions. Invariant: an asynchronous copy is done when it is issued, so tokens, groups
// and waits carry nothing.
#include "ttgir/memory_view.hpp"
#include "ttgir/run_lanewise.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

InstructionPtr not_memory(Compiler& compiler, const Operation& op) {
  return compiler.unsupported(op, "its memory is not of numbers, or has too many dimensions");
}

class Allocate final : public Instruction {
public:
  Status run(Program& program) const override {
    Lanes memory = allocate_view(program, type);
    if (initialised) write_view(program, memory, type.format, program.at(value));
    program.set(to, std::move(memory));
    return {};
  }
  MemdescType type{};
  Slot value = 0, to = 0;
  bool initialised = false;
};

InstructionPtr make_allocation(Compiler& compiler, const Operation& op) {
  const auto type = memdesc_type(op.result());
  if (!type) return not_memory(compiler, op);
  auto made = std::make_unique<Allocate>();
  made->type = *type;
  made->to = compiler.slot(op.result());
  if (!op.operands.empty()) {
    made->initialised = true;
    made->value = compiler.slot(*op.operands[0]);
  }
  return made;
}

class ReadAll final : public Instruction {
public:
  Status run(Program& program) const override {
    program.set(to, read_view(program, program.at(from), format));
    return {};
  }
  Slot from = 0, to = 0;
  MemoryFormat format{};
};

InstructionPtr make_read(Compiler& compiler, const Operation& op) {
  const auto type = memdesc_type(*op.operands[0]);
  const auto to = compiler.operand(op.result(), op);
  if (!to) return nullptr;
  if (!type || type->elements() != to->elements || type->format.lane_size != to->size())
    return not_memory(compiler, op);
  auto made = std::make_unique<ReadAll>();
  made->from = compiler.slot(*op.operands[0]);
  made->to = to->slot;
  made->format = type->format;
  return made;
}

class WriteAll final : public Instruction {
public:
  Status run(Program& program) const override {
    write_view(program, program.at(to), format, program.at(from));
    return {};
  }
  Slot from = 0, to = 0;
  MemoryFormat format{};
};

InstructionPtr make_write(Compiler& compiler, const Operation& op) {
  const auto type = memdesc_type(*op.operands[1]);
  const auto from = compiler.operand(*op.operands[0], op);
  if (!from) return nullptr;
  if (!type || type->elements() != from->elements || type->format.lane_size != from->size())
    return not_memory(compiler, op);
  auto made = std::make_unique<WriteAll>();
  made->from = from->slot;
  made->to = compiler.slot(*op.operands[1]);
  made->format = type->format;
  return made;
}

/// One of the slices along the first dimension.
class Index final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& source = program.at(from);
    MemoryView view = view_of(source);
    const std::int64_t i = program.at(index).at<std::int32_t>(0);
    if (i < 0 || i >= view.shape[0])
      return refuse(RefusalCode::out_of_bounds,
                    fmt::format("{} takes slice {} of {}", program.name(*this), i, view.shape[0]));
    view.offset += i * view.strides[0] * static_cast<std::int64_t>(bytes);
    --view.rank;
    std::copy(view.shape.begin() + 1, view.shape.end(), view.shape.begin());
    std::copy(view.strides.begin() + 1, view.strides.end(), view.strides.begin());
    program.set(to, derive_view(program, source, view));
    return {};
  }
  Slot from = 0, index = 0, to = 0;
  std::size_t bytes = 0;
};

InstructionPtr make_index(Compiler& compiler, const Operation& op) {
  const auto type = memdesc_type(*op.operands[0]), result = memdesc_type(op.result());
  const auto index = compiler.operand(*op.operands[1], op);
  if (!index) return nullptr;
  if (!type || !result || index->lane != Lane::i32 ||
      type->shape.size() != result->shape.size() + 1)
    return not_memory(compiler, op);
  auto made = std::make_unique<Index>();
  made->from = compiler.slot(*op.operands[0]);
  made->index = index->slot;
  made->to = compiler.slot(op.result());
  made->bytes = type->format.bytes;
  return made;
}

/// Another view that the text alone determines.
class Look final : public Instruction {
public:
  enum class Kind : std::uint8_t { slice, transposed, reshaped } kind = Kind::slice;
  Status run(Program& program) const override {
    const Lanes& source = program.at(from);
    const MemoryView old = view_of(source);
    MemoryView view = old;
    view.rank = static_cast<std::uint32_t>(type.shape.size());
    std::ranges::copy(type.shape, view.shape.begin());
    switch (kind) {
    case Kind::slice:
      for (std::size_t d = 0; d < numbers.size(); ++d)
        view.offset += numbers[d] * old.strides[d] * static_cast<std::int64_t>(type.format.bytes);
      break;
    case Kind::transposed:
      for (std::size_t d = 0; d < numbers.size(); ++d)
        view.strides[d] = old.strides[static_cast<std::size_t>(numbers[d])];
      break;
    case Kind::reshaped: {
      if (!old.dense())
        return refuse(RefusalCode::unsupported,
                      fmt::format("{} reshapes memory that has gaps", program.name(*this)));
      const auto available =
          static_cast<std::int64_t>(source.storage()->behind->capacity) - old.offset;
      if (static_cast<std::int64_t>(type.elements() * type.format.bytes) > available)
        return refuse(RefusalCode::out_of_bounds,
                      fmt::format("{} looks beyond its allocation", program.name(*this)));
      std::int64_t stride = 1;
      for (std::size_t d = type.shape.size(); d-- > 0; stride *= type.shape[d])
        view.strides[d] = stride;
      break;
    }
    }
    program.set(to, derive_view(program, source, view));
    return {};
  }
  Slot from = 0, to = 0;
  MemdescType type{}; ///< of the result
  std::vector<std::int64_t> numbers;
};

std::optional<std::vector<std::int64_t>> number_list(std::string_view text) {
  if (const auto list = integers(text)) return list;
  return integers(fmt::format("[{}]", text));
}

InstructionPtr make_look(Compiler& compiler, const Operation& op) {
  const auto source = memdesc_type(*op.operands[0]), result = memdesc_type(op.result());
  if (!source || !result) return not_memory(compiler, op);
  auto made = std::make_unique<Look>();
  made->from = compiler.slot(*op.operands[0]);
  made->to = compiler.slot(op.result());
  made->type = *result;
  const std::size_t rank = source->shape.size();
  if (op.is(Op::ttg_memdesc_subslice) || op.is(Op::ttg_memdesc_trans)) {
    const bool slice = op.is(Op::ttg_memdesc_subslice);
    made->kind = slice ? Look::Kind::slice : Look::Kind::transposed;
    const auto list = number_list(op.text_of(slice ? "offsets" : "order"));
    if (!list || list->size() != rank || result->shape.size() != rank)
      return not_memory(compiler, op);
    made->numbers = *list;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t x = made->numbers[d];
      if (x < 0 ||
          (slice ? x + result->shape[d] > source->shape[d] : x >= static_cast<std::int64_t>(rank)))
        return compiler.unsupported(op, "its offsets or its order are not inside its operand");
    }
  } else {
    made->kind = Look::Kind::reshaped;
  }
  return made;
}

class CopyFromGlobal final : public Instruction {
public:
  Status run(Program& program) const override {
    const Addresses at{&program.at(pointers.slot), masked ? &program.at(mask) : nullptr,
                       pointers.elements, static_cast<std::size_t>(pointers.shape.back())};
    Lanes values;
    HEBE_CHECK(
        load_lanes(program, *this, at, format, otherwise ? &program.at(other) : nullptr, values));
    write_view(program, program.at(to), format, values);
    program.set(token, Lanes());
    return {};
  }
  Operand pointers{};
  MemoryFormat format{};
  Slot to = 0, mask = 0, other = 0, token = 0;
  bool masked = false, otherwise = false;
};

InstructionPtr make_copy_from_global(Compiler& compiler, const Operation& op) {
  const auto pointers = compiler.operand(*op.segment(0)[0], op);
  const auto type = memdesc_type(*op.segment(1)[0]);
  if (!pointers) return nullptr;
  const auto format =
      pointers->pointer ? memory_format(*op.operands[0]->type->leaf().element) : std::nullopt;
  if (!type || !format || format->scalar != type->format.scalar ||
      type->elements() != pointers->elements || pointers->shape.empty())
    return not_memory(compiler, op);
  auto made = std::make_unique<CopyFromGlobal>();
  made->pointers = *pointers;
  made->format = *format;
  made->to = compiler.slot(*op.segment(1)[0]);
  made->token = compiler.slot(op.result());
  if (const auto mask = op.segment(2); !mask.empty())
    made->masked = true, made->mask = compiler.slot(*mask[0]);
  if (const auto other = op.segment(3); !other.empty())
    made->otherwise = true, made->other = compiler.slot(*other[0]);
  return made;
}

class Scratch final : public Instruction {
public:
  Status run(Program& program) const override {
    program.set(to, Lanes::of(program.take_scratch(bytes, alignment)));
    return {};
  }
  Slot to = 0;
  std::size_t bytes = 0, alignment = 1;
};

InstructionPtr make_scratch(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Scratch>();
  const auto bytes = integer(op.text_of("nbytes")), alignment = integer(op.text_of("alignment"));
  if (!bytes || *bytes < 0 || *bytes > (1 << 30))
    return compiler.unsupported(op, "its size is not given");
  made->bytes = static_cast<std::size_t>(*bytes);
  made->alignment =
      static_cast<std::size_t>(std::clamp<std::int64_t>(alignment.value_or(1), 1, 4096));
  made->to = compiler.slot(op.result());
  return made;
}

} // namespace

void add_shared_memory(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  add(Op::ttg_local_alloc, &make_allocation);
  add(Op::ttg_local_load, &make_read);
  add(Op::ttg_local_store, &make_write);
  add(Op::ttg_memdesc_index, &make_index);
  for (const Op op : {Op::ttg_memdesc_subslice, Op::ttg_memdesc_trans, Op::ttg_memdesc_reshape,
                      Op::ttg_memdesc_reinterpret})
    add(op, &make_look);
  add(Op::ttg_async_copy_global_to_local, &make_copy_from_global);
  add(Op::ttg_global_scratch_alloc, &make_scratch);
}

} // namespace hebe::ttgir
