// Philox4x32-10, a counter-based generator: the i-th number of a stream needs no other number, so
// every machine and every thread makes the same bytes. Salmon, Moraes, Dror, Shaw, SC'11.
#pragma once

#include <array>
#include <cstdint>

namespace hebe {

/// One block: 4 x 32 random bits for a 128-bit counter and a 64-bit key.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

/// A sequential view of one stream of the generator.
class Philox {
public:
  explicit Philox(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  [[nodiscard]] std::uint32_t next_u32();
  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double uniform();
  /// Uniform integer in [0, bound), without modulo bias (Lemire's method). bound > 0.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound);
  /// Standard normal (Box-Muller).
  [[nodiscard]] double normal();

private:
  std::uint64_t seed_, stream_, block_ = 0;
  std::array<std::uint32_t, 4> buffer_{};
  int used_ = 4;
  bool has_spare_ = false;
  double spare_ = 0;
};

} // namespace hebe
