// hebe ttgir count: what a launch moves and computes: counted by running it on the CPU, or
// estimated from its grid and scalars; and the least time and energy that a board can do it in.
#include "cli/ttgir_count.hpp"

#include "core/files.hpp"
#include "core/parallel.hpp"
#include "ttgir/estimate.hpp"
#include "ttgir/floor.hpp"
#include "ttgir/launch_file.hpp"
#include "ttgir/reader.hpp"

#include <fmt/format.h>

#include <charconv>

namespace hebe::cli {
namespace {

struct TtgirCountOptions {
  std::string file, launch, function, board, grid = "1";
  std::vector<std::string> scalars;
  unsigned threads = core_count();
};

Result<std::int64_t> number(std::string_view text, std::string_view option) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return refuse(RefusalCode::bad_argument, fmt::format("\"{}\" is no integer", text), {},
                  std::string(option));
  return value;
}

Result<ttgir::ScalarLaunch> scalar_launch(const TtgirCountOptions& o) {
  ttgir::ScalarLaunch launch;
  std::string_view rest = o.grid;
  for (std::size_t i = 0;; ++i) {
    const auto comma = rest.find(',');
    HEBE_TRY(const auto size, number(rest.substr(0, comma), "--grid"));
    if (i == 3 || size < 0 || size > 0x7fffffff)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("--grid {} is not one to three sizes", o.grid),
                    "as --grid 2048 or --grid 64,8,1", "--grid");
    launch.grid[i] = static_cast<std::uint32_t>(size);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  for (const std::string& each : o.scalars) {
    const auto equals = each.find('=');
    if (equals == std::string::npos)
      return refuse(RefusalCode::bad_argument, fmt::format("--scalar {} is not NAME=VALUE", each),
                    "as --scalar N=8192", "--scalar");
    HEBE_TRY(launch.scalars[each.substr(0, equals)],
             number(std::string_view(each).substr(equals + 1), "--scalar"));
  }
  return launch;
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.3f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.3f} MB", bytes / 1e6);
  return fmt::format("{:.0f} B", bytes);
}

template <class Operations> void print_operations(const Context& c, const Operations& operations) {
  for (const auto& [what, count] : operations)
    c.print(fmt::format("  {:<20} {:<12} {:>16.0f}", name_of(what.first), what.second,
                        static_cast<double>(count)));
}

void print_counts(const Context& c, const ttgir::Counts& counts) {
  c.print(fmt::format("counted over {} programs", counts.programs));
  c.print(fmt::format("  {:<16} {:>12} {:>12} {:>12} {:>8} {:>12} {:>12}", "argument", "size",
                      "loaded", "unique", "times", "stored", "unique"));
  for (const auto& a : counts.arguments)
    c.print(fmt::format(
        "  {:<16} {:>12} {:>12} {:>12} {:>8} {:>12} {:>12}", a.name,
        bytes_text(static_cast<double>(a.size)), bytes_text(static_cast<double>(a.loaded)),
        bytes_text(static_cast<double>(a.unique_loaded)),
        a.unique_loaded ? fmt::format("{:.2f}", static_cast<double>(a.loaded) /
                                                    static_cast<double>(a.unique_loaded))
                        : "-",
        bytes_text(static_cast<double>(a.stored)),
        bytes_text(static_cast<double>(a.unique_stored))));
  print_operations(c, counts.operations);
  if (counts.shared_read + counts.shared_written > 0)
    c.print(fmt::format("  shared memory        read {}, written {}",
                        bytes_text(static_cast<double>(counts.shared_read)),
                        bytes_text(static_cast<double>(counts.shared_written))));
}

void print_floor(const Context& c, const ttgir::Floor& floor, const ttgir::Board& board) {
  c.print(fmt::format("floor on {} (estimated; {})", board.name, board.source));
  c.print(
      fmt::format("  limit {}; {:.2f} operations per unique byte; every byte is moved {:.2f} times",
                  floor.limit, floor.intensity, floor.redundancy));
  const auto energy = [](const std::optional<Joules>& j) {
    return j ? fmt::format("{:.4g} mJ", j->value() * 1e3)
             : std::string("no energies measured on this board");
  };
  c.print(fmt::format("  inputs in memory     {:.4g} us, {}", floor.cold.value() * 1e6,
                      energy(floor.cold_j)));
  c.print(fmt::format("  inputs in the cache  {:.4g} us, {}", floor.warm.value() * 1e6,
                      energy(floor.warm_j)));
  for (const auto& what : floor.left_out)
    c.print("  left out, for the board has no such ceiling: " + what);
}

