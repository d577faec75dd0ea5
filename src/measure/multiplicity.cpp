#include "measure/multiplicity.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace hebe::measure {

Result<std::vector<double>> holm(std::span<const double> p_values) {
  for (std::size_t i = 0; i < p_values.size(); ++i)
    if (!(p_values[i] >= 0 && p_values[i] <= 1))
      return refuse(RefusalCode::bad_argument, "p value " + std::to_string(i) + " is " +
                                                   std::to_string(p_values[i]) +
                                                   ", not between 0 and 1");
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });

  std::vector<double> adjusted(p_values.size());
  double largest = 0; // a larger p never gets a smaller adjusted p
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double left = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, left * p_values[order[rank]]));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

} // namespace hebe::measure
