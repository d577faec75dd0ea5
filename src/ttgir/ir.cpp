#include "ttgir/ir.hpp"

#include "ttgir/format.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>

namespace hebe::ttgir {

const Attribute* Operation::find(std::string_view attribute) const {
  const auto found = std::ranges::find(attributes, attribute, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::string_view Operation::text_of(std::string_view attribute) const {
  const auto* found = find(attribute);
  return found ? found->text : std::string_view{};
}

const Attribute* Operation::syntax(std::string_view attribute) const {
  for (const Attribute& each : attributes)
    if (each.place == Attribute::Place::syntax && each.name == attribute) return &each;
  return nullptr;
}

std::string_view Operation::syntax_text(std::string_view attribute) const {
  const auto* found = syntax(attribute);
  return found ? found->text : std::string_view{};
}

std::span<Value* const> Operation::segment(std::size_t number) const {
  if (segments.empty()) {
    if (number >= operands.size()) return {};
    return operands.subspan(number, 1);
  }
  if (number >= segments.size()) return {};
  std::size_t begin = 0;
  for (std::size_t i = 0; i < number; ++i) begin += segments[i];
  return operands.subspan(begin, segments[number]);
}

Operation* Operation::parent() const {
  return block && block->region ? block->region->parent : nullptr;
}

Module::Module(std::string source)
    : memory_(std::make_unique<std::pmr::monotonic_buffer_resource>(1 << 16)), types_(*memory_),
      source_(std::move(source)), aliases_(memory_.get()) {}
Module::~Module() = default; // everything else lies in memory_, and needs no destructor

Operation* Module::function(std::string_view name) const {
  for (Operation* op : body().operations) {
    if (!op->is(Op::tt_func)) continue;
    if (name.empty() ? op->text_of("sym_visibility") != "private" : op->text_of("sym_name") == name)
      return op;
  }
  return nullptr;
}

std::string_view Module::resolve(std::string_view text) const {
  for (int i = 0; i < 64; ++i) { // the reader refuses cycles; edits cannot make any
    const auto found = aliases_.find(text);
    if (found == aliases_.end()) return text;
    text = found->second;
  }
  return text;
}

template <class T> std::span<T> Module::make_list(std::size_t n) {
  if (n == 0) return {};
  auto* first = std::pmr::polymorphic_allocator<T>(memory_.get()).allocate(n);
  std::uninitialized_value_construct_n(first, n);
  return {first, n};
}
template std::span<Value> Module::make_list(std::size_t);
template std::span<Value*> Module::make_list(std::size_t);
template std::span<Attribute> Module::make_list(std::size_t);
template std::span<Region*> Module::make_list(std::size_t);
template std::span<Successor> Module::make_list(std::size_t);
template std::span<Piece> Module::make_list(std::size_t);
template std::span<std::uint8_t> Module::make_list(std::size_t);
template std::span<std::uint16_t> Module::make_list(std::size_t);

Operation& Module::make_operation() {
  return *std::pmr::polymorphic_allocator<Operation>(memory_.get()).new_object<Operation>();
}

Region& Module::make_region(Operation& parent) {
  std::pmr::polymorphic_allocator<Region> allocator(memory_.get());
  auto* region = allocator.allocate(1);
  return *new (region) Region{&parent, std::pmr::vector<Block*>(memory_.get())};
}

Block& Module::make_block(Region& region, bool placed) {
  std::pmr::polymorphic_allocator<Block> allocator(memory_.get());
  auto* block = new (allocator.allocate(1))
      Block{&region, {}, {}, {}, std::pmr::vector<Operation*>(memory_.get())};
  if (placed) region.blocks.push_back(block);
  return *block;
}

std::string_view Module::keep(std::string_view text) {
  if (text.empty()) return {};
  auto* kept = static_cast<char*>(memory_->allocate(text.size(), 1));
  std::memcpy(kept, text.data(), text.size());
  return {kept, text.size()};
}

} // namespace hebe::ttgir
