// Loops that run once become their body, and loops that run a few times so many copies of it. In: a
// kernel and what is known of its launches; out: straight lines, and contracts for the numbers that
// it rests on. Invariant: inner loops first; a loop whose number of trips is not exactly known
// stays, with the reason.
//
// Without a product in the kernel nothing can be contracted, and LLVM keeps the bits of everything
// else: exact. With one, exact_in_ir, although the contractions are written down: a reduction's
// combiner, a product that meets a sum through a change of layout, and sums that LLVM drops (x + 0)
// are not covered, and LLVM may itself have unrolled the loop that ran more than once.
#include "rewrite/contraction.hpp"
#include "rewrite/loop_bodies.hpp"
#include "rewrite/loop_passes.hpp"
#include "rewrite/pass_options.hpp"
#include "rewrite/remove_dead.hpp"

#include <fmt/format.h>

#include <vector>

namespace hebe::rewrite {
namespace {
using ttgir::Operation;

constexpr PassOption kPin = {"pin", "write down as math.fma what the compiler contracts in the "
                                    "loop (true); false for a kernel without fp fusion"};
constexpr std::size_t kMostOperations = 20'000; ///< of a function; beyond it no compiler ends soon

std::vector<Operation*> loops_inner_first(Operation& function) {
  std::vector<Operation*> out;
  const auto visit = [&](const auto& self, Operation& op) -> void {
    for (ttgir::Region* region : op.regions)
      for (ttgir::Block* block : region->blocks)
        for (Operation* inner : block->operations) self(self, *inner);
    if (op.is(ttgir::Op::scf_for)) out.push_back(&op);
  };
  visit(visit, function);
  return out;
}

std::size_t size_of(Operation& op) {
  std::size_t n = 0;
  ttgir::walk(op, [&](Operation&) { ++n; });
  return n;
}

/// The trips, where the loop may be taken apart; why not otherwise.
std::expected<Interval, std::string> takes_apart(Work& work, KnownValues& known, Operation& loop,
                                                 std::int64_t most) {
  if (!ttgir::For::of(loop)) return std::unexpected("its form is not understood");
  const auto trips = known.trips(loop);
  if (!trips || !trips->single() || trips->low < 1 || trips->low > most)
    return std::unexpected(says_trips(known, loop) +
                           (trips && trips->single() && trips->low > most && most > 1
                                ? fmt::format(", more than {}", most)
                                : std::string()));
  if (!ends_in_range(known, loop)) return std::unexpected("its induction variable may wrap");
  if (auto why = holds_together(loop)) return std::unexpected(*why);
  const auto total =
      size_of(work.function) + size_of(loop) * static_cast<std::size_t>(trips->low - 1);
  if (trips->low > 1 && total > kMostOperations)
    return std::unexpected(fmt::format("it runs {} times: the kernel would have {} operations, "
                                       "more than {}",
                                       trips->low, total, kMostOperations));
  return *trips;
}

void expand_all(Work& work, std::int64_t most, bool pin) {
  bool any = false;
  const auto exactness = exactness_of_moves(work.function);
  // Taking one loop apart may tell how often another one runs.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation* loop : loops_inner_first(work.function)) {
      KnownValues known(work.facts);
      const auto trips = takes_apart(work, known, *loop, most);
      if (!trips) continue;
      const auto what =
          trips->low == 1
              ? fmt::format("runs once: its body stands in its place{}", says_attributes(*loop))
              : fmt::format("runs {} times: so many bodies stand in its place{}", trips->low,
                            says_attributes(*loop));
      assume(work.account, work.facts, *trips, "a loop " + what.substr(0, what.find(':')));
      work.account.changed(*loop, what);
      expand(work, *loop, trips->low, pin);
      changed = any = true;
      break;
    }
  }
  for (Operation* loop : loops_inner_first(work.function)) {
    KnownValues known(work.facts);
    if (const auto trips = takes_apart(work, known, *loop, most); !trips)
      work.account.refuse(*loop, trips.error());
  }
  if (!any) return;
  work.account.at_best(exactness);
  erase_dead(work);
}

} // namespace

Pass inline_single_trip_loops() {
  return {"inline-single-trip-loops",
          "a loop that runs exactly once becomes its body",
          {kPin},
          [](Work& work, const Json& options) -> Status {
            HEBE_TRY(const bool pin, flag(options, "pin", true));
            expand_all(work, 1, pin);
            return {};
          }};
}

Pass unroll_loops() {
  return {"unroll-loops",
          "a loop that runs a few times becomes so many copies of its body",
          {{"trips", "how often at most (8)"}, kPin},
          [](Work& work, const Json& options) -> Status {
            HEBE_TRY(const auto most, number(options, "trips", 8, 1));
            HEBE_TRY(const bool pin, flag(options, "pin", true));
            expand_all(work, most, pin);
            return {};
          }};
}

} // namespace hebe::rewrite
