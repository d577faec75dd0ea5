// What rows of a profile or placement are held against: facts given one by one, or --here.
#pragma once

#include "cli/context.hpp"
#include "tune/placement.hpp"

namespace hebe::cli {

struct PresentOptions {
  std::optional<std::string> board, board_uuid, cpu, driver, os, hebe, triton, date;
  std::vector<std::string> meters;
  std::optional<std::int64_t> days;
  bool here = false;
};

/// `action` begins each help text; --cpu where `with_cpu`.
void add_present(CLI::App& app, PresentOptions& o, const std::string& action, bool with_cpu);
/// As add_present() adds them.
[[nodiscard]] std::vector<std::string> present_names(bool with_cpu);

/// What was given, over what --here reads from --device. bad_argument: an empty value, which a
/// command that failed leaves behind, or a meter without a status.
[[nodiscard]] Result<tune::PlacementNow> present_of(const Context& c, const PresentOptions& o);
/// Whether anything but a date is there to hold a row against.
[[nodiscard]] bool says_anything(const tune::Present& present);

} // namespace hebe::cli
