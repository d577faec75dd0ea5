// Bulk copies (TMA), their descriptors in memory, and Blackwell's tensor memory. In: ttng
// operations; out: instructions. Invariant: a copy is done when it is issued; its barrier is not
// waited for.
#include "ttgir/memory_view.hpp"
#include "ttgir/run_descriptors.hpp"
#include "ttgir/run_lanewise.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

class BulkLoad final : public Instruction {
public:
  Status run(Program& program) const override {
    if (program.at(predicate).at<std::uint8_t>(0) == 0) return {};
    Lanes values;
    HEBE_CHECK(rows ? rows->gather(program, *this, values) : use.load(program, *this, values));
    write_view(program, program.at(to), format, values);
    return {};
  }
  DescriptorUse use;
  std::optional<RowsUse> rows;
  MemoryFormat format{};
  Slot to = 0, predicate = 0;
};

InstructionPtr make_bulk_load(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<BulkLoad>();
  const bool gather = op.is(Op::ttng_async_tma_gather);
  const Value& into = *op.segment(gather ? 3 : 2)[0];
  const auto type = memdesc_type(into);
  if (!type) return compiler.unsupported(op, "its memory is not of numbers");
  if (gather) {
    made->rows = rows_use(compiler, op, *op.segment(0)[0], *op.segment(1)[0], *op.segment(2)[0],
                          static_cast<std::size_t>(type->shape.back()));
    if (!made->rows) return nullptr;
    made->format = made->rows->format;
  } else {
    auto use = descriptor_use(compiler, op, *op.segment(0)[0], op.segment(1));
    if (!use) return nullptr;
    made->use = std::move(*use);
    made->format = made->use.format;
    std::size_t block = 1;
    for (const auto d : made->use.block) block *= static_cast<std::size_t>(d);
    if (block != type->elements())
      return compiler.unsupported(op, "its memory is not as large as the block");
  }
  if (made->format.bytes != type->format.bytes)
    return compiler.unsupported(op, "its memory is of another type");
  made->to = compiler.slot(into);
  made->predicate = compiler.slot(*op.segment(gather ? 5 : 4)[0]);
  return made;
}

class BulkStore final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes values = read_view(program, program.at(from), format);
    if (rows) return rows->scatter(program, *this, values);
    return kind ? use.reduce(program, *this, *kind, values) : use.store(program, *this, values);
  }
  DescriptorUse use;
  std::optional<RowsUse> rows;
  std::optional<AtomicKind> kind;
  MemoryFormat format{};
  Slot from = 0;
};

InstructionPtr make_bulk_store(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<BulkStore>();
  const bool scatter = op.is(Op::ttng_async_tma_scatter);
  const Value& source = *op.segment(scatter ? 3 : 2)[0];
  const auto type = memdesc_type(source);
  if (!type) return compiler.unsupported(op, "its memory is not of numbers");
  if (scatter) {
    made->rows = rows_use(compiler, op, *op.segment(0)[0], *op.segment(1)[0], *op.segment(2)[0],
                          static_cast<std::size_t>(type->shape.back()));
    if (!made->rows) return nullptr;
    made->format = made->rows->format;
  } else {
    auto use = descriptor_use(compiler, op, *op.segment(0)[0], op.segment(1));
    if (!use) return nullptr;
    made->use = std::move(*use);
    made->format = made->use.format;
  }
  if (op.is(Op::ttng_async_tma_reduce)) {
    made->kind = atomic_kind(op.text_of("kind"));
    if (!made->kind || !can_update(*made->kind, made->format.scalar))
      return compiler.unsupported(op, fmt::format("no reduction '{}' of {}", op.text_of("kind"),
                                                  spelling(made->format.scalar)));
  }
  if (made->format.bytes != type->format.bytes)
    return compiler.unsupported(op, "its memory is of another type");
  made->from = compiler.slot(source);
  return made;
}

