// Several boards probed one after the other. In: a selector that may name several; out: what became
// of each. Invariant: every board has its own lease and its own record, and what one is refused for
// hides nothing of another.
#pragma once

#include "campaign/probe_meter.hpp"

namespace hebe::campaign {

/// The selectors that one --device stands for: "all" is every device that CUDA shows, by UUID in
/// PCI order, or "auto" where there is none (which then says why it simulates); "A,B" is each of
/// them. bad_argument: an empty one, or one twice.
[[nodiscard]] Result<std::vector<std::string>> selectors_in(const std::string& device);
/// UUIDs in PCI order.
[[nodiscard]] std::vector<std::string> uuids_of(std::vector<gpu::DeviceInfo> devices);

/// What became of one board.
struct BoardOutcome {
  std::string selector;
  std::string board, uuid;         ///< empty: it could not be opened
  std::optional<MeterProbe> probe; ///< it was probed, whatever was found
  std::string why_not_needed;      ///< not empty: --if-needed left it alone, and why
  std::optional<Refusal> refusal;
  [[nodiscard]] ExitCode exit_code() const;
};

struct BoardCallbacks {
  JobCallbacks job;
  std::function<void(const std::string& selector, std::size_t number, std::size_t of)> begins;
};

/// `request`'s machine stands for all of them, with its selector put in its place. After an
/// interruption the rest is refused as interrupted and not begun.
[[nodiscard]] std::vector<BoardOutcome> probe_boards(const evidence::DataRoot& root,
                                                     const ProbeRequest& request,
                                                     const std::vector<std::string>& selectors,
                                                     bool if_needed,
                                                     const BoardCallbacks& callbacks);

/// The worst, where every exit code is worse than the smaller ones: not qualified (1), a usage
/// error (2), an unfit environment (3), bad data (5), a bug (70), interrupted (130).
[[nodiscard]] ExitCode worst_exit(const std::vector<BoardOutcome>& outcomes);

} // namespace hebe::campaign
