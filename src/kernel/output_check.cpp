#include "kernel/output_check.hpp"

#include "core/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hebe::kernel {

namespace {

OutputCheck check_part(std::span<const std::byte> found, DType found_type,
                       std::span<const std::byte> expected, DType expected_type, double atol,
                       double rtol) {
  OutputCheck check;
  check.elements = expected.size() / size_of(expected_type);
  for (std::size_t i = 0; i < check.elements; ++i) {
    const double f = element(found, found_type, i), e = element(expected, expected_type, i);
    const double error = std::abs(f - e);
    // An infinite expectation has no tolerance: rtol times infinity would let everything pass.
    const bool near = std::isfinite(error) && error <= atol + rtol * std::abs(e);
    const bool right = f == e || (std::isnan(f) && std::isnan(e)) || near;
    if (std::isfinite(error)) {
      check.worst_abs = std::max(check.worst_abs, error);
      if (e != 0) check.worst_rel = std::max(check.worst_rel, error / std::abs(e));
    }
    if (!right && check.wrong++ == 0) check.first_wrong = i, check.found = f, check.expected = e;
  }
  return check;
}

} // namespace

OutputCheck check_output(std::span<const std::byte> found, DType found_type,
                         std::span<const std::byte> expected, DType expected_type, double atol,
                         double rtol) {
  const auto elements = expected.size() / size_of(expected_type);
  if (found.size() / size_of(found_type) != elements) {
    OutputCheck check;
    check.elements = check.wrong = elements;
    return check;
  }
  constexpr std::size_t kPart = 1 << 16;
  std::vector<OutputCheck> parts(std::max<std::size_t>(1, (elements + kPart - 1) / kPart));
  const auto done = for_each_index(parts.size(), core_count(), [&](std::size_t part) {
    const auto from = part * kPart, count = std::min(kPart, elements - from);
    const auto of = [&](std::span<const std::byte> bytes, DType type) {
      return bytes.subspan(from * size_of(type), count * size_of(type));
    };
    parts[part] = check_part(of(found, found_type), found_type, of(expected, expected_type),
                             expected_type, atol, rtol);
    return Status{};
  });
  OutputCheck sum = parts.front();
  for (std::size_t i = 1; done && i < parts.size(); ++i) sum = joined(sum, parts[i]);
  return sum;
}

OutputCheck joined(const OutputCheck& a, const OutputCheck& b) {
  OutputCheck sum = a.wrong > 0 || b.wrong == 0 ? a : b;
  if (a.wrong == 0 && b.wrong > 0) sum.first_wrong += a.elements;
  sum.elements = a.elements + b.elements;
  sum.wrong = a.wrong + b.wrong;
  sum.worst_abs = std::max(a.worst_abs, b.worst_abs);
  sum.worst_rel = std::max(a.worst_rel, b.worst_rel);
  return sum;
}

std::string describe(const OutputCheck& c) {
  return fmt::format("{} of {} elements are wrong; first at {}: found {}, expected {}", c.wrong,
                     c.elements, c.first_wrong, c.found, c.expected);
}

} // namespace hebe::kernel
