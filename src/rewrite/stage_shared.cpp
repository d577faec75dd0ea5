// Reading again from shared memory. In: loads of one argument of which later ones give what an
// earlier one gave; out: the earlier value in a buffer of shared memory, the later loads as loads
// of that buffer. Invariant: exact: a load is replaced only where reusing the value itself would be
// right (load_legality.hpp); the buffer is written once, before it is read.
//
// No barrier is made here: Triton's own pass puts the ones that the buffer needs, after it has
// given it its place (allocate_shared_memory, then the membar analysis of the conversion to LLVM).
// Where it lies, and whether reductions share it, is Triton's too: the bytes said in the account
// are those of the buffers, without the scratch of reductions and conversions.
//
// A load of global memory is asm volatile to LLVM, a load of shared memory is not: between barriers
// LLVM may merge two of them, or move one ahead of a loop. Products then stand elsewhere or are
// used more often, so such a kernel is exact in the IR only if it has products.
#include "rewrite/access_passes.hpp"
#include "rewrite/contraction.hpp"
#include "rewrite/load_legality.hpp"
#include "rewrite/pass_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hebe::rewrite {
namespace {

using ttgir::Load;
using ttgir::Op;
using ttgir::Operation;
using ttgir::Type;
using ttgir::Value;

constexpr std::int64_t kSharedBytesOfABlock = 232'448; ///< sm_90 and sm_100: 227 KiB

struct Options {
  std::optional<std::set<std::string>> arguments;
  std::optional<std::set<std::int64_t>> only;
  std::int64_t limit = kSharedBytesOfABlock;
};

/// Why a value of that type cannot lie in a buffer; "" where it can.
std::string unfit(const Type& type) {
  if (!type.is(Type::Kind::tensor)) return "what it reads is no tensor: it is in a register";
  const auto& leaf = type.leaf();
  if (!leaf.is(Type::Kind::scalar) || ttgir::bits_of(leaf.scalar) < 8)
    return "its elements are not whole bytes";
  if (type.encoding.empty()) return "it has no layout (TTIR: stage at TTGIR)";
  return {};
}

std::int64_t bytes_of(const Type& type) {
  return type.elements() * static_cast<std::int64_t>(type.leaf_bytes());
}

/// The fastest dimension first: the layout's, or as a row-major array.
std::string order_of(const ttgir::Module& module, const Type& type) {
  const auto layout = module.resolve(type.encoding);
  const auto rank = type.shape.size();
  if (const auto order = ttgir::parameter(layout, "order"))
    if (const auto list = ttgir::integers(*order); list && list->size() == rank)
      return std::string(*order);
  std::string out;
  for (std::size_t i = rank; i-- > 0;) out += fmt::format("{}{}", out.empty() ? "" : ", ", i);
  return "[" + out + "]";
}

/// What is read, without hints of how: bounds and padding of a block pointer.
std::map<std::string_view, std::string_view> kind_of(const Operation& op) {
  std::map<std::string_view, std::string_view> out;
  for (const auto& each : op.attributes)
    if (each.name != "cache" && each.name != "evict" && each.name != "isVolatile" &&
        each.name != "operandSegmentSizes")
      out.emplace(each.name, each.text);
  return out;
}

class Stage {
public:
  Stage(Work& work, Options options)
      : work_(work), options_(std::move(options)), dominance_(work.module) {}

  void run() {
    std::map<const Value*, std::vector<Load>> by_argument;
    std::vector<const Value*> order;
    for (const Load& load : loads_of(work_.function)) {
      const auto* argument = argument_of(load, work_.function);
      if (!argument ||
          (options_.arguments && !options_.arguments->contains(std::string(argument->name))))
        continue;
      if (by_argument[argument].empty()) order.push_back(argument);
      by_argument[argument].push_back(load);
    }
    ttgir::walk(work_.function, [&](Operation& op) {
      if (op.is(Op::ttg_local_alloc)) bytes_ += bytes_of(*op.result().type);
    });
    // All are found before one is changed: dominance and numbers are of the kernel as it came.
    for (const auto* argument : order) find(*argument, by_argument[argument]);
    std::set<ttgir::Block*> left;
    std::set<const Operation*> sources;
    bool may_move = false;
    for (const auto& each : found_) {
      if (each.again.op.block != each.first.op.block) left.insert(each.again.op.block);
      may_move = !sources.insert(&each.first.op).second || !left.empty() || may_move;
    }
    if (may_move) work_.account.at_best(exactness_of_moves(work_.function));
    pin_loops_of(work_, left);
    for (const auto& each : found_) stage(each);
  }

private:
  struct Found {
    const Value* argument;
    Load first, again;
    bool rests_on_disjoint;
  };

