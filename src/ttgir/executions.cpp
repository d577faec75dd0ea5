#include "ttgir/executions.hpp"

#include "ttgir/view.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

using Known = std::optional<std::int64_t>;

/// Two's complement of the value's width: what the machine would hold.
Known wrapped(std::int64_t value, TypeRef type) {
  if (!type || !type->is(Type::Kind::scalar) || !is_integer(type->scalar)) return std::nullopt;
  const unsigned bits = bits_of(type->scalar);
  if (bits >= 64) return value;
  const auto shift = 64 - bits;
  const auto cut = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << shift) >> shift;
  return type->scalar == Scalar::i1 ? (value & 1) : cut;
}

Known folded(const Operation& op, std::int64_t a, std::int64_t b) {
  const auto u = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const auto s = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
  const bool divides = b != 0 && !(a == INT64_MIN && b == -1);
  switch (op.code) {
  case Op::arith_addi:
    return s(u(a) + u(b));
  case Op::arith_subi:
    return s(u(a) - u(b));
  case Op::arith_muli:
    return s(u(a) * u(b));
  case Op::arith_divsi:
    return divides ? Known(a / b) : std::nullopt;
  case Op::arith_remsi:
    return divides ? Known(a % b) : std::nullopt;
  case Op::arith_ceildivsi:
    return divides ? Known(a / b + ((a % b != 0) && ((a < 0) == (b < 0)) ? 1 : 0)) : std::nullopt;
  case Op::arith_floordivsi:
    return divides ? Known(a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0)) : std::nullopt;
  case Op::arith_divui:
    return a >= 0 && b > 0 ? Known(a / b) : std::nullopt;
  case Op::arith_remui:
    return a >= 0 && b > 0 ? Known(a % b) : std::nullopt;
  case Op::arith_minsi:
    return std::min(a, b);
  case Op::arith_maxsi:
    return std::max(a, b);
  case Op::arith_andi:
    return a & b;
  case Op::arith_ori:
    return a | b;
  case Op::arith_xori:
    return a ^ b;
  case Op::arith_shli:
    return b >= 0 && b < 63 ? Known(s(u(a) << b)) : std::nullopt;
  case Op::arith_shrsi:
    return b >= 0 && b < 63 ? Known(a >> b) : std::nullopt;
  case Op::arith_cmpi: {
    const auto how = op.text_of("predicate");
    if (how == "eq") return a == b;
    if (how == "ne") return a != b;
    if (how == "slt") return a < b;
    if (how == "sle") return a <= b;
    if (how == "sgt") return a > b;
    if (how == "sge") return a >= b;
    if (a >= 0 && b >= 0)
      return how == "ult" ? a < b : how == "ule" ? a <= b : how == "ugt" ? a > b : a >= b;
    return std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

class Walker {
public:
  Walker(const Module& module, const ScalarLaunch& launch, Executions& out)
      : module_(module), launch_(launch), out_(out) {}

  void program(Operation& function, const std::array<std::uint32_t, 3>& id, double times) {
    id_ = id;
    values_.clear();
    for (Value& argument : Function{function}.arguments())
      if (const auto found = launch_.scalars.find(std::string(argument.name));
          found != launch_.scalars.end())
        values_[&argument] = found->second;
    body(function, times);
  }
  [[nodiscard]] bool used_id() const { return used_id_; }
  [[nodiscard]] bool spent() const { return looked_ > launch_.budget; }

private:
  Known value(const Value& value) {
    const auto found = values_.find(&value);
    return found == values_.end() ? std::nullopt : found->second;
  }
  void doubt(const Operation& op, std::string what) {
    if (doubted_.insert(&op).second) out_.doubts.push_back({op.line, std::move(what)});
  }

  void body(Operation& function, double times) {
    const auto& blocks = function.regions[0]->blocks;
    if (blocks.empty()) return;
    // Along the branches that are known; where one is not, every block after it may run.
    std::set<const Block*> done;
    Block* at = blocks.front();
    while (at && done.insert(at).second) {
      block(*at, times);
      const Operation& last = *at->operations.back();
      Block* next = nullptr;
      if (last.is(Op::cf_br) && last.successors.size() == 1) next = take(last, last.successors[0]);
      if (last.is(Op::cf_cond_br) && last.successors.size() == 2) {
        if (const Known condition = value(*last.operands[0])) {
          next = take(last, last.successors[*condition ? 0 : 1]);
        } else {
          doubt(last, fmt::format("which way cf.cond_br goes depends on %{}: both are counted",
                                  last.operands[0]->name));
          for (Block* other : blocks)
            if (done.insert(other).second) block(*other, times);
          return;
        }
      }
      if (next && done.contains(next)) doubt(last, "a branch backwards: the loop is counted once");
      at = next;
    }
  }
  Block* take(const Operation& op, const Successor& to) {
    for (std::uint32_t i = 0; i < to.count && i < to.block->arguments.size(); ++i)
      values_[&to.block->arguments[i]] = value(*op.operands[to.first + i]);
    return to.block;
  }

  void block(Block& block, double times) {
    for (Operation* op : block.operations) operation(*op, times);
  }

  void operation(Operation& op, double times) {
    ++looked_;
    out_.of[&op] += times;
    if (op.form == Operation::Form::opaque) {
      for (Region* region : op.regions)
        for (Block* inner : region->blocks) block(*inner, times);
      if (!op.regions.empty())
        doubt(op, fmt::format("{} is not understood: its regions are counted once", op.name));
      return;
    }
    switch (op.code) {
    case Op::scf_for:
      return loop(op, times);
    case Op::scf_if:
      return branch(op, times);
    case Op::scf_while:
      doubt(op, "how often scf.while runs is not known: it is counted once");
      for (Region* region : op.regions)
        for (Block* inner : region->blocks) block(*inner, times);
      return;
    case Op::tt_call:
      return call(op, times);
    case Op::arith_constant:
      if (op.result().type && !op.result().type->shaped())
        values_[&op.result()] = integer(op.text_of("value"));
      return;
    case Op::tt_get_program_id:
    case Op::tt_get_num_programs: {
      const auto axis = op.text_of("axis");
      const std::size_t i = axis == "x" || axis == "0" ? 0 : axis == "y" || axis == "1" ? 1 : 2;
      if (op.is(Op::tt_get_program_id)) used_id_ = true;
      values_[&op.result()] = op.is(Op::tt_get_program_id) ? id_[i] : launch_.grid[i];
      return;
    }
    default:
      break;
    }
    for (Region* region : op.regions) // reductions and scans: their combiner is part of the op
      for (Block* inner : region->blocks) block(*inner, times);
    scalar(op);
  }

  void scalar(Operation& op) {
    if (op.results.size() != 1 || !op.results[0].type ||
        !op.results[0].type->is(Type::Kind::scalar))
      return;
    Known result;
    if (op.is(Op::arith_extui) && op.operands[0]->type &&
        op.operands[0]->type->scalar != Scalar::i1) {
      if (const Known a = value(*op.operands[0]); a && *a >= 0) result = a;
    } else if (op.is(Op::arith_extsi) || op.is(Op::arith_extui) || op.is(Op::arith_trunci) ||
               op.is(Op::arith_index_cast)) {
      result = value(*op.operands[0]);
    } else if (op.is(Op::arith_select)) {
      if (const Known c = value(*op.operands[0])) result = value(*op.operands[*c ? 1 : 2]);
    } else if (op.operands.size() == 2) {
      const Known a = value(*op.operands[0]), b = value(*op.operands[1]);
      if (a && b) result = folded(op, *a, *b);
    }
    values_[&op.result()] = result ? wrapped(*result, op.result().type) : std::nullopt;
  }

  /// Whether what the body does can depend on which iteration it is.
  static bool varies(const Operation& loop) {
    bool found = false;
    for (const Operation* op : loop.regions[0]->front().operations)
      walk(const_cast<Operation&>(*op), [&](Operation& inner) {
        found = found || inner.is(Op::scf_for) || inner.is(Op::scf_if) || inner.is(Op::tt_call);
      });
    return found;
  }

  void loop(Operation& op, double times) {
    const auto view = For::of(op);
    if (!view) return;
    Block& inner = view->body().front();
    const Known first = value(view->lower()), last = value(view->upper()),
                step = value(view->step());
    std::int64_t trips = 1;
    const bool known = first && last && step && *step > 0;
    if (!known) {
      const Value& why = !first ? view->lower() : !last ? view->upper() : view->step();
      doubt(op, fmt::format("the trip count of scf.for depends on %{}: it is counted as one",
                            why.name));
      for (Value& argument : inner.arguments) values_[&argument] = std::nullopt;
      block(inner, times);
    } else {
      trips = *last <= *first ? 0 : (*last - *first - 1) / *step + 1;
      for (std::size_t i = 0; i < view->carried().size(); ++i)
        values_[&view->carried()[i]] = value(*view->initial()[i]);
      const bool one_by_one = varies(op) && !spent();
      if (!one_by_one) {
        for (Value& argument : inner.arguments) values_[&argument] = std::nullopt;
        if (trips > 0) block(inner, times * static_cast<double>(trips));
      }
      for (std::int64_t i = 0; one_by_one && i < trips; ++i) {
        if (spent()) {
          doubt(op,
                "too many iterations to look at one by one: the rest is counted as the one before");
          block(inner, times * static_cast<double>(trips - i));
          break;
        }
        values_[&view->induction()] = *first + i * *step;
        block(inner, times);
        std::vector<Known> next;
        if (const Operation* yield = view->yield())
          for (const Value* each : yield->operands) next.push_back(value(*each));
        for (std::size_t k = 0; k < view->carried().size(); ++k)
          values_[&view->carried()[k]] = k < next.size() ? next[k] : std::nullopt;
      }
      if (one_by_one)
        for (std::size_t k = 0; k < op.results.size() && k < view->carried().size(); ++k)
          values_[&op.results[k]] = value(view->carried()[k]);
      if (one_by_one) return;
    }
    for (const Value& result : op.results) values_[&result] = std::nullopt;
  }

  void branch(Operation& op, double times) {
    const Known condition = value(*op.operands[0]);
    if (!condition)
      doubt(op, fmt::format("whether scf.if runs depends on %{}: its branches are all counted",
                            op.operands[0]->name));
    for (std::size_t r = 0; r < op.regions.size(); ++r) {
      if (condition && (*condition != 0) != (r == 0)) continue;
      for (Block* inner : op.regions[r]->blocks) {
        block(*inner, times);
        if (!condition || inner->operations.empty()) continue;
        const Operation& last = *inner->operations.back();
        for (std::size_t k = 0; k < op.results.size() && k < last.operands.size(); ++k)
          values_[&op.results[k]] = value(*last.operands[k]);
      }
    }
    if (!condition)
      for (const Value& result : op.results) values_[&result] = std::nullopt;
  }

  void call(Operation& op, double times) {
    auto callee = op.text_of("callee");
    if (callee.starts_with('@')) callee.remove_prefix(1);
    Operation* function = module_.function(callee);
    if (!function || function->regions[0]->blocks.empty() || depth_ > 32)
      return doubt(op, fmt::format("@{} is not here", callee));
    const auto arguments = Function{*function}.arguments();
    for (std::size_t i = 0; i < arguments.size() && i < op.operands.size(); ++i)
      values_[&arguments[i]] = value(*op.operands[i]);
    ++depth_;
    body(*function, times);
    --depth_;
    const Operation* last = function->regions[0]->blocks.back()->operations.empty()
                                ? nullptr
                                : function->regions[0]->blocks.back()->operations.back();
    for (std::size_t k = 0; k < op.results.size(); ++k)
      values_[&op.results[k]] = last && last->is(Op::tt_return) && k < last->operands.size() &&
                                        function->regions[0]->blocks.size() == 1
                                    ? value(*last->operands[k])
                                    : std::nullopt;
  }

  const Module& module_;
  const ScalarLaunch& launch_;
  Executions& out_;
  std::unordered_map<const Value*, Known> values_;
  std::set<const Operation*> doubted_;
  std::array<std::uint32_t, 3> id_{};
  std::uint64_t looked_ = 0;
  int depth_ = 0;
  bool used_id_ = false;
};

/// Whether any loop or branch can depend on which program runs.
bool by_program(const Module& module) {
  bool controls = false;
  walk(module.top(), [&](Operation& op) {
    controls = controls || op.is(Op::scf_for) || op.is(Op::scf_if) || op.is(Op::cf_cond_br);
  });
  return controls;
}

} // namespace

Result<Executions> executions_of(const Module& module, Operation& function,
                                 const ScalarLaunch& launch) {
  const auto view = Function::of(function);
  if (!view)
    return refuse(RefusalCode::bad_spec, "the function has no body", "name a kernel of the module");
  for (const auto& [name, value] : launch.scalars) {
    const auto arguments = view->arguments();
    const auto found = std::ranges::find(arguments, name, &Value::name);
    if (found == arguments.end() || !found->type || !found->type->is(Type::Kind::scalar) ||
        !is_integer(found->type->scalar)) {
      std::string known;
      for (const Value& argument : arguments)
        if (argument.type && is_integer(argument.type->scalar) && !argument.type->shaped())
          known += fmt::format("{}{}", known.empty() ? "" : ", ", argument.name);
      return refuse(RefusalCode::bad_spec,
                    fmt::format("{} is no integer argument of @{}", name, view->name()),
                    known.empty() ? "it has none" : "its integer arguments: " + known);
    }
  }
  Executions out;
  Walker walker(module, launch, out);
  const auto [gx, gy, gz] = launch.grid;
  const double programs = static_cast<double>(gx) * gy * gz;
  if (programs == 0) return out;
  if (!by_program(module)) {
    walker.program(function, {0, 0, 0}, programs);
    return out;
  }
  double left = programs;
  for (std::uint32_t z = 0; z < gz; ++z)
    for (std::uint32_t y = 0; y < gy; ++y)
      for (std::uint32_t x = 0; x < gx; ++x) {
        const bool last = walker.spent();
        if (last && left > 1)
          out.doubts.push_back(
              {function.line,
               "too many programs to look at one by one: the rest is counted as the one before"});
        walker.program(function, {x, y, z},
                       last || (!walker.used_id() && x + y + z > 0) ? left : 1);
        if (last || (!walker.used_id() && x + y + z > 0)) return out;
        left -= 1;
      }
  return out;
}

} // namespace hebe::ttgir
