#include "rewrite/products.hpp"

#include <unordered_set>
#include <vector>

namespace hebe::rewrite {
namespace {

using ttgir::Op;
using ttgir::Operation;
using ttgir::Value;

enum class Ends { in_no_product, in_operands, unknown };

Ends ends_of(const Operation& op) {
  switch (op.code) {
  case Op::arith_constant:
  case Op::ub_poison:
  case Op::arith_addf: // a product in it has met its sum already
  case Op::arith_subf:
  case Op::math_fma:
  case Op::arith_maxnumf:
  case Op::arith_minnumf:
  case Op::arith_maximumf:
  case Op::arith_minimumf:
  case Op::arith_extf: // of another type than the sum's
  case Op::arith_truncf:
  case Op::tt_fp_to_fp:
  case Op::arith_sitofp:
  case Op::arith_uitofp:
  case Op::arith_bitcast:
  case Op::tt_bitcast:
  case Op::tt_load:
  case Op::tt_descriptor_load:
  case Op::ttg_local_load:
  case Op::tt_atomic_rmw:
  case Op::tt_atomic_cas:
    return Ends::in_no_product;
  case Op::tt_splat:
  case Op::tt_unsplat:
  case Op::tt_broadcast:
  case Op::tt_expand_dims:
  case Op::tt_reshape:
  case Op::tt_trans:
  case Op::tt_join:
  case Op::tt_cat:
  case Op::tt_split:
  case Op::ttg_convert_layout:
  case Op::arith_select:
  case Op::arith_negf:
    return Ends::in_operands;
  default:
    return Ends::unknown;
  }
}

} // namespace

bool may_be_product(const Value& value) {
  if (value.type && !ttgir::is_float(value.type->leaf().scalar)) return false;
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> open{&value};
  while (!open.empty()) {
    const Value& at = *open.back();
    open.pop_back();
    if (!seen.insert(&at).second) continue;
    if (!at.op) { // of the kernel: loaded before it; of a loop: whatever it carries
      const Operation* around = at.block && at.block->region ? at.block->region->parent : nullptr;
      if (around && around->is(Op::tt_func) && around->regions[0]->blocks.front() == at.block)
        continue;
      return true;
    }
    switch (at.op->form == Operation::Form::opaque ? Ends::unknown : ends_of(*at.op)) {
    case Ends::in_no_product:
      break;
    case Ends::in_operands:
      open.insert(open.end(), at.op->operands.begin(), at.op->operands.end());
      break;
    case Ends::unknown:
      return true;
    }
  }
  return false;
}

} // namespace hebe::rewrite
