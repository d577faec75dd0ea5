// Tensor descriptors in registers: making them, and loads, stores, reductions, gathers and scatters
// through them. In: operations; out: instructions. Invariant: outside a descriptor's sizes nothing
// is read or written; the missing elements are 0, or NaN where the descriptor says so.
#include "ttgir/run_descriptors.hpp"
#include "ttgir/run_atomics.hpp"
#include "ttgir/run_blocks.hpp"
#include "ttgir/run_lanewise.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {

std::optional<DescriptorUse> descriptor_use(Compiler& compiler, const Operation& op,
                                            const Value& descriptor,
                                            std::span<Value* const> coordinates) {
  DescriptorUse use;
  const Type* type = descriptor.type;
  const auto format =
      type && type->is(Type::Kind::tensordesc) && type->element && type->element->shaped()
          ? memory_format(type->element->leaf())
          : std::nullopt;
  if (!format || type->element->shape.size() > Descriptor::kMaxRank) {
    compiler.unsupported(
        op, fmt::format("no access through {}", type ? type->text : "a value of unknown type"));
    return std::nullopt;
  }
  use.format = *format;
  use.block.assign(type->element->shape.begin(), type->element->shape.end());
  use.descriptor = compiler.slot(descriptor);
  for (const Value* value : coordinates) use.coordinates.push_back(compiler.slot(*value));
  if (use.coordinates.size() != use.block.size()) {
    compiler.unsupported(op, "its coordinates are not as many as the block has dimensions");
    return std::nullopt;
  }
  return use;
}

Rectangle DescriptorUse::rectangle(Program& program) const {
  std::array<std::int64_t, Descriptor::kMaxRank> at{};
  for (std::size_t d = 0; d < coordinates.size(); ++d)
    at[d] = program.at(coordinates[d]).at<std::int32_t>(0);
  return rectangle_of(*program.at(descriptor).data<Descriptor>(), at, block);
}

Status DescriptorUse::load(Program& program, const Instruction& instruction, Lanes& out) const {
  const Lanes padding = padding_of(*program.at(descriptor).data<Descriptor>(), format.scalar);
  return load_rectangle(program, instruction, rectangle(program), format, padding, out);
}
Status DescriptorUse::store(Program& program, const Instruction& instruction,
                            const Lanes& values) const {
  return store_rectangle(program, instruction, rectangle(program), format, values);
}
Status DescriptorUse::reduce(Program& program, const Instruction& instruction, AtomicKind kind,
                             const Lanes& values) const {
  const Rectangle at = rectangle(program);
  if (program.traffic) program.traffic->begin(instruction.number, 0);
  return each_inside(at, format.bytes, [&](std::uint64_t address, std::size_t i) -> Status {
    std::byte* place = place_of(program, address, format, true);
    if (!place)
      return bad_access(program, instruction, static_cast<std::int64_t>(i), address, format,
                        "updates", true);
    if (program.traffic) program.traffic->range(Traffic::Way::atomic, address, format.bytes, 1);
    update_atomically(kind, format, place,
                      values.bytes() + (values.uniform() ? 0 : i * format.lane_size), nullptr);
    return {};
  });
}

std::optional<RowsUse> rows_use(Compiler& compiler, const Operation& op, const Value& descriptor,
                                const Value& rows, const Value& column, std::size_t columns) {
  RowsUse use;
  const Type* type = descriptor.type;
  const auto format = type && type->is(Type::Kind::tensordesc) && type->element
                          ? memory_format(type->element->leaf())
                          : std::nullopt;
  const auto indices = compiler.operand(rows, op);
  if (!indices) return std::nullopt;
  if (!format || indices->lane != Lane::i32) {
    compiler.unsupported(op, "its rows are not chosen by i32 from a descriptor of numbers");
    return std::nullopt;
  }
  use.format = *format;
  use.descriptor = compiler.slot(descriptor);
  use.rows = *indices;
  use.column = compiler.slot(column);
  use.columns = columns;
  return use;
}

Rectangle RowsUse::row(Program& program, std::size_t i) const {
  const std::int64_t at[] = {program.at(rows.slot).at<std::int32_t>(i),
                             program.at(column).at<std::int32_t>(0)};
  const std::int64_t block[] = {1, static_cast<std::int64_t>(columns)};
  return rectangle_of(*program.at(descriptor).data<Descriptor>(), at, block);
}
Status RowsUse::gather(Program& program, const Instruction& instruction, Lanes& out) const {
  const Lanes padding = padding_of(*program.at(descriptor).data<Descriptor>(), format.scalar);
  out = program.dense(rows.elements * columns * format.lane_size);
  for (std::size_t i = 0; i < rows.elements; ++i) {
    Lanes one;
    HEBE_CHECK(load_rectangle(program, instruction, row(program, i), format, padding, one));
    std::memcpy(out.bytes() + i * columns * format.lane_size, one.bytes(),
                columns * format.lane_size);
  }
  return {};
}
Status RowsUse::scatter(Program& program, const Instruction& instruction,
                        const Lanes& values) const {
  for (std::size_t i = 0; i < rows.elements; ++i)
    HEBE_CHECK(store_rectangle(program, instruction, row(program, i), format,
                               values.from(i * columns * format.lane_size)));
  return {};
}

