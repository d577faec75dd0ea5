#include "ttgir/run_atomics.hpp"

#include "ttgir/run_lanewise.hpp"
#include "ttgir/strided_copy.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

template <class T, class Change> T change(std::byte* place, Change&& next) {
  const std::atomic_ref<T> element(*reinterpret_cast<T*>(place));
  T old = element.load();
  while (!element.compare_exchange_weak(old, next(old))) {
  }
  return old;
}

template <class T> T integer_result(AtomicKind kind, T old, T value) { // T is unsigned
  using S = std::make_signed_t<T>;
  const auto a = static_cast<S>(old), b = static_cast<S>(value);
  switch (kind) {
  case AtomicKind::and_:
    return old & value;
  case AtomicKind::or_:
    return old | value;
  case AtomicKind::xor_:
    return old ^ value;
  case AtomicKind::add:
    return static_cast<T>(old + value);
  case AtomicKind::max:
    return a > b ? old : value;
  case AtomicKind::min:
    return a < b ? old : value;
  case AtomicKind::umax:
    return std::max(old, value);
  case AtomicKind::umin:
    return std::min(old, value);
  case AtomicKind::exchange:
    return value;
  case AtomicKind::inc:
    return old >= value ? T(0) : static_cast<T>(old + 1);
  case AtomicKind::dec:
    return old == 0 || old > value ? value : static_cast<T>(old - 1);
  }
  return old;
}

template <class T>
void update_integer(AtomicKind kind, std::byte* place, const std::byte* value, std::byte* old) {
  T operand;
  std::memcpy(&operand, value, sizeof operand);
  T before = 0;
  if (kind == AtomicKind::add)
    before = std::atomic_ref<T>(*reinterpret_cast<T*>(place)).fetch_add(operand);
  else if (kind == AtomicKind::exchange)
    before = std::atomic_ref<T>(*reinterpret_cast<T*>(place)).exchange(operand);
  else
    before = change<T>(place, [&](T a) { return integer_result(kind, a, operand); });
  if (old) std::memcpy(old, &before, sizeof before);
}

template <class F> F float_result(AtomicKind kind, F old, F value) {
  switch (kind) {
  case AtomicKind::add:
    return old + value;
  case AtomicKind::max:
    return old != old ? value : value > old ? value : old;
  case AtomicKind::min:
    return old != old ? value : value < old ? value : old;
  default:
    return value;
  }
}

/// Bits in memory are `T`, the lane is `F`.
template <class T, class F>
void update_float(AtomicKind kind, const MemoryFormat& format, std::byte* place,
                  const std::byte* value, std::byte* old) {
  F operand;
  std::memcpy(&operand, value, sizeof operand);
  RoundLanes round = nullptr;
  if constexpr (sizeof(F) == 4) round = rounding_to(format.scalar);
  const T before = change<T>(place, [&](T bits) {
    std::byte memory[sizeof(T)];
    std::memcpy(memory, &bits, sizeof bits);
    F lane;
    format.decode(memory, &lane, 1);
    lane = float_result(kind, lane, operand);
    if constexpr (sizeof(F) == 4)
      if (round) round(&lane, 1);
    format.encode(&lane, memory, 1);
    std::memcpy(&bits, memory, sizeof bits);
    return bits;
  });
  if (!old) return;
  std::byte memory[sizeof(T)];
  std::memcpy(memory, &before, sizeof before);
  format.decode(memory, old, 1);
}

} // namespace

std::optional<AtomicKind> atomic_kind(std::string_view text) {
  constexpr std::pair<std::string_view, AtomicKind> words[] = {
      {"and", AtomicKind::and_},      {"or", AtomicKind::or_},    {"xor", AtomicKind::xor_},
      {"add", AtomicKind::add},       {"fadd", AtomicKind::add},  {"max", AtomicKind::max},
      {"min", AtomicKind::min},       {"umax", AtomicKind::umax}, {"umin", AtomicKind::umin},
      {"exch", AtomicKind::exchange}, {"inc", AtomicKind::inc},   {"dec", AtomicKind::dec}};
  for (const auto& [word, kind] : words)
    if (text == word) return kind;
  return std::nullopt;
}

bool can_update(AtomicKind kind, Scalar scalar) {
  if (!is_float(scalar)) return bits_of(scalar) >= 8;
  return kind == AtomicKind::add || kind == AtomicKind::max || kind == AtomicKind::min ||
         kind == AtomicKind::exchange;
}

void update_atomically(AtomicKind kind, const MemoryFormat& format, std::byte* place,
                       const std::byte* value, std::byte* old) {
  if (format.scalar == Scalar::f64)
    return update_float<std::uint64_t, double>(kind, format, place, value, old);
  if (is_float(format.scalar)) {
    switch (format.bytes) {
    case 1:
      return update_float<std::uint8_t, float>(kind, format, place, value, old);
    case 2:
      return update_float<std::uint16_t, float>(kind, format, place, value, old);
    default:
      return update_float<std::uint32_t, float>(kind, format, place, value, old);
    }
  }
  switch (format.bytes) {
  case 1:
    return update_integer<std::uint8_t>(kind, place, value, old);
  case 2:
    return update_integer<std::uint16_t>(kind, place, value, old);
  case 4:
    return update_integer<std::uint32_t>(kind, place, value, old);
  default:
    return update_integer<std::uint64_t>(kind, place, value, old);
  }
}

