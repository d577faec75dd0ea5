#include "ttgir/run_memory.hpp"

#include "ttgir/run_lanewise.hpp"
#include "ttgir/strided_copy.hpp"
#include "ttgir/vector_clone.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

constexpr std::size_t kChunk = 256; // elements looked at together

struct Contiguous {
  HEBE_LANES bool run(const std::uint64_t* addresses, std::size_t count, std::uint64_t step) {
    std::uint64_t difference = 0, expected = addresses[0];
    for (std::size_t i = 0; i < count; ++i) difference |= addresses[i] ^ (expected + i * step);
    return difference == 0;
  }
};

enum class Active : std::uint8_t { all, none, some };

Active active(const std::uint8_t* mask, std::size_t count) {
  std::uint8_t any = 0, every = 1;
  for (std::size_t i = 0; i < count; ++i) any |= mask[i], every &= mask[i];
  return every ? Active::all : any ? Active::some : Active::none;
}

/// Calls `run(first element, count, address)` for elements side by side in memory, `apart(first
/// element, count, mask)` for a chunk whose addresses are not, `off(first element, count)` for
/// masked off ones. Each returns a Status.
template <class Run, class Apart, class Off>
Status each_stretch(const Addresses& at, std::size_t step, Run&& run, Apart&& apart, Off&& off) {
  static const auto contiguous = fitting<Contiguous>();
  if (at.mask && at.mask->uniform() && at.mask->at<std::uint8_t>(0) == 0)
    return off(std::size_t{0}, at.count);
  const std::uint8_t* mask =
      at.mask && !at.mask->uniform() ? at.mask->data<std::uint8_t>() : nullptr;
  const auto* addresses = at.pointers->data<std::uint64_t>();
  const std::size_t chunk = at.row >= 8 && at.row < kChunk ? at.row : kChunk;
  for (std::size_t begin = 0; begin < at.count; begin += chunk) {
    const std::size_t count = std::min(chunk, at.count - begin);
    const Active state = mask ? active(mask + begin, count) : Active::all;
    if (state == Active::none) {
      HEBE_CHECK(off(begin, count));
      continue;
    }
    const bool side_by_side = !at.pointers->uniform() && contiguous(addresses + begin, count, step);
    if (!side_by_side || state == Active::all) {
      HEBE_CHECK(side_by_side ? run(begin, count, addresses[begin]) : apart(begin, count, mask));
    } else {
      for (std::size_t i = 0; i < count;) {
        std::size_t end = i + 1;
        while (end < count && mask[begin + end] == mask[begin + i]) ++end;
        HEBE_CHECK(mask[begin + i] ? run(begin + i, end - i, addresses[begin + i])
                                   : off(begin + i, end - i));
        i = end;
      }
    }
  }
  return {};
}

void fill(std::byte* out, std::size_t lane_size, std::size_t first, std::size_t count,
          const Lanes& from) {
  if (!from.uniform()) {
    std::memcpy(out + first * lane_size, from.bytes() + first * lane_size, count * lane_size);
    return;
  }
  with_element(lane_size, [&]<class T>() {
    std::fill_n(reinterpret_cast<T*>(out) + first, count, from.at<T>(0));
  });
}

} // namespace

std::optional<MemoryFormat> memory_format(const Type& element) {
  if (element.is(Type::Kind::pointer))
    return MemoryFormat{Scalar::i64, 8, 8, decoder(Scalar::i64), encoder(Scalar::i64)};
  const auto lane = element.is(Type::Kind::scalar) ? lane_of(element.scalar) : std::nullopt;
  if (!lane) return std::nullopt;
  return MemoryFormat{element.scalar, element.leaf_bytes(), size_of(*lane), decoder(element.scalar),
                      encoder(element.scalar)};
}

std::byte* place_of(Program& program, std::uint64_t address, const MemoryFormat& format,
                    bool write) {
  if (address % format.bytes != 0) return nullptr;
  std::byte* place = program.find(address, format.bytes);
  if (!place ||
      (write && buffer_of(address) != kScratchBuffer && !program.memory.writable(address)))
    return nullptr;
  return place;
}