namespace {

class MakeDescriptor final : public Instruction {
public:
  Status run(Program& program) const override {
    Descriptor made;
    made.base = program.at(base).at<std::uint64_t>(0);
    made.rank = static_cast<std::uint32_t>(shape.size());
    made.nan_padding = nan;
    const auto read = [&](const Operand& o) -> std::int64_t {
      const Lanes& lanes = program.at(o.slot);
      return o.lane == Lane::i64 ? lanes.at<std::int64_t>(0) : lanes.at<std::int32_t>(0);
    };
    for (std::size_t d = 0; d < shape.size(); ++d) {
      made.shape[d] = read(shape[d]);
      made.strides[d] = read(strides[d]);
    }
    Lanes lanes = program.dense(sizeof made);
    std::memcpy(lanes.bytes(), &made, sizeof made);
    program.set(to, std::move(lanes));
    return {};
  }
  Slot base = 0, to = 0;
  std::vector<Operand> shape, strides;
  bool nan = false;
};

InstructionPtr make_descriptor(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<MakeDescriptor>();
  made->base = compiler.slot(*op.operands[0]);
  made->to = compiler.slot(op.result());
  for (const auto& [number, list] :
       {std::pair{std::size_t{1}, &made->shape}, {std::size_t{2}, &made->strides}})
    for (const Value* value : op.segment(number)) {
      const auto operand = compiler.operand(*value, op);
      if (!operand) return nullptr;
      list->push_back(*operand);
    }
  if (made->shape.size() != made->strides.size() || made->shape.empty() ||
      made->shape.size() > Descriptor::kMaxRank)
    return compiler.unsupported(op, "its sizes and strides are not as many as it has dimensions");
  const auto padding = op.text_of("padding");
  made->nan = integer(padding).value_or(1) == 2 || padding == "nan";
  return made;
}

class Load final : public Instruction {
public:
  Status run(Program& program) const override {
    Lanes out;
    HEBE_CHECK(use.load(program, *this, out));
    program.set(to, std::move(out));
    return {};
  }
  DescriptorUse use;
  Slot to = 0;
};
class Store final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes values = program.at(value);
    return kind ? use.reduce(program, *this, *kind, values) : use.store(program, *this, values);
  }
  DescriptorUse use;
  Slot value = 0;
  std::optional<AtomicKind> kind;
};

InstructionPtr make_load(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Load>();
  auto use = descriptor_use(compiler, op, *op.operands[0], op.segment(1));
  if (!use) return nullptr;
  made->use = std::move(*use);
  made->to = compiler.slot(op.result());
  return made;
}

InstructionPtr make_store(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Store>();
  auto use = descriptor_use(compiler, op, *op.operands[0], op.segment(1));
  if (!use || op.segment(2).empty()) return nullptr;
  made->use = std::move(*use);
  made->value = compiler.slot(*op.segment(2)[0]);
  if (op.is(Op::tt_descriptor_reduce)) {
    made->kind = atomic_kind(op.text_of("kind"));
    if (!made->kind || !can_update(*made->kind, made->use.format.scalar))
      return compiler.unsupported(op, fmt::format("no reduction '{}' of {}", op.text_of("kind"),
                                                  spelling(made->use.format.scalar)));
  }
  return made;
}

class Rows final : public Instruction {
public:
  Status run(Program& program) const override {
    if (scatter) return use.scatter(program, *this, Lanes(program.at(value)));
    Lanes out;
    HEBE_CHECK(use.gather(program, *this, out));
    program.set(value, std::move(out));
    return {};
  }
  RowsUse use;
  Slot value = 0;
  bool scatter = false;
};

InstructionPtr make_rows(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Rows>();
  made->scatter = op.is(Op::tt_descriptor_scatter);
  const Value& tensor = made->scatter ? *op.operands[3] : op.result();
  if (!tensor.type || tensor.type->shape.size() != 2)
    return compiler.unsupported(op, "its tensor has not two dimensions");
  auto use = rows_use(compiler, op, *op.operands[0], *op.operands[1], *op.operands[2],
                      static_cast<std::size_t>(tensor.type->shape[1]));
  if (!use) return nullptr;
  made->use = *use;
  made->value = compiler.slot(tensor);
  return made;
}

} // namespace

void add_descriptors(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  add(Op::tt_make_tensor_descriptor, &make_descriptor);
  add(Op::tt_descriptor_load, &make_load);
  add(Op::tt_descriptor_store, &make_store);
  add(Op::tt_descriptor_reduce, &make_store);
  add(Op::tt_descriptor_gather, &make_rows);
  add(Op::tt_descriptor_scatter, &make_rows);
}

} // namespace hebe::ttgir
