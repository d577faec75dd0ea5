// The configurations that a backend is tried in: lists of values, their product, what of it is
// allowed. In: a space as its author wrote it; out: configurations in a fixed order. Invariant: the
// order follows from the space alone; a product too large to be searched is refused before it is
// made.
#pragma once

#include "core/json.hpp"

#include <optional>
#include <vector>

namespace hebe::tune {

/// The product of these values lies between the two.
struct ProductConstraint {
  std::vector<std::string> names;
  std::optional<double> at_least, at_most;
};

struct ConfigurationSpace {
  static constexpr std::size_t kMostConfigurations = 100'000;

  Json values = Json::object(); ///< name to a list of values
  std::vector<ProductConstraint> constraints;

  /// bad_spec, naming `where`: the product is larger than kMostConfigurations, a list has a value
  /// twice, a constraint names what is in neither the space nor `also`, or what is no number.
  [[nodiscard]] Status check(const Json& also, const std::string& where) const;
  /// Every allowed configuration; `also` are values that constraints may name beside it (a shape's
  /// sizes). bad_spec: none is allowed.
  [[nodiscard]] Result<std::vector<Json>> configurations(const Json& also,
                                                         const std::string& where) const;
};

} // namespace hebe::tune