  void find(const Value& argument, const std::vector<Load>& loads) {
    std::vector<Load> sources;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i) + 1;
      const bool asked = !options_.only || options_.only->contains(number);
      std::string why = i == 0 ? "nothing of it is read before" : "no earlier load reads the same";
      const auto source = asked ? source_of(loads[i], sources, why) : std::nullopt;
      if (source) {
        found_.push_back({&argument, source->first, loads[i], source->second});
        numbers_.is(loads[i].result(), source->first.result());
        continue;
      }
      if (asked && (i > 0 || options_.only)) work_.account.refuse(loads[i].op, why);
      sources.push_back(loads[i]);
    }
  }

  /// The first load that may stand for `again`, and whether that rests on disjoint arguments.
  std::optional<std::pair<Load, bool>>
  source_of(const Load& again, const std::vector<Load>& sources, std::string& why) {
    if (again.is_volatile()) {
      why = "it is volatile";
      return std::nullopt;
    }
    for (const Load& first : sources) {
      if (numbers_.of(first.pointer()) != numbers_.of(again.pointer())) continue;
      const auto wrong = why_not(first, again);
      if (!wrong.empty()) {
        why = wrong;
        continue;
      }
      const auto between_them = between(first.op, again.op, again.pointer(), work_.facts);
      if (!between_them.why) return std::pair{first, between_them.rests_on_disjoint};
      why = *between_them.why;
    }
    return std::nullopt;
  }

  std::string why_not(const Load& first, const Load& again) {
    const auto equal = [&](const Value* a, const Value* b) {
      return a == b || (a && b && numbers_.of(*a) == numbers_.of(*b));
    };
    if (first.is_volatile()) return fmt::format("{} is volatile", describe(first.op));
    if (!equal(first.mask(), again.mask()))
      return fmt::format("{} has another mask", describe(first.op));
    if (!equal(first.other(), again.other()))
      return fmt::format("{} has another `other`", describe(first.op));
    if (kind_of(first.op) != kind_of(again.op))
      return fmt::format("{} has other attributes", describe(first.op));
    if (!first.result().type || !again.result().type) return "its type is not known";
    if (const auto why = unfit(*first.result().type); !why.empty()) return why;
    if (!dominance_.dominates(first.result(), again.op))
      return fmt::format("{} is not on every path to it", describe(first.op));
    return {};
  }

  void stage(const Found& found) {
    const Type& type = *found.first.result().type;
    auto buffer = buffers_.find(&found.first.op);
    if (buffer == buffers_.end()) {
      const auto bytes = bytes_of(type);
      if (bytes_ + bytes > options_.limit)
        return work_.account.refuse(
            found.again.op,
            fmt::format("{} bytes more would be {} of shared memory, and the limit is {}", bytes,
                        bytes_ + bytes, options_.limit));
      bytes_ += bytes;
      buffer = buffers_.emplace(&found.first.op, &make_buffer(found.first, type)).first;
      work_.account.changed(found.first.op,
                            fmt::format("{} of {} is staged: {} bytes, {} of shared memory in all",
                                        describe(found.first.op), found.argument->name, bytes,
                                        bytes_));
    }
    const auto what = fmt::format("{} of {} reads what {} staged", describe(found.again.op),
                                  found.argument->name, describe(found.first.op));
    if (found.rests_on_disjoint) work_.account.assume_disjoint(what);
    work_.account.changed(found.again.op, what);
    read_from(*buffer->second, found.again);
  }

  Value& make_buffer(const Load& first, const Type& type) {
    std::string shape;
    for (const auto size : type.shape) shape += fmt::format("{}x", size);
    // Written in full: whether the module's head has aliases of these does not matter.
    const auto text = fmt::format(
        "!ttg.memdesc<{}{}, #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = "
        "{}}}>, #ttg.shared_memory>",
        shape, type.element->text, order_of(work_.module, type));
    auto& block = *first.op.block;
    const auto next = std::ranges::find(block.operations, &first.op) + 1;
    return work_.module
        .create({.code = Op::ttg_local_alloc,
                 .operands = {&first.result()},
                 .results = {work_.module.types().get(text)},
                 .attributes = {},
                 .segments = {1},
                 .name = std::string(first.result().name) + "_staged",
                 .location = first.op.location},
                block, next == block.operations.end() ? nullptr : *next)
        .result();
  }

  void read_from(Value& buffer, const Load& again) {
    Operation& made = work_.module.create({.code = Op::ttg_local_load,
                                           .operands = {&buffer},
                                           .results = {again.result().type},
                                           .attributes = {},
                                           .segments = {1, 0},
                                           .name = std::string(again.result().name),
                                           .location = again.op.location},
                                          *again.op.block, &again.op);
    made.line = again.op.line;
    work_.module.replace_all_uses(again.result(), made.result());
    work_.module.erase(again.op);
  }

  Work& work_;
  const Options options_;
  ttgir::Dominance dominance_;
  ValueNumbers numbers_{ValueNumbers::Layouts::ignored};
  std::vector<Found> found_;
  std::map<const Operation*, Value*> buffers_;
  std::int64_t bytes_ = 0; ///< of shared memory, the kernel's own buffers included
};

Status run(Work& work, const Json& options) {
  Options read;
  HEBE_TRY(read.arguments, names(options, "arguments"));
  HEBE_TRY(read.only, ordinals(options, "only"));
  HEBE_TRY(read.limit, number(options, "limit", kSharedBytesOfABlock, 0));
  if (read.arguments) HEBE_CHECK(are_arguments(*read.arguments, work.function));
  const auto ctas = ttgir::integer(work.module.top().text_of("ttg.num-ctas"));
  if (ctas.value_or(1) != 1) {
    work.account.refuse(work.function, "its programs are clusters of several blocks");
    return {};
  }
  Stage(work, std::move(read)).run();
  return {};
}

} // namespace

Pass stage_shared() {
  return {"stage-shared",
          "what is loaded again is read from shared memory",
          {{"arguments", "names of arguments whose loads are looked at; all where absent"},
           {"only", "which loads of an argument to replace, by number from 1; all where absent"},
           {"limit", "bytes of shared memory in all; 232448 where absent"}},
          run};
}

} // namespace hebe::rewrite
