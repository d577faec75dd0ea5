// The rows of one board as a hash table. In: a profile; out: the choice for an operation, sizes and
// dtype in constant time. Invariant: immutable once made but for its note of what was missing,
// which is atomic; of an exact and a bucketed row that both hold a shape the more exact one is
// found.
#pragma once

#include "tune/profile.hpp"

#include <hebe/dispatch.hpp>

#include <array>
#include <atomic>
#include <memory>

namespace hebe::tune {

class DispatchTable {
public:
  static constexpr std::size_t kMostDimensions = 8;

  /// not_found: no row is of that board. bad_schema: rows of one operation and dtype name other
  /// dimensions, or more than eight.
  [[nodiscard]] static Result<std::unique_ptr<const DispatchTable>> of(const Profile& profile,
                                                                       const std::string& board);
  /// `other_sizes`: whether the operation has rows, and none of so many sizes.
  [[nodiscard]] const dispatch::Choice* find(std::string_view operation,
                                             std::span<const std::int64_t> sizes,
                                             std::string_view dtype,
                                             bool& other_sizes) const noexcept;
  /// True once for each operation and dtype, whatever the threads.
  [[nodiscard]] bool first_miss(std::string_view operation, std::string_view dtype) const noexcept;
  [[nodiscard]] std::vector<std::string> dimensions(std::string_view operation,
                                                    std::string_view dtype) const;
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

private:
  using Sizes = std::array<std::int64_t, kMostDimensions>;
  // Rows of one operation and dtype. Bit i of a mask: dimension i is bucketed.
  struct Family {
    std::string operation, dtype;
    std::vector<std::string> dimensions;
    std::vector<unsigned> masks;
  };
  struct Row {
    std::uint64_t hash = 0;
    const Family* family = nullptr;
    unsigned mask = 0;
    Sizes sizes{};
    dispatch::Choice choice;
  };

  DispatchTable() = default;
  [[nodiscard]] const Family* family_of(std::string_view operation, std::string_view dtype,
                                        std::uint64_t hash) const noexcept;
  [[nodiscard]] Status add(const ProfileRow& row, std::vector<std::unique_ptr<Family>>& families);
  void index_all();

  std::vector<std::unique_ptr<Family>> families_;
  std::vector<Row> rows_;
  std::vector<const Family*> family_slots_; // open addressing, at most half full
  std::vector<const Row*> row_slots_;
  std::vector<std::string> names_;
  mutable std::array<std::atomic<std::uint64_t>, 256> missed_{};
};

} // namespace hebe::tune
