#include "ttgir/lane_storage.hpp"

#include <bit>
#include <new>

namespace hebe::ttgir {
namespace {
constexpr std::align_val_t kAlignment{64};
constexpr unsigned kSmallest = 6; // 64 bytes; sizes are powers of two, as Triton's shapes are

std::uint8_t class_of(std::size_t bytes) {
  const auto power = static_cast<unsigned>(std::bit_width(bytes > 1 ? bytes - 1 : 1));
  return static_cast<std::uint8_t>(power > kSmallest ? power - kSmallest : 0);
}
} // namespace

Pool::~Pool() {
  for (Storage* each : all_) {
    ::operator delete(each->bytes, kAlignment);
    delete each;
  }
}

Storage* Pool::take(std::size_t bytes) {
  const auto size_class = class_of(bytes);
  const std::size_t size = std::size_t{1} << (size_class + kSmallest);
  auto& free = free_.at(size_class);
  if (!free.empty()) {
    Storage* storage = free.back();
    free.pop_back();
    storage->users = 1;
    return storage;
  }
  auto made = std::make_unique<Storage>();
  all_.reserve(all_.size() + 1);
  made->bytes = static_cast<std::byte*>(::operator new(size, kAlignment));
  made->capacity = size;
  made->pool = this;
  made->users = 1;
  made->size_class = size_class;
  held_ += size;
  all_.push_back(made.get());
  return made.release();
}

void Pool::give_back(Storage* storage) {
  Storage* behind = std::exchange(storage->behind, nullptr);
  free_[storage->size_class].push_back(storage);
  if (behind && --behind->users == 0) give_back(behind);
}

} // namespace hebe::ttgir