/// A descriptor written to memory: kept beside it, by its address. Dimensions come innermost first,
/// strides in bytes and without the innermost.
class CreateTensormap final : public Instruction {
public:
  Status run(Program& program) const override {
    Descriptor made;
    made.base = program.at(base).at<std::uint64_t>(0);
    made.rank = static_cast<std::uint32_t>(sizes.size());
    made.nan_padding = nan;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      made.shape[sizes.size() - 1 - d] = integer_at(program, sizes[d]);
      made.strides[sizes.size() - 1 - d] = d == 0 ? 0 : integer_at(program, strides[d - 1]);
    }
    program.tensormaps[program.at(at).at<std::uint64_t>(0)] = made;
    return {};
  }
  static std::int64_t integer_at(Program& program, const Operand& o) {
    const Lanes& lanes = program.at(o.slot);
    return o.lane == Lane::i64 ? lanes.at<std::int64_t>(0) : lanes.at<std::int32_t>(0);
  }
  Slot at = 0, base = 0;
  std::vector<Operand> sizes, strides;
  bool nan = false;
};

InstructionPtr make_tensormap(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<CreateTensormap>();
  made->at = compiler.slot(*op.segment(0)[0]);
  made->base = compiler.slot(*op.segment(1)[0]);
  for (const auto& [segment, list] :
       {std::pair{std::size_t{3}, &made->sizes}, {std::size_t{4}, &made->strides}})
    for (const Value* value : op.segment(segment)) {
      const auto operand = compiler.operand(*value, op);
      if (!operand) return nullptr;
      list->push_back(*operand);
    }
  if (made->sizes.empty() || made->sizes.size() > Descriptor::kMaxRank ||
      made->strides.size() + 1 != made->sizes.size())
    return compiler.unsupported(op, "its sizes and strides are not as many as it has dimensions");
  made->nan = integer(op.text_of("fill_mode")).value_or(0) == 1;
  return made;
}

class TakeTensormap final : public Instruction {
public:
  Status run(Program& program) const override {
    const auto address = program.at(from).at<std::uint64_t>(0);
    const auto found = program.tensormaps.find(address);
    if (found == program.tensormaps.end())
      return refuse(RefusalCode::kernel_failed,
                    fmt::format("{} finds no descriptor at {:#x}", program.name(*this), address));
    Descriptor descriptor = found->second;
    for (std::uint32_t d = 0; d + 1 < descriptor.rank; ++d) descriptor.strides[d] /= bytes;
    descriptor.strides[descriptor.rank - 1] = 1;
    Lanes lanes = program.dense(sizeof descriptor);
    std::memcpy(lanes.bytes(), &descriptor, sizeof descriptor);
    program.set(to, std::move(lanes));
    return {};
  }
  Slot from = 0, to = 0;
  std::int64_t bytes = 1;
};

InstructionPtr make_take_tensormap(Compiler& compiler, const Operation& op) {
  const Type* type = op.result().type;
  const auto format = type && type->is(Type::Kind::tensordesc) && type->element
                          ? memory_format(type->element->leaf())
                          : std::nullopt;
  if (!format) return compiler.unsupported(op, "its result is not a descriptor of numbers");
  auto made = std::make_unique<TakeTensormap>();
  made->from = compiler.slot(*op.operands[0]);
  made->to = compiler.slot(op.result());
  made->bytes = static_cast<std::int64_t>(format->bytes);
  return made;
}

/// tmem_alloc, tmem_load, tmem_store, tmem_copy: whole views.
class TensorMemory final : public Instruction {
public:
  enum class Kind : std::uint8_t { allocate, load, store, copy } kind = Kind::allocate;
  Status run(Program& program) const override {
    program.set(token, Lanes());
    if (predicated && program.at(predicate).at<std::uint8_t>(0) == 0) return {};
    switch (kind) {
    case Kind::allocate: {
      Lanes made = allocate_view(program, type);
      if (valued) write_view(program, made, type.format, program.at(value));
      program.set(memory, std::move(made));
      break;
    }
    case Kind::load:
      program.set(value, read_view(program, program.at(memory), type.format));
      break;
    case Kind::store:
      write_view(program, program.at(memory), type.format, program.at(value));
      break;
    case Kind::copy:
      write_view(program, program.at(memory), type.format,
                 read_view(program, program.at(value), type.format));
      break;
    }
    return {};
  }
  MemdescType type{};
  Slot memory = 0, value = 0, predicate = 0, token = 0;
  bool valued = false, predicated = false;
};

