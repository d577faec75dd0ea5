#include "ttgir/run_counts.hpp"

#include <algorithm>
#include <map>

namespace hebe::ttgir {
namespace {

void note(Spread& spread, std::uint64_t value, bool first) {
  spread.minimum = first ? value : std::min(spread.minimum, value);
  spread.maximum = std::max(spread.maximum, value);
  spread.total += value;
}

void join(Spread& into, const Spread& other, bool first) {
  into.minimum = first ? other.minimum : std::min(into.minimum, other.minimum);
  into.maximum = std::max(into.maximum, other.maximum);
  into.total += other.total;
}

void add(AccessCounts& into, const AccessCounts& other) {
  into.executions += other.executions;
  into.lanes += other.lanes;
  into.active += other.active;
  into.bytes += other.bytes;
  into.sectors += other.sectors;
}

OpPlace place(const Operation& op) {
  return {std::string(op.name), op.results.empty() ? "" : std::string(op.results[0].name), op.line};
}

} // namespace

void ProgramSums::add(Program& program) {
  std::uint64_t all = 0, multiplied = 0;
  for (const Instruction* instruction : program.plan.instructions) {
    const std::uint64_t runs = program.executions[instruction->number];
    if (runs == 0) continue;
    executions[instruction->number] += runs;
    if (instruction->work == WorkKind::none) continue;
    (instruction->work == WorkKind::product ? multiplied : all) +=
        runs * instruction->work_elements;
  }
  note(operations, all, programs == 0);
  note(products, multiplied, programs == 0);
  note(bytes, program.traffic ? program.traffic->end_program() : 0, programs == 0);
  ++programs;
}

Counts joined(const Plan& plan, const GlobalMemory& memory, const TouchedBytes& touched,
              std::span<const ProgramSums* const> sums, std::span<const Traffic* const> traffic) {
  Counts counts;
  bool first = true;
  std::vector<std::uint64_t> executions(plan.instructions.size());
  for (const ProgramSums* each : sums) {
    if (each->programs == 0) continue;
    for (std::size_t i = 0; i < executions.size(); ++i) executions[i] += each->executions[i];
    join(counts.operations_per_program, each->operations, first);
    join(counts.products_per_program, each->products, first);
    join(counts.bytes_per_program, each->bytes, first);
    first = false;
  }
  for (const Instruction* instruction : plan.instructions) {
    const std::uint64_t runs = executions[instruction->number];
    if (runs == 0) continue;
    if (instruction->op->is(Op::gpu_barrier) || instruction->op->is(Op::ttg_local_barrier) ||
        instruction->op->is(Op::ttg_barrier))
      counts.barriers += runs;
    if (instruction->work != WorkKind::none)
      counts.operations[{instruction->work, std::string(instruction->work_type)}] +=
          runs * instruction->work_elements;
  }
  for (const Instruction* instruction : plan.instructions) {
    std::map<std::uint32_t, AccessCounts> by_buffer;
    for (const Traffic* each : traffic)
      for (const auto& entry : each->by_instruction[instruction->number])
        add(by_buffer[entry.buffer], entry.counts);
    const Operation& op = *instruction->op;
    for (const auto& [buffer, access] : by_buffer)
      counts.accesses.push_back({std::string(op.name),
                                 op.results.empty() ? "" : std::string(op.results[0].name), op.line,
                                 memory.buffers()[buffer].name, access});
  }
  for (std::size_t i = 0; i < memory.buffers().size(); ++i) {
    const auto& buffer = memory.buffers()[i];
    if (!buffer.data) continue;
    ArgumentBytes bytes;
    bytes.name = buffer.name;
    bytes.size = buffer.size;
    for (const Traffic* each : traffic) {
      bytes.loaded += each->by_buffer[i].loaded;
      bytes.stored += each->by_buffer[i].stored;
      bytes.atomic += each->by_buffer[i].atomic;
    }
    for (const Traffic* each : traffic)
      if (each->rereads) {
        auto& sum = bytes.by_program ? *bytes.by_program : bytes.by_program.emplace();
        const auto& part = each->rereads->by_buffer[i];
        sum.first += part.first;
        sum.lanes += part.lanes;
        sum.again += part.again;
        sum.after_write += part.after_write;
      }
    bytes.unique_loaded = touched.loaded(i);
    bytes.unique_stored = touched.stored(i);
    bytes.unique_sectors = touched.sectors(i);
    counts.arguments.push_back(std::move(bytes));
  }
  std::map<Rereads::Pair, std::uint64_t> pairs;
  for (const Traffic* each : traffic)
    if (each->rereads)
      for (const auto& [pair, bytes] : each->rereads->pairs) pairs[pair] += bytes;
  for (const auto& [pair, bytes] : pairs)
    counts.rereads.push_back({memory.buffers()[pair.buffer].name,
                              place(*plan.instructions[pair.earlier]->op),
                              place(*plan.instructions[pair.later]->op), pair.written, bytes});
  for (const Traffic* each : traffic) {
    counts.shared_read += each->all_shared_read();
    counts.shared_written += each->all_shared_written();
  }
  return counts;
}

} // namespace hebe::ttgir
