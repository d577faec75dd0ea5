#include "qualify/mechanism.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::qualify {
namespace {

using Passes = std::vector<std::string>;
constexpr std::uint32_t kFewTrips = 8;
constexpr double kRegisterBytes = 512;        // a thread: half of the registers it can have
constexpr double kSharedBytes = 227.0 * 1024; // a block, of sm_90 and sm_100

class Finder {
public:
  Finder(const kernel::LaunchSpec& launch, const Mechanism& mechanism)
      : launch_(launch), m_(mechanism) {
    if (!m_.counts) return;
    programs_ = static_cast<double>(std::max<std::uint64_t>(1, m_.counts->programs));
    for (const auto& each : m_.counts->arguments)
      traffic_ += static_cast<double>(each.loaded + each.stored + 2 * each.atomic);
  }

  std::vector<Opportunity> find() {
    rereads();
    uncoalesced();
    spills();
    true_masks();
    narrow();
    conversions();
    hints();
    std::ranges::stable_sort(found_, std::ranges::greater{},
                             [](const Opportunity& o) { return o.bytes.value_or(-1); });
    return std::move(found_);
  }

private:
  void add(std::string kind, std::string argument, Passes passes, std::optional<double> bytes,
           std::string why) {
    found_.push_back({std::move(kind), std::move(argument), std::move(passes), bytes,
                      bytes && traffic_ > 0 ? *bytes / traffic_ : 0, std::move(why)});
  }

  /// Executions of the op on that line in one program, on average.
  [[nodiscard]] double trips(std::uint32_t line) const {
    double executions = 0;
    for (const auto& each : m_.counts->accesses)
      if (each.line == line)
        executions = std::max(executions, static_cast<double>(each.counts.executions));
    return executions / programs_;
  }

  [[nodiscard]] Passes retaining(const ttgir::Reread& pair, double kept) const {
    const auto* earlier = m_.table ? m_.table->at(pair.earlier.line) : nullptr;
    const auto* later = m_.table ? m_.table->at(pair.later.line) : nullptr;
    if (!earlier || !later || earlier->is_volatile || later->is_volatile) return {};
    if (earlier == later) return {"hoist-loads"};
    if (kept / (launch_.num_warps * 32.0) > kRegisterBytes)
      return kept > kSharedBytes ? Passes{} : Passes{"stage-shared"};
    if (earlier->loop_line == later->loop_line) return {"reuse-loads"};
    const double most = std::max(trips(earlier->line), trips(later->line));
    if (most <= 1) return {"inline-single-trip-loops", "reuse-loads"};
    if (most <= kFewTrips) return {"unroll-loops", "reuse-loads"};
    return kept > kSharedBytes ? Passes{} : Passes{"stage-shared"};
  }

  /// Pairs of one argument that the same passes would save are one opportunity.
  void rereads() {
    if (!m_.redundancy) return;
    struct Group {
      double bytes = 0;
      std::string pairs;
    };
    for (const ArgumentRedundancy& each : m_.redundancy->arguments) {
      const double kept =
          static_cast<double>(each.unique + each.by_other_programs) / programs_; // a program
      std::map<Passes, Group> groups;
      for (const ttgir::Reread& pair : m_.redundancy->pairs) {
        if (pair.argument != each.argument) continue;
        const auto text = fmt::format("line {} {} line {}", pair.earlier.line,
                                      pair.written ? "stores for" : "then", pair.later.line);
        if (pair.written) {
          add("load_after_store", each.argument, {}, static_cast<double>(pair.bytes),
              text + ": a program loads what it stored itself");
          continue;
        }
        Group& group = groups[retaining(pair, kept)];
        group.bytes += static_cast<double>(pair.bytes);
        group.pairs += (group.pairs.empty() ? "" : "; ") + text;
      }
      for (auto& [passes, group] : groups) {
        auto why =
            fmt::format("the same program loads the same bytes again ({}); {:.0f} B a program "
                        "to keep, {:.0f} B a thread",
                        group.pairs, kept, kept / (launch_.num_warps * 32.0));
        if (each.stored_too) why += "; the launch writes this argument too";
        if (passes.empty())
          why += kept > kSharedBytes ? "; too much for a block's shared memory"
                                     : "; volatile, or the TTGIR is not there";
        add("reread", each.argument, passes, group.bytes, std::move(why));
      }
    }
  }