Status bad_access(const Program& program, const Instruction& instruction, std::int64_t element,
                  std::uint64_t address, const MemoryFormat& format, std::string_view verb,
                  bool write) {
  const auto what = fmt::format("{} {}", program.name(instruction, element),
                                program.memory.describe(verb, address, format.bytes));
  if (const_cast<Program&>(program).find(address, format.bytes) != nullptr) {
    if (address % format.bytes != 0)
      return refuse(RefusalCode::out_of_bounds, what + ", which is not aligned",
                    "a GPU stops at a misaligned access; check the offset's unit");
    if (write)
      return refuse(RefusalCode::wrong_output, what + " and is an input",
                    "name it as an output if it is one");
  }
  return refuse(RefusalCode::out_of_bounds, what,
                "check the grid, the mask and the arguments' sizes");
}

Status load_range(Program& program, const Instruction& instruction, std::uint64_t address,
                  const MemoryFormat& format, std::size_t count, std::int64_t element,
                  std::byte* out) {
  const std::byte* place =
      address % format.bytes == 0 ? program.find(address, count * format.bytes) : nullptr;
  if (!place) [[unlikely]] {
    for (std::size_t i = 0; i < count; ++i, address += format.bytes)
      if (!place_of(program, address, format, false))
        return bad_access(program, instruction, element + static_cast<std::int64_t>(i), address,
                          format, "reads", false);
    return refuse(RefusalCode::internal, "a range that is out of bounds has no such element");
  }
  format.decode(place, out, count);
  if (program.traffic)
    program.traffic->range(Traffic::Way::load, address, count * format.bytes, count);
  return {};
}

Status store_range(Program& program, const Instruction& instruction, std::uint64_t address,
                   const MemoryFormat& format, std::size_t count, std::int64_t element,
                   const std::byte* in) {
  std::byte* place = place_of(program, address, format, true)
                         ? program.find(address, count * format.bytes)
                         : nullptr;
  if (!place) [[unlikely]] {
    for (std::size_t i = 0; i < count; ++i, address += format.bytes)
      if (!place_of(program, address, format, true))
        return bad_access(program, instruction, element + static_cast<std::int64_t>(i), address,
                          format, "writes", true);
    return refuse(RefusalCode::internal, "a range that is out of bounds has no such element");
  }
  format.encode(in, place, count);
  if (program.traffic)
    program.traffic->range(Traffic::Way::store, address, count * format.bytes, count);
  return {};
}

Status load_lanes(Program& program, const Instruction& instruction, const Addresses& at,
                  const MemoryFormat& format, const Lanes* other, Lanes& out) {
  Traffic* traffic = program.traffic;
  if (traffic) traffic->begin(instruction.number, at.count);
  const Lanes nothing = program.options.poison_undefined ? undefined_lane(format.scalar) : Lanes();
  const Lanes& instead = other ? *other : nothing;
  const bool one = at.pointers->uniform() && (!at.mask || at.mask->uniform());
  if (one) {
    if (at.mask && at.mask->at<std::uint8_t>(0) == 0) {
      out = instead;
      return {};
    }
    out = Lanes();
    const auto address = at.pointers->at<std::uint64_t>(0);
    HEBE_CHECK(
        load_range(program, instruction, address, format, 1, at.count == 1 ? -1 : 0, out.bytes()));
    if (traffic)
      for (std::size_t i = 1; i < at.count; ++i)
        traffic->range(Traffic::Way::load, address, format.bytes, 1);
    return {};
  }
  out = program.dense(at.count * format.lane_size);
  std::byte* lanes = out.bytes();
  const auto off = [&](std::size_t first, std::size_t count) -> Status {
    fill(lanes, format.lane_size, first, count, instead);
    return {};
  };
  const auto run = [&](std::size_t first, std::size_t count, std::uint64_t address) {
    return load_range(program, instruction, address, format, count,
                      static_cast<std::int64_t>(first), lanes + first * format.lane_size);
  };
  const auto apart = [&](std::size_t first, std::size_t count, const std::uint8_t* mask) -> Status {
    std::byte raw[kChunk * 8];
    Status status;
    with_element(format.bytes, [&]<class T>() {
      for (std::size_t i = 0; i < count; ++i) {
        T element = 0;
        if (!mask || mask[first + i]) {
          const auto address = at.pointers->at<std::uint64_t>(first + i);
          const std::byte* place = place_of(program, address, format, false);
          if (!place) [[unlikely]] {
            status = bad_access(program, instruction, static_cast<std::int64_t>(first + i), address,
                                format, "reads", false);
            return;
          }
          std::memcpy(&element, place, sizeof(T));
          if (traffic) traffic->range(Traffic::Way::load, address, sizeof(T), 1);
        }
        std::memcpy(raw + i * sizeof(T), &element, sizeof(T));
      }
    });
    if (!status) return status;
    format.decode(raw, lanes + first * format.lane_size, count);
    if (mask)
      for (std::size_t i = 0; i < count; ++i)
        if (!mask[first + i]) fill(lanes, format.lane_size, first + i, 1, instead);
    return {};
  };
  return each_stretch(at, format.bytes, run, apart, off);
}

