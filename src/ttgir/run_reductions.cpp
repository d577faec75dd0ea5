// Reductions, scans and mapped regions. In: tensors and a region that combines two elements; out:
// instructions that combine many pairs at once. Invariant: the order is fixed: a reduction combines
// element i with element i + n/2 (rounded up), then halves again; a scan goes from one end to the
// other.
#include "ttgir/run_lanewise.hpp"
#include "ttgir/strided_copy.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

/// A region run for many elements: all at once where its operations work by element, else one by
/// one.
struct Combine {
  Blocks blocks;
  std::vector<std::size_t> sizes;   ///< of the results' lanes
  const Lanewise* single = nullptr; ///< the region is this one operation on its two arguments

  [[nodiscard]] Status run(Program& program, std::vector<Lanes>& values, std::size_t count) const {
    if (blocks.size() == 1 && blocks[0]->lanewise) {
      const std::size_t before = std::exchange(program.width, count);
      const Status status = program.run_blocks(blocks, values);
      program.width = before;
      return status;
    }
    std::vector<Lanes> results;
    for (const std::size_t size : sizes) results.push_back(program.dense(count * size));
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Lanes> one(values.size());
      for (std::size_t k = 0; k < values.size(); ++k)
        std::memcpy(one[k].bytes(),
                    values[k].bytes() + (values[k].uniform() ? 0 : i * argument_sizes[k]),
                    argument_sizes[k]);
      HEBE_CHECK(program.run_blocks(blocks, one));
      for (std::size_t k = 0; k < sizes.size(); ++k)
        std::memcpy(results[k].bytes() + i * sizes[k], one[k].bytes(), sizes[k]);
    }
    values = std::move(results);
    return {};
  }
  std::vector<std::size_t> argument_sizes; ///< of the arguments' lanes
};

bool compile_region(Compiler& compiler, const Operation& op, bool pairs, Combine& combine) {
  if (op.regions.empty() || op.regions[0]->blocks.empty()) {
    compiler.unsupported(op, "its region is empty");
    return false;
  }
  const Block& block = op.regions[0]->front();
  for (const Value& argument : block.arguments) {
    const auto lane = argument.type && argument.type->is(Type::Kind::scalar)
                          ? lane_of(argument.type->scalar)
                          : std::nullopt;
    combine.argument_sizes.push_back(lane ? size_of(*lane) : 8);
  }
  // Scalars of a region that branches differ from element to element: such a region runs for one.
  combine.blocks = compiler.blocks(*op.regions[0], op.regions[0]->blocks.size() == 1);
  const Operation* last = nullptr;
  for (const auto& each : combine.blocks)
    if (each->ending.kind == Ending::Kind::yield) last = each->ending.op;
  if (!last) {
    compiler.unsupported(op, "its region does not end");
    return false;
  }
  const Ending& ending = combine.blocks[0]->ending;
  if (pairs && (block.arguments.size() != 2 * op.operands.size() ||
                ending.operands.size() != op.operands.size())) {
    compiler.unsupported(op, "its region does not combine its operands in pairs");
    return false;
  }
  for (const Value* value : last->operands) {
    const auto lane = value->type && value->type->is(Type::Kind::scalar)
                          ? lane_of(value->type->scalar)
                          : std::nullopt;
    combine.sizes.push_back(lane ? size_of(*lane) : 8);
  }
  if (pairs && combine.blocks[0]->steps.size() == 1 && op.operands.size() == 1) {
    const auto* only = dynamic_cast<const Lanewise*>(combine.blocks[0]->steps[0].instruction.get());
    if (only && only->operand_count == 2 &&
        only->operands[0].slot == combine.blocks[0]->arguments[0] &&
        only->operands[1].slot == combine.blocks[0]->arguments[1] &&
        only->result.slot == ending.operands[0] && only->result.size() == only->operands[0].size())
      combine.single = only;
  }
  return true;
}

/// How a tensor's axis lies: `outer` × `length` × `inner`.
struct Axis {
  std::size_t outer = 1, length = 1, inner = 1;
  [[nodiscard]] std::size_t rest() const { return outer * inner; }
  Axis(std::span<const std::int64_t> shape, std::size_t axis) {
    for (std::size_t d = 0; d < shape.size(); ++d)
      (d < axis ? outer : d == axis ? length : inner) *= static_cast<std::size_t>(shape[d]);
  }
  [[nodiscard]] std::vector<std::int64_t> shape() const {
    return {static_cast<std::int64_t>(length), static_cast<std::int64_t>(outer),
            static_cast<std::int64_t>(inner)};
  }
  [[nodiscard]] std::vector<std::int64_t> strides() const {
    const auto i = static_cast<std::int64_t>(inner);
    return {i, static_cast<std::int64_t>(length) * i, 1};
  }
};

