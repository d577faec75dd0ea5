#include "ttgir/traffic.hpp"

#include <bit>

namespace hebe::ttgir {
namespace {
constexpr std::uint64_t kSector = 32;
}

TouchedBytes::TouchedBytes(const GlobalMemory& memory) {
  for (const auto& buffer : memory.buffers()) {
    const auto words = (buffer.size + 63) / 64;
    loaded_.emplace_back(words);
    stored_.emplace_back(words);
  }
}

void TouchedBytes::mark(Map& map, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  while (offset < end) {
    const std::uint64_t word = offset / 64, first = offset % 64;
    const std::uint64_t count = std::min(64 - first, end - offset);
    const std::uint64_t bits = (count == 64 ? ~0ULL : (1ULL << count) - 1) << first;
    // Most words are full after their first visit: reading is cheaper than a locked write.
    if ((map[word].load(std::memory_order_relaxed) & bits) != bits)
      map[word].fetch_or(bits, std::memory_order_relaxed);
    offset += count;
  }
}

std::uint64_t TouchedBytes::bits(const Map& map) {
  std::uint64_t sum = 0;
  for (const auto& word : map) sum += static_cast<std::uint64_t>(std::popcount(word.load()));
  return sum;
}

std::uint64_t TouchedBytes::sectors(std::size_t buffer) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < loaded_[buffer].size(); ++i) {
    const std::uint64_t touched = loaded_[buffer][i].load() | stored_[buffer][i].load();
    sum += (touched & 0xffffffffULL) != 0;
    sum += (touched >> 32) != 0;
  }
  return sum;
}

Traffic::Traffic(TouchedBytes& touched, std::size_t instructions, std::size_t buffers,
                 bool with_rereads)
    : by_instruction(instructions), by_buffer(buffers), touched_(touched) {
  if (with_rereads) rereads.emplace(buffers);
}

void Traffic::begin(std::uint32_t instruction, std::uint64_t lanes) {
  instruction_ = instruction;
  lanes_ = lanes;
  last_sector_ = ~0ULL;
  if (rereads) rereads->begin(instruction);
}

void Traffic::range(Way way, std::uint64_t address, std::uint64_t bytes, std::uint64_t elements) {
  const std::size_t buffer = buffer_of(address);
  if (buffer >= by_buffer.size()) return; // the program's scratch memory
  const auto offset = static_cast<std::uint64_t>(offset_of(address));
  auto& entries = by_instruction[instruction_];
  Entry* entry = nullptr;
  for (auto& each : entries)
    if (each.buffer == buffer) entry = &each;
  if (!entry) entry = &entries.emplace_back(Entry{static_cast<std::uint32_t>(buffer), {}});
  AccessCounts& counts = entry->counts;
  if (last_sector_ == ~0ULL) {
    ++counts.executions;
    counts.lanes += lanes_;
  }
  counts.active += elements;
  counts.bytes += bytes;
  const std::uint64_t first = address / kSector, last = (address + bytes - 1) / kSector;
  counts.sectors += last - first + (first == last_sector_ ? 0 : 1);
  last_sector_ = last;
  program_bytes_ += bytes;
  Bytes& sum = by_buffer[buffer];
  switch (way) {
  case Way::load:
    sum.loaded += bytes;
    touched_.load(buffer, offset, bytes);
    if (rereads) rereads->load(buffer, offset, bytes);
    break;
  case Way::store:
    sum.stored += bytes;
    touched_.store(buffer, offset, bytes);
    if (rereads) rereads->write(buffer, offset, bytes);
    break;
  case Way::atomic:
    sum.atomic += bytes;
    touched_.load(buffer, offset, bytes);
    touched_.store(buffer, offset, bytes);
    if (rereads) rereads->write(buffer, offset, bytes);
    break;
  }
}

} // namespace hebe::ttgir
