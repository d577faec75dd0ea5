#include "tune/dispatch_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace hebe::tune {
namespace {

constexpr std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
  h = (h ^ x) * 0x9E3779B97F4A7C15ULL;
  return h ^ (h >> 32);
}

// Eight bytes at a time: names are short, and the table compares them whole.
std::uint64_t hash_text(std::uint64_t h, std::string_view text) {
  h = mix(h, text.size());
  while (!text.empty()) {
    std::uint64_t word = 0;
    const auto n = std::min<std::size_t>(8, text.size());
    std::memcpy(&word, text.data(), n);
    h = mix(h, word);
    text.remove_prefix(n);
  }
  return h;
}

std::uint64_t family_hash(std::string_view operation, std::string_view dtype) {
  return hash_text(hash_text(1, operation), dtype);
}

template <class Slots> std::size_t slot_of(const Slots& slots, std::uint64_t hash) {
  return static_cast<std::size_t>(hash) & (slots.size() - 1);
}

template <class T> void put(std::vector<const T*>& slots, std::uint64_t hash, const T* value) {
  auto at = slot_of(slots, hash);
  while (slots[at] != nullptr) at = (at + 1) & (slots.size() - 1);
  slots[at] = value;
}

} // namespace

Status DispatchTable::add(const ProfileRow& row, std::vector<std::unique_ptr<Family>>& families) {
  HEBE_TRY(const auto bucket, bucket_from(row.key.shape, text_of(row.key)));
  std::vector<std::string> dimensions;
  Row out;
  if (bucket.size() > kMostDimensions)
    return refuse(RefusalCode::bad_schema,
                  fmt::format("{} dimensions are more than {}", bucket.size(), kMostDimensions), {},
                  text_of(row.key));
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    dimensions.push_back(bucket[i].name);
    out.sizes[i] = bucket[i].size;
    if (bucket[i].bucketed) out.mask |= 1U << i;
  }
  const auto same = [&](const auto& f) {
    return f->operation == row.key.operation && f->dtype == row.key.dtype;
  };
  auto hit = std::find_if(families.begin(), families.end(), same);
  if (hit == families.end()) {
    families.push_back(
        std::make_unique<Family>(Family{row.key.operation, row.key.dtype, dimensions, {}}));
    hit = families.end() - 1;
  }
  auto& family = **hit;
  if (family.dimensions != dimensions)
    return refuse(RefusalCode::bad_schema,
                  fmt::format("it has the dimensions {}, another row of its operation has {}",
                              fmt::join(dimensions, ","), fmt::join(family.dimensions, ",")),
                  {}, text_of(row.key));
  if (std::find(family.masks.begin(), family.masks.end(), out.mask) == family.masks.end())
    family.masks.push_back(out.mask);
  out.family = &family;
  HEBE_TRY(auto configuration, canonical_json(row.implementation.configuration));
  out.choice = {0,
                row.implementation.name,
                std::move(configuration),
                row.implementation.artifact_sha256.value_or(""),
                row.key.shape,
                std::string(name_of(row.meter.provenance)),
                row.energy_nj.value};
  rows_.push_back(std::move(out));
  return {};
}

void DispatchTable::index_all() {
  for (const auto& row : rows_) names_.push_back(row.choice.name);
  std::sort(names_.begin(), names_.end());
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  family_slots_.assign(std::bit_ceil(2 * families_.size()), nullptr);
  row_slots_.assign(std::bit_ceil(2 * rows_.size()), nullptr);
  for (const auto& family : families_) {
    std::sort(family->masks.begin(), family->masks.end(), [](unsigned a, unsigned b) {
      return std::pair(std::popcount(a), a) < std::pair(std::popcount(b), b);
    });
    put(family_slots_, family_hash(family->operation, family->dtype),
        static_cast<const Family*>(family.get()));
  }
  for (auto& row : rows_) {
    row.choice.index = static_cast<std::uint32_t>(
        std::lower_bound(names_.begin(), names_.end(), row.choice.name) - names_.begin());
    row.hash = mix(family_hash(row.family->operation, row.family->dtype), row.mask);
    for (std::size_t i = 0; i < row.family->dimensions.size(); ++i)
      row.hash = mix(row.hash, static_cast<std::uint64_t>(row.sizes[i]));
    put(row_slots_, row.hash, static_cast<const Row*>(&row));
  }
}

Result<std::unique_ptr<const DispatchTable>> DispatchTable::of(const Profile& profile,
                                                               const std::string& board) {
  std::unique_ptr<DispatchTable> table(new DispatchTable);
  for (const auto& [key, row] : profile.rows())
    if (key.board == board) HEBE_CHECK(table->add(row, table->families_));
  if (table->rows_.empty())
    return refuse(RefusalCode::not_found, fmt::format("the profile has no row of {}", board),
                  "tune on this board");
  table->index_all();
  return std::unique_ptr<const DispatchTable>(std::move(table));
}

const DispatchTable::Family* DispatchTable::family_of(std::string_view operation,
                                                      std::string_view dtype,
                                                      std::uint64_t hash) const noexcept {
  for (auto at = slot_of(family_slots_, hash); family_slots_[at] != nullptr;
       at = (at + 1) & (family_slots_.size() - 1))
    if (family_slots_[at]->operation == operation && family_slots_[at]->dtype == dtype)
      return family_slots_[at];
  return nullptr;
}

const dispatch::Choice* DispatchTable::find(std::string_view operation,
                                            std::span<const std::int64_t> sizes,
                                            std::string_view dtype,
                                            bool& other_sizes) const noexcept {
  const auto base = family_hash(operation, dtype);
  const auto* family = family_of(operation, dtype, base);
  other_sizes = family != nullptr && sizes.size() != family->dimensions.size();
  if (family == nullptr || other_sizes) return nullptr;
  for (const auto size : sizes)
    if (size < 1 || size > std::int64_t{1} << 62) return nullptr;
  for (const auto mask : family->masks) {
    Sizes wanted{};
    auto hash = mix(base, mask);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      wanted[i] = ((mask >> i) & 1U) != 0 ? bucket_end(sizes[i]) : sizes[i];
      hash = mix(hash, static_cast<std::uint64_t>(wanted[i]));
    }
    for (auto at = slot_of(row_slots_, hash); row_slots_[at] != nullptr;
         at = (at + 1) & (row_slots_.size() - 1)) {
      const auto& row = *row_slots_[at];
      if (row.hash == hash && row.family == family && row.mask == mask && row.sizes == wanted)
        return &row.choice;
    }
  }
  return nullptr;
}

bool DispatchTable::first_miss(std::string_view operation, std::string_view dtype) const noexcept {
  const auto hash = family_hash(operation, dtype) | 1; // 0 marks a free place
  for (std::size_t i = 0; i < missed_.size(); ++i) {
    auto& place = missed_[(static_cast<std::size_t>(hash >> 8) + i) % missed_.size()];
    std::uint64_t there = place.load(std::memory_order_relaxed);
    if (there == 0 && place.compare_exchange_strong(there, hash, std::memory_order_relaxed))
      return true;
    if (there == hash) return false;
  }
  return false; // full: said often enough
}

std::vector<std::string> DispatchTable::dimensions(std::string_view operation,
                                                   std::string_view dtype) const {
  const auto* family = family_of(operation, dtype, family_hash(operation, dtype));
  return family == nullptr ? std::vector<std::string>() : family->dimensions;
}

} // namespace hebe::tune