Status store_lanes(Program& program, const Instruction& instruction, const Addresses& at,
                   const MemoryFormat& format, const Lanes& values) {
  Traffic* traffic = program.traffic;
  if (traffic) traffic->begin(instruction.number, at.count);
  const auto off = [](std::size_t, std::size_t) -> Status { return {}; };
  const auto run = [&](std::size_t first, std::size_t count, std::uint64_t address) -> Status {
    const auto element = at.count == 1 ? -1 : static_cast<std::int64_t>(first);
    if (!values.uniform())
      return store_range(program, instruction, address, format, count, element,
                         values.bytes() + first * format.lane_size);
    std::byte repeated[kChunk * 8];
    fill(repeated, format.lane_size, 0, count, values);
    return store_range(program, instruction, address, format, count, element, repeated);
  };
  const auto apart = [&](std::size_t first, std::size_t count, const std::uint8_t* mask) -> Status {
    std::byte raw[kChunk * 8];
    if (values.uniform()) {
      std::byte repeated[kChunk * 8];
      fill(repeated, format.lane_size, 0, count, values);
      format.encode(repeated, raw, count);
    } else {
      format.encode(values.bytes() + first * format.lane_size, raw, count);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (mask && !mask[first + i]) continue;
      const auto address = at.pointers->at<std::uint64_t>(first + i);
      std::byte* place = place_of(program, address, format, true);
      if (!place) [[unlikely]]
        return bad_access(program, instruction,
                          at.count == 1 ? -1 : static_cast<std::int64_t>(first + i), address,
                          format, "writes", true);
      std::memcpy(place, raw + i * format.bytes, format.bytes);
      if (traffic) traffic->range(Traffic::Way::store, address, format.bytes, 1);
    }
    return {};
  };
  return each_stretch(at, format.bytes, run, apart, off);
}