namespace {

/// What atomic_rmw and atomic_cas share: one element after the other.
class Atomic : public Instruction {
public:
  template <class Update> Status each(Program& program, Update&& update) const {
    const std::size_t count = pointers.count(program);
    const Lanes& addresses = program.at(pointers.slot);
    const Lanes* active = masked ? &program.at(mask) : nullptr;
    Traffic* traffic = program.traffic;
    if (traffic) traffic->begin(number, count);
    Lanes out = pointers.shape.empty() ? Lanes() : program.dense(count * format.lane_size);
    std::byte* old = out.bytes();
    const Lanes nothing =
        program.options.poison_undefined ? undefined_lane(format.scalar) : Lanes();
    for (std::size_t i = 0; i < count; ++i, old += format.lane_size) {
      if (active && active->at<std::uint8_t>(i) == 0) {
        std::memcpy(old, nothing.bytes(), format.lane_size);
        continue;
      }
      const auto address = addresses.at<std::uint64_t>(i);
      std::byte* place = place_of(program, address, format, true);
      if (!place)
        return bad_access(program, *this,
                          pointers.shape.empty() ? -1 : static_cast<std::int64_t>(i), address,
                          format, "updates", true);
      if (traffic) traffic->range(Traffic::Way::atomic, address, format.bytes, 1);
      update(place, i, old);
    }
    program.set(to, std::move(out));
    return {};
  }
  [[nodiscard]] const std::byte* element(const Lanes& lanes, std::size_t i) const {
    return lanes.bytes() + (lanes.uniform() ? 0 : i * format.lane_size);
  }
  Operand pointers{};
  MemoryFormat format{};
  Slot mask = 0, value = 0, to = 0;
  bool masked = false;
};

class Update final : public Atomic {
public:
  Status run(Program& program) const override {
    const Lanes values = program.at(value);
    return each(program, [&](std::byte* place, std::size_t i, std::byte* old) {
      update_atomically(kind, format, place, element(values, i), old);
    });
  }
  AtomicKind kind = AtomicKind::add;
};

class CompareAndSwap final : public Atomic {
public:
  Status run(Program& program) const override {
    const Lanes expected = program.at(compare), values = program.at(value);
    bool failed = false;
    HEBE_CHECK(each(program, [&](std::byte* place, std::size_t i, std::byte* old) {
      with_element(format.bytes, [&]<class T>() {
        std::byte memory[sizeof(T)];
        T wanted, next;
        format.encode(element(expected, i), memory, 1);
        std::memcpy(&wanted, memory, sizeof wanted);
        format.encode(element(values, i), memory, 1);
        std::memcpy(&next, memory, sizeof next);
        const std::atomic_ref<T> ref(*reinterpret_cast<T*>(place));
        if (!ref.compare_exchange_strong(wanted, next)) failed = true;
        std::memcpy(memory, &wanted, sizeof wanted);
        format.decode(memory, old, 1);
      });
    }));
    // Likely a lock that another thread's program holds: let that one run.
    if (failed && program.launch.threads > 1) std::this_thread::yield();
    return {};
  }
  Slot compare = 0;
};

bool describe(Compiler& compiler, const Operation& op, Atomic& made) {
  const auto pointers = compiler.operand(*op.operands[0], op);
  if (!pointers) return false;
  const auto format =
      pointers->pointer ? memory_format(*op.operands[0]->type->leaf().element) : std::nullopt;
  if (!format)
    return compiler.unsupported(
               op, fmt::format("no atomics through {}", op.operands[0]->type->text)) != nullptr;
  made.pointers = *pointers;
  made.format = *format;
  made.to = op.results.empty() ? compiler.slot_for_nothing() : compiler.slot(op.result());
  return true;
}

InstructionPtr make_update(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Update>();
  if (!describe(compiler, op, *made)) return nullptr;
  const auto kind = atomic_kind(op.text_of("atomic_rmw_op"));
  if (!kind || !can_update(*kind, made->format.scalar))
    return compiler.unsupported(op, fmt::format("no '{}' of {}", op.text_of("atomic_rmw_op"),
                                                spelling(made->format.scalar)));
  made->kind = *kind;
  made->value = compiler.slot(*op.operands[1]);
  if (op.operands.size() > 2) {
    made->masked = true;
    made->mask = compiler.slot(*op.operands[2]);
  }
  return made;
}

InstructionPtr make_compare_and_swap(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<CompareAndSwap>();
  if (!describe(compiler, op, *made)) return nullptr;
  made->compare = compiler.slot(*op.operands[1]);
  made->value = compiler.slot(*op.operands[2]);
  return made;
}

} // namespace

void add_atomics(Makers& makers) {
  makers[static_cast<std::size_t>(Op::tt_atomic_rmw)] = &make_update;
  makers[static_cast<std::size_t>(Op::tt_atomic_cas)] = &make_compare_and_swap;
}

} // namespace hebe::ttgir
