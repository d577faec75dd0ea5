// The kernel as the compiler below contracts it, written down. In: a function; out: every product
// that a sum of its block takes in is a math.fma. Invariant: on a kernel compiled with fp fusion on
// it changes no bit of what the GPU computes; what it changes is what an interpreter computes.
#include "rewrite/contraction.hpp"
#include "rewrite/loop_passes.hpp"

namespace hebe::rewrite {
namespace {

using ttgir::Op;
using ttgir::Operation;

void pin_inside(Work& work, Operation& op, const Operation* loop) {
  for (ttgir::Region* region : op.regions)
    for (ttgir::Block* block : region->blocks) {
      const Operation* around = op.is(Op::scf_for) ? &op : loop;
      pin_contractions(work, *block, around);
      const std::vector<Operation*> inner(block->operations.begin(), block->operations.end());
      for (Operation* each : inner) pin_inside(work, *each, around);
    }
}

Status run(Work& work, const Json&) {
  work.account.at_best(exactness_of_moves(work.function));
  pin_inside(work, work.function, nullptr);
  return {};
}

} // namespace

Pass pin_contractions_pass() {
  return {"pin-contractions", "what the compiler contracts, written down as math.fma", {}, run};
}

} // namespace hebe::rewrite
