#include "ttgir/global_memory.hpp"

#include <fmt/format.h>

namespace hebe::ttgir {

std::uint64_t address_of_buffer(std::size_t number) {
  return (static_cast<std::uint64_t>(number) + 1) << kBufferShift | kBufferOrigin;
}

std::string GlobalMemory::describe(std::string_view verb, std::uint64_t address,
                                   std::size_t bytes) const {
  const auto amount = fmt::format("{} {} byte{}", verb, bytes, bytes == 1 ? "" : "s");
  const std::size_t number = buffer_of(address);
  if (number == kScratchBuffer)
    return fmt::format("{} at byte offset {} of the program's scratch memory", amount,
                       offset_of(address));
  if (number >= buffers_.size() || buffers_[number].data == nullptr)
    return fmt::format("{} at address {:#x}, which is in no argument{}", amount, address,
                       address == 0 ? " (a null pointer)" : "");
  const Buffer& buffer = buffers_[number];
  return fmt::format("{} at byte offset {} of '{}', which has {} bytes", amount, offset_of(address),
                     buffer.name, buffer.size);
}

} // namespace hebe::ttgir
