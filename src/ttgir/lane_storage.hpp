// Where the interpreter keeps values. In: sizes; out: lanes that are shared until they are written.
// Invariant: storage belongs to one thread's pool and is never touched by another; lanes in dense
// form are 64-byte aligned; a value whose elements are all equal takes no storage at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace hebe::ttgir {

class Pool;

/// A block of bytes with a count of its users.
struct Storage {
  std::byte* bytes = nullptr;
  std::size_t capacity = 0;
  Pool* pool = nullptr;
  Storage* behind = nullptr; ///< what a view (memdesc) stands on: kept while the view is
  std::uint32_t users = 0;
  std::uint8_t size_class = 0;
};

class Pool {
public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();
  [[nodiscard]] Storage* take(std::size_t bytes);
  void give_back(Storage* storage);
  [[nodiscard]] std::size_t held() const { return held_; } ///< bytes taken from the system

private:
  static constexpr std::size_t kClasses = 48;
  std::array<std::vector<Storage*>, kClasses> free_;
  std::vector<Storage*> all_;
  std::size_t held_ = 0;
};

/// The elements of one value: uniform (one element stands for all) or dense, in row-major order.
class Lanes {
public:
  Lanes() = default;
  Lanes(const Lanes& o) : storage_(o.storage_), word_(o.word_) {
    if (storage_) ++storage_->users;
  }
  Lanes(Lanes&& o) noexcept : storage_(std::exchange(o.storage_, nullptr)), word_(o.word_) {}
  Lanes& operator=(Lanes o) noexcept {
    std::swap(storage_, o.storage_);
    std::swap(word_, o.word_);
    return *this;
  }
  ~Lanes() { drop(); }

  template <class T> [[nodiscard]] static Lanes of(T element) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    Lanes lanes;
    std::memcpy(&lanes.word_, &element, sizeof element);
    return lanes;
  }
  /// Uninitialised, `bytes` long.
  [[nodiscard]] static Lanes dense(Pool& pool, std::size_t bytes) {
    Lanes lanes;
    lanes.storage_ = pool.take(bytes);
    return lanes;
  }
  /// The same storage from `offset` bytes on.
  [[nodiscard]] Lanes from(std::size_t offset) const {
    Lanes lanes(*this);
    if (storage_) lanes.word_ += offset;
    return lanes;
  }

  [[nodiscard]] bool uniform() const { return storage_ == nullptr; }
  /// Nobody else sees these elements, and they begin their storage.
  [[nodiscard]] bool sole() const { return storage_ && storage_->users == 1 && word_ == 0; }
  [[nodiscard]] std::size_t capacity() const { return storage_ ? storage_->capacity : 0; }
  [[nodiscard]] Storage* storage() const { return storage_; }

  /// The first element's address, of either form.
  [[nodiscard]] const std::byte* bytes() const {
    return storage_ ? storage_->bytes + word_ : reinterpret_cast<const std::byte*>(&word_);
  }
  [[nodiscard]] std::byte* bytes() {
    return storage_ ? storage_->bytes + word_ : reinterpret_cast<std::byte*>(&word_);
  }
  template <class T> [[nodiscard]] const T* data() const {
    return reinterpret_cast<const T*>(bytes());
  }
  template <class T> [[nodiscard]] T* data() { return reinterpret_cast<T*>(bytes()); }
  /// Element `i` of either form.
  template <class T> [[nodiscard]] T at(std::size_t i) const {
    T element;
    std::memcpy(&element, bytes() + (storage_ ? i * sizeof(T) : 0), sizeof element);
    return element;
  }

private:
  void drop() {
    if (storage_ && --storage_->users == 0) storage_->pool->give_back(storage_);
  }
  Storage* storage_ = nullptr;
  std::uint64_t word_ =
      0; ///< the element of a uniform value; the offset into storage of a dense one
};

} // namespace hebe::ttgir