int counted(const Context& c, const TtgirCountOptions& o, const ttgir::Module& module,
            const ttgir::Board* board) {
  auto file = ttgir::LaunchFile::read(o.launch);
  if (!file) return c.refused(file.error());
  auto launch = file->launch(module);
  if (!launch) return c.refused(launch.error());
  launch->threads = o.threads;
  const auto outcome = ttgir::interpret(module, o.function.empty() ? file->function() : o.function,
                                        *launch, {.count = true, .poison_undefined = false});
  if (!outcome) return c.refused(outcome.error());
  const auto& counts = *outcome->counts;
  Json result = to_json(counts);
  if (!c.json) print_counts(c, counts);
  if (board) {
    const auto floor = ttgir::floor_of(ttgir::demand_of(counts), *board);
    result["floor"] = ttgir::to_json(floor, *board);
    if (!c.json) print_floor(c, floor, *board);
  }
  if (c.json) c.print_json(result);
  return static_cast<int>(ExitCode::done);
}

int estimated(const Context& c, const TtgirCountOptions& o, const ttgir::Module& module) {
  const auto launch = scalar_launch(o);
  if (!launch) return c.refused(launch.error());
  const auto found = ttgir::estimate(module, o.function, *launch);
  if (!found) return c.refused(found.error());
  if (c.json) {
    c.print_json(to_json(*found));
    return static_cast<int>(ExitCode::done);
  }
  c.print(fmt::format("estimated for {:.0f} programs, masks taken as all true", found->programs));
  c.print(fmt::format("  {:<16} {:>14} {:>14}", "argument", "loaded", "stored"));
  for (const auto& [name, bytes] : found->arguments)
    c.print(fmt::format("  {:<16} {:>14} {:>14}{}", name, bytes_text(bytes.loaded),
                        bytes_text(bytes.stored), bytes.masked_places ? "  at most" : ""));
  print_operations(c, found->operations);
  for (const auto& doubt : found->doubts)
    c.print(fmt::format("  not known: line {}: {}", doubt.line, doubt.what));
  return static_cast<int>(ExitCode::done);
}

int run_ttgir_count(const Context& c, const TtgirCountOptions& o) {
  auto text = read_given_file(o.file);
  if (!text) return c.refused(text.error());
  const auto module = ttgir::read_module(std::move(*text), {true, o.file});
  if (!module) return c.refused(module.error());
  const ttgir::Board* board = nullptr;
  if (!o.board.empty()) {
    const auto found = ttgir::board_named(o.board);
    if (!found) return c.refused(found.error());
    board = *found;
  }
  if (!o.launch.empty() && (!o.scalars.empty() || o.grid != "1"))
    return c.refused({RefusalCode::bad_argument,
                      "--launch has grid and scalars already",
                      "--launch",
                      "give either --launch or --grid and --scalar",
                      {}});
  if (board && o.launch.empty())
    return c.refused(
        {RefusalCode::bad_argument,
         "a floor needs the bytes that are touched at least once, which only running tells",
         "--board",
         "give --launch LAUNCH.JSON",
         {}});
  return o.launch.empty() ? estimated(c, o, **module) : counted(c, o, **module, board);
}

} // namespace

void add_ttgir_count(CLI::App& app, Context& c, std::function<int()>& action) {
  auto options = std::make_shared<TtgirCountOptions>();
  auto* sub = app.add_subcommand("count", "What a launch moves and computes; its floor on a board");
  sub->add_option("file", options->file, "file of TTIR or TTGIR")->required();
  sub->add_option("--launch", options->launch, "launch.json: count by running it on the CPU");
  sub->add_option("--grid", options->grid, "without --launch: programs, X or X,Y or X,Y,Z")
      ->capture_default_str();
  sub->add_option("--scalar", options->scalars,
                  "without --launch: NAME=VALUE of an integer argument (repeatable)");
  sub->add_option("--board", options->board, "with --launch: the floor on this board, e.g. H200");
  sub->add_option("--function", options->function, "which function; else the first public one");
  sub->add_option("--threads", options->threads, "threads; default: one for each core");
  sub->callback(
      [&c, options, &action] { action = [&c, options] { return run_ttgir_count(c, *options); }; });
}

} // namespace hebe::cli
