// Barriers, fences, groups and waits. In: operations that only order others; out: instructions that
// do nothing. Invariant: valid because a program runs alone and in the order of its text; where
// warps run apart (ttg.warp_specialize) that is not so, and the operation is refused.
#include "ttgir/run_lanewise.hpp"

namespace hebe::ttgir {
namespace {

class Nothing final : public Instruction {
public:
  Status run(Program& program) const override {
    for (const Slot token : tokens) program.set(token, Lanes());
    return {};
  }
  std::vector<Slot> tokens;
};

InstructionPtr make_nothing(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<Nothing>();
  for (const Value& value : op.results) made->tokens.push_back(compiler.slot(value));
  return made;
}

/// Results that are the operands, once they are ready.
class PassOn final : public Instruction {
public:
  Status run(Program& program) const override {
    for (std::size_t i = 0; i < to.size(); ++i) program.set(to[i], program.at(from[i]));
    return {};
  }
  std::vector<Slot> from, to;
};

InstructionPtr make_pass_on(Compiler& compiler, const Operation& op) {
  auto made = std::make_unique<PassOn>();
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    made->from.push_back(compiler.slot(*op.operands[i]));
    made->to.push_back(compiler.slot(op.result(i)));
  }
  return made;
}

InstructionPtr make_warp_specialize(Compiler& compiler, const Operation& op) {
  return compiler.unsupported(op, "its warps run at the same time and wait for each other; a "
                                  "program runs in the order of its text here");
}
InstructionPtr make_warp_id(Compiler& compiler, const Operation& op) {
  return compiler.unsupported(op, "a program is not divided into warps here");
}

} // namespace

void add_synchronisation(Makers& makers) {
  const auto add = [&](Op op, Make make) { makers[static_cast<std::size_t>(op)] = make; };
  for (const Op op : {Op::ttg_async_commit_group, Op::ttg_async_wait, Op::ttg_local_dealloc,
                      Op::ttg_local_barrier, Op::ttg_barrier, Op::gpu_barrier,
                      Op::ttng_fence_async_shared, Op::ttng_cluster_arrive, Op::ttng_cluster_wait,
                      Op::ttng_init_barrier, Op::ttng_inval_barrier, Op::ttng_barrier_expect,
                      Op::ttng_wait_barrier, Op::ttng_arrive_barrier, Op::ttng_async_tma_store_wait,
                      Op::ttng_tensormap_fenceproxy_acquire, Op::ttng_tc_gen5_commit})
    add(op, &make_nothing);
  add(Op::ttng_warp_group_dot_wait, &make_pass_on);
  add(Op::ttg_warp_specialize, &make_warp_specialize);
  add(Op::ttg_warp_id, &make_warp_id);
}

} // namespace hebe::ttgir
