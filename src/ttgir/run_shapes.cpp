// Shapes. In: operations that arrange a tensor's elements anew; out: instructions. Invariant: what
// only changes the shape or the layout shares its elements.
#include "ttgir/run_lanewise.hpp"
#include "ttgir/strided_copy.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

/// One element of a tensor as a scalar.
class First final : public Instruction {
public:
  Status run(Program& program) const override {
    Lanes scalar;
    std::memcpy(scalar.bytes(), program.at(from.slot).bytes(), from.size());
    program.set(to, std::move(scalar));
    return {};
  }
  Operand from{};
  Slot to = 0;
};

InstructionPtr make_unsplat(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op);
  if (!from) return nullptr;
  auto made = std::make_unique<First>();
  made->from = *from;
  made->to = compiler.slot(op.result());
  return made;
}

/// broadcast and trans: the source seen with other strides.
class Rearrange final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& in = program.at(from.slot);
    if (in.uniform()) {
      program.set(to.slot, in);
      return {};
    }
    Lanes out = program.dense(to.elements * to.size());
    copy_strided(out.bytes(), in.bytes(), to.size(), to.shape, strides);
    program.set(to.slot, std::move(out));
    return {};
  }
  Operand from{}, to{};
  std::vector<std::int64_t> strides; ///< of the source, by dimension of the result
};

InstructionPtr make_rearrangement(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  auto made = std::make_unique<Rearrange>();
  made->from = *from;
  made->to = *to;
  const auto strides = dense_strides(from->shape);
  if (from->shape.size() != to->shape.size()) return compiler.unsupported(op, "the ranks differ");
  if (op.is(Op::tt_trans)) {
    const auto order = integers(op.text_of("order"));
    if (!order || order->size() != strides.size())
      return compiler.unsupported(op, "its order is not a list of the dimensions");
    for (const auto d : *order) {
      if (d < 0 || static_cast<std::size_t>(d) >= strides.size())
        return compiler.unsupported(op, "its order is not a list of the dimensions");
      made->strides.push_back(strides[static_cast<std::size_t>(d)]);
    }
  } else {
    for (std::size_t d = 0; d < strides.size(); ++d)
      made->strides.push_back(from->shape[d] == 1 && to->shape[d] != 1 ? 0 : strides[d]);
  }
  return made;
}

/// cat: one after the other; join: in turn, element by element.
class Together final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes &a = program.at(first.slot), &b = program.at(second.slot);
    Lanes out = program.dense(to.elements * to.size());
    with_element(to.size(), [&]<class T>() {
      auto* r = out.data<T>();
      const std::size_t half = first.elements, step = alternate ? 2 : 1,
                        offset = alternate ? 1 : half;
      for (std::size_t i = 0; i < half; ++i) r[i * step] = a.at<T>(i);
      for (std::size_t i = 0; i < second.elements; ++i) r[offset + i * step] = b.at<T>(i);
    });
    program.set(to.slot, std::move(out));
    return {};
  }
  Operand first{}, second{}, to{};
  bool alternate = false;
};

InstructionPtr make_together(Compiler& compiler, const Operation& op) {
  const auto a = compiler.operand(*op.operands[0], op), b = compiler.operand(*op.operands[1], op),
             to = compiler.operand(op.result(), op);
  if (!a || !b || !to) return nullptr;
  if (a->elements + b->elements != to->elements || a->size() != to->size())
    return compiler.unsupported(op, "the result is not as large as both operands");
  auto made = std::make_unique<Together>();
  made->first = *a;
  made->second = *b;
  made->to = *to;
  made->alternate = op.is(Op::tt_join);
  return made;
}

class Split final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& in = program.at(from.slot);
    for (std::size_t which = 0; which < 2; ++which) {
      if (in.uniform()) {
        program.set(to[which], in);
        continue;
      }
      Lanes out = program.dense(from.elements / 2 * from.size());
      with_element(from.size(), [&]<class T>() {
        const auto* a = in.data<T>() + which;
        auto* r = out.data<T>();
        for (std::size_t i = 0; i < from.elements / 2; ++i) r[i] = a[i * 2];
      });
      program.set(to[which], std::move(out));
    }
    return {};
  }
  Operand from{};
  std::array<Slot, 2> to{};
};

InstructionPtr make_split(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op);
  if (!from) return nullptr;
  if (from->shape.empty() || from->shape.back() != 2 || op.results.size() != 2)
    return compiler.unsupported(op, "its last dimension is not 2");
  auto made = std::make_unique<Split>();
  made->from = *from;
  made->to = {compiler.slot(op.result(0)), compiler.slot(op.result(1))};
  return made;
}