/// The axis in front, so that a position along it is a row of all the rest.
Lanes axis_first(Program& program, const Lanes& in, std::size_t size, const Axis& axis) {
  if (in.uniform() || axis.outer == 1) return in;
  Lanes out = program.dense(axis.length * axis.rest() * size);
  if (axis.inner == 1) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(axis.length),
                                  static_cast<std::int64_t>(axis.outer)};
    const std::int64_t strides[] = {1, static_cast<std::int64_t>(axis.length)};
    copy_strided(out.bytes(), in.bytes(), size, shape, strides);
  } else {
    copy_strided(out.bytes(), in.bytes(), size, axis.shape(), axis.strides());
  }
  return out;
}

class Reduce final : public Instruction {
public:
  Status run(Program& program) const override {
    std::vector<Lanes> values;
    for (const Operand& operand : operands)
      values.push_back(axis_first(program, program.at(operand.slot), operand.size(), axis));
    const std::size_t rest = axis.rest();
    for (std::size_t length = axis.length; length > 1;) {
      const std::size_t half = (length + 1) / 2, pairs = length - half;
      if (combine.single && !values[0].uniform()) {
        halve(program, values[0], half * rest, pairs * rest);
      } else {
        HEBE_CHECK(halve_by_region(program, values, half * rest, pairs * rest));
      }
      length = half;
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (scalar && !values[k].uniform()) {
        Lanes one;
        std::memcpy(one.bytes(), values[k].bytes(), operands[k].size());
        values[k] = std::move(one);
      }
      program.set(results[k], std::move(values[k]));
    }
    return {};
  }

  void halve(Program& program, Lanes& value, std::size_t half, std::size_t pairs) const {
    const std::size_t size = operands[0].size();
    const Lanes right = value.from(half * size);
    const bool own =
        value.storage()->users == 2 && value.bytes() == value.storage()->bytes; // it and `right`
    Lanes out = own ? value : program.dense(half * size);
    combine.single->apply({&value, &right}, out.bytes(), pairs);
    if (!own && pairs < half)
      std::memcpy(out.bytes() + pairs * size, value.bytes() + pairs * size, (half - pairs) * size);
    program.executions[combine.single->number] += pairs;
    value = std::move(out);
  }

  Status halve_by_region(Program& program, std::vector<Lanes>& values, std::size_t half,
                         std::size_t pairs) const {
    std::vector<Lanes> both;
    for (const Lanes& value : values) both.push_back(value);
    for (std::size_t k = 0; k < values.size(); ++k)
      both.push_back(values[k].from(half * operands[k].size()));
    HEBE_CHECK(combine.run(program, both, pairs));
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (pairs < half && !(both[k].uniform() && values[k].uniform())) {
        const std::size_t size = operands[k].size();
        Lanes out = program.dense(half * size);
        for (std::size_t i = 0; i < pairs; ++i)
          std::memcpy(out.bytes() + i * size, both[k].bytes() + (both[k].uniform() ? 0 : i * size),
                      size);
        for (std::size_t i = pairs; i < half; ++i)
          std::memcpy(out.bytes() + i * size,
                      values[k].bytes() + (values[k].uniform() ? 0 : i * size), size);
        both[k] = std::move(out);
      }
      values[k] = std::move(both[k]);
    }
    return {};
  }

  Combine combine;
  std::vector<Operand> operands;
  std::vector<Slot> results;
  Axis axis{{}, 0};
  bool scalar = false; ///< the results are
};

