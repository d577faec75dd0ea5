#include "core/philox.hpp"

#include <cmath>
#include <numbers>

namespace hebe {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                        std::array<std::uint32_t, 2> k) {
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += kW0;
    k[1] += kW1;
  }
  return c;
}

std::uint32_t Philox::next_u32() {
  if (used_ == 4) {
    const auto lo = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
    const auto hi = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
    buffer_ =
        philox4x32({lo(block_), hi(block_), lo(stream_), hi(stream_)}, {lo(seed_), hi(seed_)});
    ++block_;
    used_ = 0;
  }
  return buffer_[static_cast<std::size_t>(used_++)];
}

double Philox::uniform() {
  const std::uint64_t a = next_u32() >> 5, b = next_u32() >> 6;
  return static_cast<double>((a << 26) | b) * 0x1p-53;
}

std::uint32_t Philox::below(std::uint32_t bound) {
  std::uint64_t m = std::uint64_t{next_u32()} * bound;
  if (static_cast<std::uint32_t>(m) < bound) {
    const std::uint32_t threshold = (0U - bound) % bound;
    while (static_cast<std::uint32_t>(m) < threshold) m = std::uint64_t{next_u32()} * bound;
  }
  return static_cast<std::uint32_t>(m >> 32);
}

double Philox::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

} // namespace hebe