namespace {

std::size_t row_of(const Operand& pointers) {
  return pointers.shape.empty() ? 1 : static_cast<std::size_t>(pointers.shape.back());
}

class Load final : public Instruction {
public:
  Status run(Program& program) const override {
    const Addresses at{&program.at(pointers.slot), masked ? &program.at(mask) : nullptr,
                       pointers.count(program), row_of(pointers)};
    Lanes out;
    HEBE_CHECK(
        load_lanes(program, *this, at, format, otherwise ? &program.at(other) : nullptr, out));
    program.set(to, std::move(out));
    return {};
  }
  Operand pointers{};
  MemoryFormat format{};
  Slot mask = 0, other = 0, to = 0;
  bool masked = false, otherwise = false;
};

class Store final : public Instruction {
public:
  Status run(Program& program) const override {
    const Addresses at{&program.at(pointers.slot), masked ? &program.at(mask) : nullptr,
                       pointers.count(program), row_of(pointers)};
    return store_lanes(program, *this, at, format, program.at(value));
  }
  Operand pointers{};
  MemoryFormat format{};
  Slot mask = 0, value = 0;
  bool masked = false;
};

bool through_block_pointer(const Operation& op) {
  const Type* type = op.operands[0]->type;
  return type && type->is(Type::Kind::pointer) && type->element && type->element->shaped();
}

InstructionPtr make_load(Compiler& compiler, const Operation& op) {
  if (through_block_pointer(op)) return make_block_load(compiler, op);
  const auto pointers = compiler.operand(*op.operands[0], op);
  if (!pointers) return nullptr;
  const auto format =
      pointers->pointer ? memory_format(*op.operands[0]->type->leaf().element) : std::nullopt;
  if (!format)
    return compiler.unsupported(op, fmt::format("no loads through {}", op.operands[0]->type->text));
  auto made = std::make_unique<Load>();
  made->pointers = *pointers;
  made->format = *format;
  made->to = compiler.slot(op.result());
  if (const auto mask = op.segment(1); !mask.empty())
    made->masked = true, made->mask = compiler.slot(*mask[0]);
  if (const auto other = op.segment(2); !other.empty())
    made->otherwise = true, made->other = compiler.slot(*other[0]);
  return made;
}

InstructionPtr make_store(Compiler& compiler, const Operation& op) {
  if (through_block_pointer(op)) return make_block_store(compiler, op);
  const auto pointers = compiler.operand(*op.operands[0], op);
  if (!pointers) return nullptr;
  const auto format =
      pointers->pointer ? memory_format(*op.operands[0]->type->leaf().element) : std::nullopt;
  if (!format)
    return compiler.unsupported(op,
                                fmt::format("no stores through {}", op.operands[0]->type->text));
  auto made = std::make_unique<Store>();
  made->pointers = *pointers;
  made->format = *format;
  made->value = compiler.slot(*op.operands[1]);
  if (const auto mask = op.segment(2); !mask.empty())
    made->masked = true, made->mask = compiler.slot(*mask[0]);
  return made;
}

/// Addresses: the offset counts elements.
template <class T> struct Offset {
  HEBE_LANES void move(const void* const* in, void* out, std::size_t count, std::int64_t bytes) {
    const auto* address = static_cast<const std::int64_t*>(in[0]);
    const auto* offset = static_cast<const T*>(in[1]);
    auto* r = static_cast<std::uint64_t*>(out);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
      r[i] = static_cast<std::uint64_t>(address[i]) +
             static_cast<std::uint64_t>(static_cast<std::int64_t>(offset[i])) *
                 static_cast<std::uint64_t>(bytes);
  }
};
template <class T, std::int64_t Bytes> struct OffsetBy {
  HEBE_LANES void run(const void* const* in, void* out, std::size_t count) {
    Offset<T>::move(in, out, count, Bytes);
  }
};
template <class T> LaneKernel offset_kernel(std::size_t bytes) {
  switch (bytes) {
  case 1:
    return fitting<OffsetBy<T, 1>>();
  case 2:
    return fitting<OffsetBy<T, 2>>();
  case 4:
    return fitting<OffsetBy<T, 4>>();
  case 8:
    return fitting<OffsetBy<T, 8>>();
  default:
    return nullptr;
  }
}

InstructionPtr make_address(Compiler& compiler, const Operation& op) {
  const auto pointer = compiler.operand(*op.operands[0], op),
             offset = compiler.operand(*op.operands[1], op);
  if (!pointer || !offset) return nullptr;
  const auto format =
      pointer->pointer ? memory_format(*op.operands[0]->type->leaf().element) : std::nullopt;
  if (!format)
    return compiler.unsupported(op, fmt::format("no addresses of {}", op.operands[0]->type->text));
  LaneKernel kernel = nullptr;
  switch (offset->lane) {
  case Lane::i8:
    kernel = offset_kernel<std::int8_t>(format->bytes);
    break;
  case Lane::i16:
    kernel = offset_kernel<std::int16_t>(format->bytes);
    break;
  case Lane::i32:
    kernel = offset_kernel<std::int32_t>(format->bytes);
    break;
  case Lane::i64:
    kernel = offset_kernel<std::int64_t>(format->bytes);
    break;
  default:
    break;
  }
  return make_lanewise(compiler, op, kernel, WorkKind::address, false);
}

} // namespace

void add_memory(Makers& makers) {
  makers[static_cast<std::size_t>(Op::tt_load)] = &make_load;
  makers[static_cast<std::size_t>(Op::tt_store)] = &make_store;
  makers[static_cast<std::size_t>(Op::tt_addptr)] = &make_address;
}

} // namespace hebe::ttgir
