// Which products the compiler below contracts into a sum, and how to keep that when blocks change.
// In: a block of a kernel that is compiled with fp fusion on (Triton's default); out: math.fma
// where a contraction is certain, a product that ptxas may not contract where there was none.
// Invariant: only a product and a sum of one block are contracted (LLVM 21's DAG combiner and
// ptxas, seen with Triton 3.6.0 on sm_90); what cannot be written down is said in the account.
#pragma once

#include "rewrite/pass.hpp"
#include "ttgir/view.hpp"

#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

namespace hebe::rewrite {

/// What changes from one run of a loop's body to the next. What does not, LLVM moves ahead of it
/// (seen with Triton 3.6.0 on sm_90: also out of a branch, and out of several loops).
class Variance {
public:
  explicit Variance(const ttgir::Operation* loop) : loop_(loop) {} ///< null: everything varies
  [[nodiscard]] bool varies(const ttgir::Value& value);

private:
  const ttgir::Operation* loop_;
  std::unordered_map<const ttgir::Value*, bool> seen_;
};

/// A product and the sum, difference or reduction of sums that it feeds, in one block with no
/// branch in between; directly, or through a negation or a change of shape or layout.
struct Contractible {
  ttgir::Operation* product;
  ttgir::Operation* sum;
  bool direct;
  auto operator<=>(const Contractible&) const = default;
};
[[nodiscard]] std::vector<Contractible> contractible(ttgir::Block& block);

/// Writes down, as math.fma, what is contracted in the block while it still stands where it does:
/// the body of `loop`, or any other block (null). The changes are in the account.
void pin_contractions(Work& work, ttgir::Block& block, const ttgir::Operation* loop);

/// Whether LLVM makes a product of an fma with this addend: -0.0.
[[nodiscard]] bool drops_addend(const ttgir::Value& addend);

/// The same for blocks that a load is about to leave: what was computed of it may then move ahead
/// of their loops. Branches and loops inside count; blocks that are no loop's body do not.
void pin_loops_of(Work& work, const std::set<ttgir::Block*>& blocks);

/// The same in every block of every function: what the compiled code computes. Nothing is moved, so
/// that operations keep their lines.
void pin_all_contractions(ttgir::Module& module);

/// How exact it is to change what stands in one block, or how often a value is used: exact where
/// the function has no product, and no function that may end with one.
[[nodiscard]] Exactness exactness_of_moves(ttgir::Operation& function);

/// Rounds the product by itself, as it was while it stood in another block than the sum; says so,
/// or says that the two may be contracted now.
void keep_apart(Work& work, const Contractible& pair);

} // namespace hebe::rewrite
