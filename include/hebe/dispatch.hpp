// Dispatch by profile: which implementation of an operation costs least for these sizes, here. In:
// a profile (hebe.profile/1) and the board's name; out: a choice for an operation, sizes and dtype,
// or none. Invariant: lookups take no lock (and no memory, but for
// telling of a missing row), and may run while a profile is loaded; a
// choice once returned stays valid for the life of the process. Nothing here reads the environment
// or prints: the layer above decides whether dispatch is on, and what it says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::dispatch {

struct Choice {
  std::uint32_t index = 0;     ///< of the name, in the order of names()
  std::string name;            ///< of the implementation
  std::string configuration;   ///< JSON
  std::string artifact_sha256; ///< empty: none
  std::string shape;           ///< the row's bucket: "m<=256,n=4096"
  std::string provenance;      ///< of the cost: measured, estimated, simulated
  std::int64_t energy_nj = 0;  ///< at least 1
};

/// What came of a load: `ok`, and otherwise why the profile that was there before stays.
struct Loaded {
  bool ok = false;
  std::string why;
  int exit_code = 0; ///< as the program's
};

/// Reads a profile and makes its rows of that board the ones that find() sees.
[[nodiscard]] Loaded load(const std::string& file, const std::string& board);
/// Dispatch is off: find() finds nothing and tells of nothing.
void unload();

/// Why find() found nothing. bad_argument: the operation's rows of that dtype have another number
/// of sizes (dimensions() names them): whatever the sizes, no row could be found.
enum class Miss { no_row, bad_argument };

/// Sizes are in the order of the profile's dimensions. None: fall back; the first time that an
/// operation and dtype of the loaded profile find no row, the callback is told. Who asks `why` is
/// told of a wrong number of sizes there, every time, and the callback is not.
[[nodiscard]] const Choice* find(std::string_view operation, std::span<const std::int64_t> sizes,
                                 std::string_view dtype, Miss* why = nullptr) noexcept;

/// The names of an operation's dimensions in the order of their sizes; empty: it has no row.
[[nodiscard]] std::vector<std::string> dimensions(std::string_view operation,
                                                  std::string_view dtype);
/// The implementations of the loaded profile, sorted.
[[nodiscard]] std::vector<std::string> names();

/// Called from find(), on its thread: it must not throw. Set it before lookups begin.
using Missing = void (*)(const char* operation, const char* dtype, void* user);
void on_missing(Missing tell, void* user);

} // namespace hebe::dispatch