InstructionPtr make_tensor_memory(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<TensorMemory>();
  using Kind = TensorMemory::Kind;
  made->kind = op.is(Op::ttng_tmem_alloc)  ? Kind::allocate
               : op.is(Op::ttng_tmem_load) ? Kind::load
               : op.is(Op::ttng_tmem_copy) ? Kind::copy
                                           : Kind::store;
  const Value& memory = made->kind == Kind::allocate ? op.result()
                        : made->kind == Kind::load   ? *op.operands[0]
                                                     : *op.operands[1];
  const auto type = memdesc_type(memory);
  if (!type) return compiler.unsupported(op, "its memory is not of numbers");
  made->type = *type;
  made->memory = compiler.slot(memory);
  made->token = compiler.slot_for_nothing();
  if (made->kind == Kind::load) {
    made->value = compiler.slot(op.result());
  } else if (!op.operands.empty()) {
    made->valued = true;
    made->value = compiler.slot(*op.operands[0]);
  }
  if (made->kind == Kind::copy) {
    const auto source = memdesc_type(*op.operands[0]);
    if (!source || source->elements() != type->elements() ||
        source->format.scalar != type->format.scalar)
      return compiler.unsupported(op, "its memories differ in size or type");
  }
  if (made->kind == Kind::store) {
    made->predicated = true;
    made->predicate = compiler.slot(*op.operands.back());
  }
  for (const Value& value : op.results)
    if (value.type && value.type->is(Type::Kind::token)) made->token = compiler.slot(value);
  return made;
}

class Columns final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& source = program.at(from);
    MemoryView view = view_of(source);
    const std::uint32_t last = view.rank - 1;
    view.offset += first * view.strides[last] * bytes;
    view.shape[last] = count;
    program.set(to, derive_view(program, source, view));
    return {};
  }
  Slot from = 0, to = 0;
  std::int64_t first = 0, count = 0, bytes = 0;
};

InstructionPtr make_columns(Compiler& compiler, const Operation& op) {
  const auto source = memdesc_type(*op.operands[0]), result = memdesc_type(op.result());
  const auto first = integer(op.text_of("N"));
  if (!source || !result || !first || *first < 0 || source->shape.size() != result->shape.size() ||
      *first + result->shape.back() > source->shape.back())
    return compiler.unsupported(op, "its columns are not inside its operand");
  auto made = std::make_unique<Columns>();
  made->from = compiler.slot(*op.operands[0]);
  made->to = compiler.slot(op.result());
  made->first = *first;
  made->count = result->shape.back();
  made->bytes = static_cast<std::int64_t>(source->format.bytes);
  return made;
}

} // namespace

void add_tensor_memory(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  add(Op::ttng_async_tma_copy_global_to_local, &make_bulk_load);
  add(Op::ttng_async_tma_gather, &make_bulk_load);
  add(Op::ttng_async_tma_copy_local_to_global, &make_bulk_store);
  add(Op::ttng_async_tma_reduce, &make_bulk_store);
  add(Op::ttng_async_tma_scatter, &make_bulk_store);
  add(Op::ttng_tensormap_create, &make_tensormap);
  add(Op::ttng_reinterpret_tensor_descriptor, &make_take_tensormap);
  for (const Op op :
       {Op::ttng_tmem_alloc, Op::ttng_tmem_load, Op::ttng_tmem_store, Op::ttng_tmem_copy})
    add(op, &make_tensor_memory);
  add(Op::ttng_tmem_subslice, &make_columns);
}

} // namespace hebe::ttgir
