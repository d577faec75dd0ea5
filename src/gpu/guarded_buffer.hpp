// A device buffer between two canaries. In: a size; out: an address inside. Invariant: a kernel
// that writes outside its buffer changes a canary, and intact() names which side.
#pragma once

#include "gpu/device.hpp"

namespace hebe::gpu {

class GuardedBuffer {
public:
  /// Bytes of canary on each side; also keeps the address 256-byte aligned, as Triton's
  /// divisibility attribute promises.
  static constexpr std::size_t kCanary = 512;

  [[nodiscard]] static Result<GuardedBuffer> make(Device& device, std::string name, Bytes size);
  GuardedBuffer(GuardedBuffer&& o) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& o) noexcept;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();

  [[nodiscard]] DevicePointer address() const { return base_ + kCanary; }
  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// wrong_output, naming the buffer and the side, when a canary was overwritten.
  [[nodiscard]] Status intact() const;

private:
  GuardedBuffer(Device& device, std::string name, DevicePointer base, Bytes size)
      : device_(&device), name_(std::move(name)), base_(base), size_(size) {}
  Device* device_;
  std::string name_;
  DevicePointer base_ = 0;
  Bytes size_;
};

} // namespace hebe::gpu