class Scan final : public Instruction {
public:
  Status run(Program& program) const override {
    std::vector<Lanes> in, out, before;
    const std::size_t rest = axis.rest();
    for (const Operand& operand : operands) {
      const Lanes& value = program.at(operand.slot);
      in.push_back(value.uniform() ? spread(program, value, operand)
                                   : axis_first(program, value, operand.size(), axis));
      out.push_back(program.dense(axis.length * rest * operand.size()));
    }
    for (std::size_t i = 0; i < axis.length; ++i) {
      const std::size_t row = reverse ? axis.length - 1 - i : i;
      if (i > 0 && combine.single) {
        const std::size_t stride = rest * operands[0].size();
        const std::byte* previous = out[0].bytes() + (reverse ? row + 1 : row - 1) * stride;
        const void* both[] = {previous, in[0].bytes() + row * stride};
        std::byte* to = out[0].bytes() + row * stride;
        combine.single->kernel(both, to, rest);
        if (combine.single->round) combine.single->round(reinterpret_cast<float*>(to), rest);
        program.executions[combine.single->number] += rest;
        continue;
      }
      std::vector<Lanes> values = before;
      for (std::size_t k = 0; k < in.size(); ++k)
        values.push_back(in[k].from(row * rest * operands[k].size()));
      if (i > 0) {
        HEBE_CHECK(combine.run(program, values, rest));
      }
      for (std::size_t k = 0; k < out.size(); ++k) {
        const std::size_t size = operands[k].size();
        std::byte* to = out[k].bytes() + row * rest * size;
        if (values[k].uniform())
          for (std::size_t j = 0; j < rest; ++j)
            std::memcpy(to + j * size, values[k].bytes(), size);
        else
          std::memcpy(to, values[k].bytes(), rest * size);
      }
      before = std::move(values);
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (axis.outer != 1) {
        Lanes back = program.dense(axis.length * rest * operands[k].size());
        scatter_strided(back.bytes(), out[k].bytes(), operands[k].size(), axis.shape(),
                        axis.strides());
        out[k] = std::move(back);
      }
      program.set(results[k], std::move(out[k]));
    }
    return {};
  }
  static Lanes spread(Program& program, const Lanes& value, const Operand& operand) {
    Lanes out = program.dense(operand.elements * operand.size());
    for (std::size_t i = 0; i < operand.elements; ++i)
      std::memcpy(out.bytes() + i * operand.size(), value.bytes(), operand.size());
    return out;
  }

  Combine combine;
  std::vector<Operand> operands;
  std::vector<Slot> results;
  Axis axis{{}, 0};
  bool reverse = false;
};

class Map final : public Instruction {
public:
  Status run(Program& program) const override {
    std::vector<Lanes> values;
    for (const Operand& operand : operands) values.push_back(program.at(operand.slot));
    HEBE_CHECK(combine.run(program, values, operands.front().elements));
    program.assign(results, values);
    return {};
  }
  Combine combine;
  std::vector<Operand> operands;
  std::vector<Slot> results;
};

template <class Made> bool take_operands(Compiler& compiler, const Operation& op, Made& made) {
  for (const Value* value : op.operands) {
    const auto operand = compiler.operand(*value, op);
    if (!operand) return false;
    made.operands.push_back(*operand);
  }
  for (const Value& value : op.results) made.results.push_back(compiler.slot(value));
  if (made.operands.empty()) {
    compiler.unsupported(op, "it has no operands");
    return false;
  }
  return true;
}

template <class Made> InstructionPtr make_along_axis(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Made>();
  const auto axis = integer(op.text_of("axis"));
  if (!take_operands(compiler, op, *made)) return nullptr;
  const auto shape = made->operands[0].shape;
  if (!axis || *axis < 0 || static_cast<std::size_t>(*axis) >= shape.size())
    return compiler.unsupported(op, "its axis is not one of its operand's");
  made->axis = Axis(shape, static_cast<std::size_t>(*axis));
  if (!compile_region(compiler, op, true, made->combine)) return nullptr;
  if constexpr (std::is_same_v<Made, Reduce>)
    made->scalar = shape.size() == 1;
  else
    made->reverse = boolean(op.text_of("reverse")).value_or(false);
  return made;
}

InstructionPtr make_map(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Map>();
  if (integer(op.text_of("pack")).value_or(1) != 1)
    return compiler.unsupported(op, "it packs several elements");
  if (!take_operands(compiler, op, *made) || !compile_region(compiler, op, false, made->combine))
    return nullptr;
  return made;
}

} // namespace

void add_reductions(Makers& makers) {
  makers[static_cast<std::size_t>(Op::tt_reduce)] = &make_along_axis<Reduce>;
  makers[static_cast<std::size_t>(Op::tt_scan)] = &make_along_axis<Scan>;
  makers[static_cast<std::size_t>(Op::tt_map_elementwise)] = &make_map;
}

} // namespace hebe::ttgir
