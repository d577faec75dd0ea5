#include "kernel/inputs.hpp"

#include "core/parallel.hpp"
#include "core/philox.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hebe::kernel {
namespace {

// Standard normal quantile, Wichura's AS 241 (PPND16, relative error about 1e-16): one uniform a
// value, so that element i depends on nothing but i, and only + - * / sqrt log are needed.
double normal_quantile(double p) {
  const auto poly = [](double x, auto... c) {
    double sum = 0;
    ((sum = sum * x + c), ...);
    return sum;
  };
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           poly(r, 2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                133.14166789178437745, 3.387132872796366608) /
           poly(r, 5226.495278852545925, 28729.085735721942674, 39307.89580009271061,
                21213.794301586595867, 5394.1960214247511077, 687.1870074920579083,
                42.313330701600911252, 1.0);
  }
  double r = std::sqrt(-std::log(q < 0 ? p : 1.0 - p));
  double value = 0;
  if (r <= 5) {
    r -= 1.6;
    value = poly(r, 7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                 1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
                 4.6303378461565452959, 1.42343711074968357734) /
            poly(r, 1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
                 0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494,
                 2.05319162663775882187, 1.0);
  } else {
    r -= 5;
    value = poly(r, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                 0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358,
                 5.4637849111641143699, 6.6579046435011037772) /
            poly(r, 2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
                 7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
                 0.59983220655588793769, 1.0);
  }
  return q < 0 ? -value : value;
}

double value_of(const Initialiser& init, DType dtype, std::uint32_t bits) {
  if (init.kind == Initialiser::Kind::constant) return init.first;
  const double u = static_cast<double>(bits) * 0x1p-32;
  if (init.kind == Initialiser::Kind::normal)
    return init.first + init.second * normal_quantile(u + 0x1p-33);
  if (is_float(dtype)) return init.first + u * (init.second - init.first);
  return std::floor(init.first + u * (init.second - init.first));
}

} // namespace

void generate(const Initialiser& init, DType dtype, std::size_t first, std::span<std::byte> out) {
  const std::size_t size = size_of(dtype), count = out.size() / size;
  if (init.kind == Initialiser::Kind::zeros) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return;
  }
  for (std::size_t i = 0; i < count; i += 4) {
    const std::uint64_t block = (first + i) / 4;
    const auto bits = philox4x32(
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
        {static_cast<std::uint32_t>(init.seed), static_cast<std::uint32_t>(init.seed >> 32)});
    for (std::size_t k = 0; k < std::min<std::size_t>(4, count - i); ++k)
      store(value_of(init, dtype, bits[k]), dtype, out.data() + (i + k) * size);
  }
}

Status for_each_chunk(const Argument& buffer,
                      const std::function<Status(std::size_t, std::span<const std::byte>)>& use) {
  constexpr std::size_t kChunkElements = 1 << 20;
  const std::size_t size = size_of(buffer.dtype), total = buffer.elements();
  std::vector<std::byte> chunk(std::min(kChunkElements, total) * size);
  for (std::size_t first = 0; first < total; first += kChunkElements) {
    const auto elements = std::min(kChunkElements, total - first);
    const auto piece = std::span(chunk).first(elements * size);
    // Elements depend on nothing but their number, so that any thread can make them.
    constexpr std::size_t kPart = 1 << 14;
    HEBE_CHECK(for_each_index((elements + kPart - 1) / kPart, core_count(), [&](std::size_t part) {
      const auto from = part * kPart, count = std::min(kPart, elements - from);
      generate(*buffer.init, buffer.dtype, first + from, piece.subspan(from * size, count * size));
      return Status{};
    }));
    HEBE_CHECK(use(first * size, piece));
  }
  return {};
}

} // namespace hebe::kernel