class Gather final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes &in = program.at(from.slot), &at = program.at(indices.slot);
    Lanes out = program.dense(to.elements * to.size());
    const auto length = from.shape[axis];
    std::size_t inner = 1, bad = to.elements;
    for (std::size_t d = axis + 1; d < from.shape.size(); ++d)
      inner *= static_cast<std::size_t>(from.shape[d]);
    const auto many = static_cast<std::size_t>(indices.shape[axis]);
    const auto index = [&](std::size_t i) -> std::int64_t {
      switch (indices.lane) {
      case Lane::i8:
        return at.at<std::int8_t>(i);
      case Lane::i16:
        return at.at<std::int16_t>(i);
      case Lane::i32:
        return at.at<std::int32_t>(i);
      default:
        return at.at<std::int64_t>(i);
      }
    };
    with_element(to.size(), [&]<class T>() {
      auto* r = out.data<T>();
      for (std::size_t i = 0; i < to.elements && bad == to.elements; ++i) {
        const auto k = index(i);
        if (k < 0 || k >= length) {
          bad = i;
          break;
        }
        const std::size_t outer = i / inner / many;
        r[i] = in.at<T>((outer * static_cast<std::size_t>(length) + static_cast<std::size_t>(k)) *
                            inner +
                        i % inner);
      }
    });
    if (bad != to.elements)
      return refuse(RefusalCode::out_of_bounds,
                    fmt::format("{} takes index {} of {} along axis {}",
                                program.name(*this, static_cast<std::int64_t>(bad)), index(bad),
                                length, axis));
    program.set(to.slot, std::move(out));
    return {};
  }
  Operand from{}, indices{}, to{};
  std::size_t axis = 0;
};

InstructionPtr make_gather(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op),
             indices = compiler.operand(*op.operands[1], op),
             to = compiler.operand(op.result(), op);
  const auto axis = integer(op.text_of("axis"));
  if (!from || !indices || !to) return nullptr;
  if (!axis || *axis < 0 || static_cast<std::size_t>(*axis) >= from->shape.size() ||
      indices->lane == Lane::b1 || is_float(indices->scalar))
    return compiler.unsupported(op, "its axis or its indices are not as they should be");
  auto made = std::make_unique<Gather>();
  made->from = *from;
  made->indices = *indices;
  made->to = *to;
  made->axis = static_cast<std::size_t>(*axis);
  return made;
}

/// Values are taken modulo the number of bins, as Triton's code for GPUs does (it looks at the low
/// bits only).
class Histogram final : public Instruction {
public:
  Status run(Program& program) const override {
    const Lanes& in = program.at(from.slot);
    const Lanes* chosen = masked ? &program.at(mask) : nullptr;
    Lanes out = program.dense(to.elements * sizeof(std::int32_t));
    auto* bins = out.data<std::int32_t>();
    std::fill_n(bins, to.elements, 0);
    with_element(from.size(), [&]<class T>() {
      for (std::size_t i = 0; i < from.elements; ++i)
        if (!chosen || chosen->at<std::uint8_t>(i)) ++bins[in.at<T>(i) % to.elements];
    });
    program.set(to.slot, std::move(out));
    return {};
  }
  Operand from{}, to{};
  Slot mask = 0;
  bool masked = false;
};

InstructionPtr make_histogram(Compiler& compiler, const Operation& op) {
  const auto from = compiler.operand(*op.operands[0], op), to = compiler.operand(op.result(), op);
  if (!from || !to) return nullptr;
  if (to->lane != Lane::i32) return compiler.unsupported(op, "its bins are not i32");
  auto made = std::make_unique<Histogram>();
  made->from = *from;
  made->to = *to;
  if (op.operands.size() > 1) {
    made->masked = true;
    made->mask = compiler.slot(*op.operands[1]);
  }
  made->work = WorkKind::integer;
  made->work_type = work_type_of(*from);
  made->work_elements = from->elements;
  return made;
}

} // namespace

void add_shapes(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  add(Op::tt_unsplat, &make_unsplat);
  for (const Op op : {Op::tt_splat, Op::tt_expand_dims, Op::tt_reshape, Op::ttg_convert_layout})
    add(op, &make_alias);
  for (const Op op : {Op::tt_broadcast, Op::tt_trans}) add(op, &make_rearrangement);
  for (const Op op : {Op::tt_cat, Op::tt_join}) add(op, &make_together);
  add(Op::tt_split, &make_split);
  add(Op::tt_gather, &make_gather);
  add(Op::tt_histogram, &make_histogram);
}

} // namespace hebe::ttgir
