#include "measure/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace hebe::measure {
namespace {

constexpr double kLargest = 1e100;

std::string text_of(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

} // namespace

double mean_of(std::span<const double> x) {
  double sum = 0;
  for (const double v : x) sum += v - x[0];
  return x[0] + sum / static_cast<double>(x.size());
}

double median_of(std::span<const double> x) {
  std::vector<double> v(x.begin(), x.end());
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2 == 1) return *middle;
  return (*std::max_element(v.begin(), middle) + *middle) / 2;
}

double sd_of(std::span<const double> x, double mean) {
  double scale = 0;
  for (const double v : x) scale = std::max(scale, std::abs(v - mean));
  if (scale == 0) return 0;
  double squares = 0;
  for (const double v : x) squares += (v - mean) / scale * ((v - mean) / scale);
  return scale * std::sqrt(squares / static_cast<double>(x.size() - 1));
}

Result<Summary> summarise(std::span<const double> x) {
  HEBE_CHECK(check_sample(x));
  Summary s{.n = x.size(), .mean = mean_of(x), .sd = 0, .cv = {}, .median = median_of(x)};
  s.sd = sd_of(x, s.mean);
  if (const double cv = s.sd / std::abs(s.mean); std::isfinite(cv)) s.cv = cv;
  return s;
}

Status check_sample(std::span<const double> x, std::size_t minimum) {
  if (x.size() < minimum)
    return refuse(RefusalCode::bad_argument,
                  "a sample of " + std::to_string(x.size()) + " where at least " +
                      std::to_string(minimum) + " are needed",
                  "measure more pairs");
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(std::abs(x[i]) <= kLargest))
      return refuse(RefusalCode::bad_argument,
                    "value " + std::to_string(i) + " of the sample is " + text_of(x[i]) +
                        ", not a finite number up to 1e100",
                    "find out why this pair has no usable value");
  return {};
}

Status check_fraction(std::string_view name, double value) {
  if (value > 0 && value < 1) return {};
  return refuse(RefusalCode::bad_argument,
                std::string(name) + " is " + text_of(value) + ", not between 0 and 1",
                "give a fraction such as 0.95, not a percentage");
}

Status check_positive(std::string_view name, double value) {
  if (value > 0 && value <= kLargest) return {};
  return refuse(RefusalCode::bad_argument,
                std::string(name) + " is " + text_of(value) + ", not a positive number",
                "give a number above 0");
}

} // namespace hebe::measure