  void uncoalesced() {
    if (!m_.counts) return;
    for (const auto& each : m_.counts->accesses) {
      // Sectors are counted in the text's order of elements, which must be the layout's.
      const auto* row = m_.table ? m_.table->at(each.line) : nullptr;
      if (!row || row->strided) continue;
      const double bytes = static_cast<double>(each.counts.bytes);
      const double wasted = static_cast<double>(each.counts.sectors) * 32 - bytes;
      if (wasted > bytes / 4 && wasted > traffic_ / 100)
        add("uncoalesced", each.argument, {}, wasted,
            fmt::format("line {}: {} of 32-byte sectors for {:.0f} B asked for", each.line,
                        each.counts.sectors, bytes));
    }
  }

  void spills() {
    if (!m_.sass) return;
    double bytes = 0;
    std::size_t number = 0;
    bool in_loop = false;
    for (const StaticAccess& each : m_.sass->code.accesses)
      if (each.kind == AccessKind::local_load || each.kind == AccessKind::local_store) {
        ++number;
        bytes += each.bytes;
        in_loop = in_loop || each.in_loop;
      }
    if (number == 0) return;
    add("spills", "", {}, bytes * launch_.num_warps * 32 * static_cast<double>(launch_.programs()),
        fmt::format("{} loads and stores of local memory in the SASS, each counted once{}", number,
                    in_loop ? "; some are in loops, so it is more" : ""));
  }

  void true_masks() {
    if (!m_.counts || !m_.table) return;
    // An op that reaches several arguments has a row for each, and its elements in one of them.
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> of_line;
    for (const auto& each : m_.counts->accesses) {
      of_line[each.line].first += each.counts.lanes;
      of_line[each.line].second += each.counts.active;
    }
    std::string lines;
    for (const TableAccess& each : m_.table->rows)
      if (const auto found = of_line.find(each.line);
          each.masked && found != of_line.end() && found->second.first == found->second.second)
        lines += fmt::format("{}{}", lines.empty() ? "" : ", ", each.line);
    if (!lines.empty())
      add("true_masks", "", {"drop-masks"}, std::nullopt,
          "every lane was active in this launch: lines " + lines);
  }

  void narrow() {
    if (!m_.table) return;
    std::string lines;
    for (const TableAccess& each : m_.table->rows)
      if (each.vector_bytes && *each.vector_bytes < 16 && each.bytes &&
          *each.bytes >= 16ULL * 32 * launch_.num_warps && each.kind != TableAccess::Kind::atomic)
        lines +=
            fmt::format("{}{} ({} B)", lines.empty() ? "" : ", ", each.line, *each.vector_bytes);
    if (!lines.empty())
      add("narrow_access", "", {}, std::nullopt,
          "a thread could access 16 bytes at once, and its layout has fewer side by side: lines " +
              lines);
  }

  void conversions() {
    if (m_.table && m_.table->layout_conversions > 0)
      add("layout_conversions", "", {"simplify"}, std::nullopt,
          fmt::format("{} conversions of layouts, of {} B a program (once each), through shared "
                      "memory or shuffles",
                      m_.table->layout_conversions, m_.table->converted_bytes));
  }

  void hints() {
    if (!m_.redundancy || !m_.table) return;
    for (const ArgumentRedundancy& each : m_.redundancy->arguments) {
      const bool hinted = std::ranges::any_of(m_.table->rows, [&](const TableAccess& row) {
        return row.argument == each.argument && !(row.cache.empty() && row.eviction.empty());
      });
      if (hinted) continue;
      if (each.by_other_programs > each.unique)
        add("missing_hint", each.argument, {"hint"}, std::nullopt,
            fmt::format("other programs load the same bytes {:.1f} times: evict_last",
                        static_cast<double>(each.by_other_programs) /
                            static_cast<double>(std::max<std::uint64_t>(1, each.unique))));
      else if (each.redundant() == 0)
        add("missing_hint", each.argument, {"hint"}, std::nullopt,
            "every byte is loaded once: evict_first leaves the cache to others");
    }
  }

  const kernel::LaunchSpec& launch_;
  const Mechanism& m_;
  double programs_ = 1, traffic_ = 0;
  std::vector<Opportunity> found_;
};

} // namespace

std::vector<Opportunity> opportunities(const kernel::LaunchSpec& launch,
                                       const Mechanism& mechanism) {
  return Finder(launch, mechanism).find();
}

} // namespace hebe::qualify
