#include "ttgir/estimate.hpp"

#include "ttgir/memory_effects.hpp"
#include "ttgir/run_plan.hpp"
#include "ttgir/view.hpp"

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

/// How often the combiner of a reduction or scan runs for one execution of it: elements that
/// vanish, or all but the first of every line.
double combinations(const Operation& op) {
  if (op.operands.empty() || !op.operands[0]->type) return 1;
  const auto from = static_cast<double>(op.operands[0]->type->elements());
  if (op.is(Op::tt_reduce)) {
    const auto to = op.results.empty() || !op.result().type
                        ? 1.0
                        : static_cast<double>(op.result().type->elements());
    return from - to;
  }
  if (op.is(Op::tt_scan)) {
    const auto axis = static_cast<std::size_t>(integer(op.text_of("axis")).value_or(0));
    const auto& shape = op.operands[0]->type->shape;
    return axis < shape.size() && shape[axis] > 0 ? from - from / static_cast<double>(shape[axis])
                                                  : from;
  }
  return from; // tt.map_elementwise
}

std::string origin_name(const Value& pointer, std::span<const Value> arguments) {
  const auto origin = origin_of(pointer);
  if (origin.anything || origin.arguments.empty()) return "?";
  std::string name;
  for (const auto number : origin.arguments)
    if (number < arguments.size())
      name += (name.empty() ? "" : " or ") + std::string(arguments[number].name);
  return name;
}

double bytes_of(const Value& value) {
  if (!value.type) return 0;
  const auto bits =
      value.type->leaf().is(Type::Kind::pointer) ? 64U : bits_of(value.type->leaf().scalar);
  return static_cast<double>(value.type->elements()) * (bits == 1 ? 1.0 : bits / 8.0);
}

} // namespace

Result<Estimate> estimate(const Module& module, std::string_view name, const ScalarLaunch& launch) {
  Operation* function = module.function(name);
  if (!function)
    return refuse(RefusalCode::not_found, fmt::format("no function \"{}\"", name),
                  "`hebe ttgir print` shows what there is");
  HEBE_TRY(const auto executions, executions_of(module, *function, launch));
  Compiler compiler(module);
  const auto plan = compiler.compile(*function);
  if (!plan) return std::unexpected(std::move(compiler.refusals.front()));
  Estimate out;
  out.programs = static_cast<double>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  out.doubts = executions.doubts;
  const auto arguments = Function{*function}.arguments();
  const auto moved = [&](const Operation& op, std::size_t pointer, const Value& value,
                         std::size_t mask, double times, bool stores) {
    auto& bytes = out.arguments[origin_name(*op.segment(pointer)[0], arguments)];
    (stores ? bytes.stored : bytes.loaded) += times * bytes_of(value);
    if (!op.segment(mask).empty()) ++bytes.masked_places;
  };
  for (const Instruction* instruction : plan->instructions) {
    const Operation& op = *instruction->op;
    double times = executions.count(op);
    if (times == 0) continue;
    if (const auto* around = op.parent();
        around && (around->is(Op::tt_reduce) || around->is(Op::tt_scan) ||
                   around->is(Op::tt_map_elementwise)))
      times *= combinations(*around);
    if (instruction->work != WorkKind::none)
      out.operations[{instruction->work, std::string(instruction->work_type)}] +=
          times * static_cast<double>(instruction->work_elements);
    switch (op.code) {
    case Op::tt_load:
      moved(op, 0, op.result(), 1, times, false);
      break;
    case Op::tt_store:
      moved(op, 0, *op.segment(1)[0], 2, times, true);
      break;
    case Op::tt_atomic_rmw:
      moved(op, 0, *op.segment(1)[0], 2, times, false);
      moved(op, 0, *op.segment(1)[0], 2, times, true);
      break;
    case Op::tt_atomic_cas:
      moved(op, 0, *op.segment(2)[0], 3, times, false);
      moved(op, 0, *op.segment(2)[0], 3, times, true);
      break;
    case Op::tt_descriptor_load:
      moved(op, 0, op.result(), 9, times, false);
      break;
    case Op::tt_descriptor_store:
      moved(op, 0, *op.segment(2)[0], 9, times, true);
      break;
    case Op::ttg_async_copy_global_to_local:
      moved(op, 0, *op.segment(1)[0], 2, times, false);
      break;
    case Op::ttg_local_load:
      out.shared_read += times * bytes_of(op.result());
      break;
    case Op::ttg_local_store:
      out.shared_written += times * bytes_of(*op.segment(0)[0]);
      break;
    default:
      break;
    }
  }
  return out;
}

Json to_json(const Estimate& estimate) {
  Json operations = Json::array(), arguments = Json::array(), doubts = Json::array();
  for (const auto& [what, count] : estimate.operations)
    operations.push_back({{"kind", name_of(what.first)}, {"type", what.second}, {"count", count}});
  for (const auto& [name, bytes] : estimate.arguments)
    arguments.push_back({{"name", name},
                         {"loaded_bytes", bytes.loaded},
                         {"stored_bytes", bytes.stored},
                         {"at_most", bytes.masked_places > 0}});
  for (const auto& doubt : estimate.doubts)
    doubts.push_back({{"line", doubt.line}, {"what", doubt.what}});
  return {{"provenance", "estimated"},
          {"programs", estimate.programs},
          {"operations", operations},
          {"arguments", arguments},
          {"shared_read_bytes", estimate.shared_read},
          {"shared_written_bytes", estimate.shared_written},
          {"exact", doubts.empty()},
          {"doubts", doubts}};
}

} // namespace hebe::ttgir
