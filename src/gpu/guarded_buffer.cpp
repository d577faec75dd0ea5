#include "gpu/guarded_buffer.hpp"

#include <array>
#include <utility>

namespace hebe::gpu {
namespace {
using Canary = std::array<std::byte, GuardedBuffer::kCanary>;

Canary canary() {
  Canary c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<std::byte>(0xC5 ^ (i * 37));
  return c;
}
} // namespace

Result<GuardedBuffer> GuardedBuffer::make(Device& device, std::string name, Bytes size) {
  HEBE_TRY(const auto base, device.allocate({size.count + 2 * kCanary}));
  GuardedBuffer buffer(device, std::move(name), base, size);
  const auto pattern = canary();
  HEBE_CHECK(device.write(base, pattern));
  HEBE_CHECK(device.write(base + kCanary + size.count, pattern));
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& o) noexcept
    : device_(o.device_), name_(std::move(o.name_)), base_(std::exchange(o.base_, 0)),
      size_(o.size_) {}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& o) noexcept {
  std::swap(device_, o.device_);
  std::swap(name_, o.name_);
  std::swap(base_, o.base_);
  std::swap(size_, o.size_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (base_ != 0) device_->release(base_);
}

Status GuardedBuffer::intact() const {
  const auto pattern = canary();
  for (const bool after : {false, true}) {
    Canary found{};
    HEBE_CHECK(device_->read(found, after ? base_ + kCanary + size_.count : base_));
    if (found != pattern)
      return refuse(RefusalCode::wrong_output,
                    "the kernel wrote outside buffer \"" + name_ + "\", " +
                        (after ? "behind its end" : "before its start"),
                    "check the kernel's masks and offsets");
  }
  return {};
}

} // namespace hebe::gpu
