// Which shapes a profile's row stands for. In: named sizes ("m", 200), and which of them are
// bucketed; out: a bucket, as text too: "m<=256,n=4096,k=4096". Invariant: a bucketed dimension
// holds the sizes above half a power of two and up to it, so every shape lies in exactly one bucket
// of a set of bucketed names; one bucket has one text.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hebe::tune {

struct NamedSize {
  std::string name;
  std::int64_t size = 0;
};

struct BucketDimension {
  std::string name;
  std::int64_t size = 0; ///< exact, or the bucket's upper end
  bool bucketed = false;
  bool operator==(const BucketDimension&) const = default;
};

using ShapeBucket = std::vector<BucketDimension>;

/// The least power of two that holds `size`; of 1 it is 1. `size` is 1 to 2^62.
[[nodiscard]] std::int64_t bucket_end(std::int64_t size);
/// The bucket of a shape: `bucketed` names the dimensions that share rows, the others are exact.
[[nodiscard]] Result<ShapeBucket> bucket_of(std::span<const NamedSize> shape,
                                            std::span<const std::string> bucketed);
[[nodiscard]] std::string text_of(const ShapeBucket& bucket);
/// bad_schema: not as text_of writes it.
[[nodiscard]] Result<ShapeBucket> bucket_from(std::string_view text, std::string_view where);
/// Whether the shape, with these names in this order, lies in the bucket.
[[nodiscard]] bool holds(const ShapeBucket& bucket, std::span<const NamedSize> shape);

} // namespace hebe::tune
