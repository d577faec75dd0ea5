#include "ttgir/memory_view.hpp"

#include "ttgir/strided_copy.hpp"

#include <algorithm>
#include <memory>

namespace hebe::ttgir {

std::int64_t MemoryView::elements() const {
  std::int64_t n = 1;
  for (std::uint32_t d = 0; d < rank; ++d) n *= shape[d];
  return n;
}

bool MemoryView::dense() const {
  std::int64_t expected = 1;
  for (std::uint32_t d = rank; d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

std::size_t MemdescType::elements() const {
  std::size_t n = 1;
  for (const auto d : shape) n *= static_cast<std::size_t>(d);
  return n;
}

std::optional<MemdescType> memdesc_type(const Value& value) {
  if (!value.type || !value.type->is(Type::Kind::memdesc) ||
      value.type->shape.size() > MemoryView::kMaxRank)
    return std::nullopt;
  const auto format = memory_format(value.type->leaf());
  if (!format) return std::nullopt;
  return MemdescType{*format, {value.type->shape.begin(), value.type->shape.end()}};
}

Lanes allocate_view(Program& program, const MemdescType& type) {
  const std::size_t bytes = type.elements() * type.format.bytes;
  Lanes memory = program.dense(bytes);
  std::memset(memory.bytes(), program.options.poison_undefined ? 0xcc : 0, bytes);
  MemoryView view;
  view.rank = static_cast<std::uint32_t>(type.shape.size());
  const auto strides = dense_strides(type.shape);
  std::ranges::copy(type.shape, view.shape.begin());
  std::ranges::copy(strides, view.strides.begin());
  Lanes handle = program.dense(sizeof view);
  std::memcpy(handle.bytes(), &view, sizeof view);
  handle.storage()->behind = memory.storage();
  ++memory.storage()->users;
  return handle;
}

Lanes derive_view(Program& program, const Lanes& from, const MemoryView& view) {
  Lanes handle = program.dense(sizeof view);
  std::memcpy(handle.bytes(), &view, sizeof view);
  handle.storage()->behind = from.storage()->behind;
  ++handle.storage()->behind->users;
  return handle;
}

const MemoryView& view_of(const Lanes& memdesc) { return *memdesc.data<MemoryView>(); }

Lanes read_view(Program& program, const Lanes& memdesc, const MemoryFormat& format) {
  const MemoryView& view = view_of(memdesc);
  const auto count = static_cast<std::size_t>(view.elements());
  const std::byte* memory = memdesc.storage()->behind->bytes + view.offset;
  Lanes out = program.dense(count * format.lane_size);
  if (program.traffic) program.traffic->shared_read(count * format.bytes);
  if (view.dense()) {
    format.decode(memory, out.bytes(), count);
    return out;
  }
  Lanes packed = program.dense(count * format.bytes);
  copy_strided(packed.bytes(), memory, format.bytes, std::span(view.shape).first(view.rank),
               std::span(view.strides).first(view.rank));
  format.decode(packed.bytes(), out.bytes(), count);
  return out;
}

void write_view(Program& program, const Lanes& memdesc, const MemoryFormat& format,
                const Lanes& values) {
  const MemoryView& view = view_of(memdesc);
  const auto count = static_cast<std::size_t>(view.elements());
  std::byte* memory = memdesc.storage()->behind->bytes + view.offset;
  if (program.traffic) program.traffic->shared_written(count * format.bytes);
  if (view.dense() && !values.uniform()) return format.encode(values.bytes(), memory, count);
  Lanes packed = program.dense(count * format.bytes);
  if (values.uniform())
    for (std::size_t i = 0; i < count; ++i)
      format.encode(values.bytes(), packed.bytes() + i * format.bytes, 1);
  else
    format.encode(values.bytes(), packed.bytes(), count);
  scatter_strided(memory, packed.bytes(), format.bytes, std::span(view.shape).first(view.rank),
                  std::span(view.strides).first(view.rank));
}

} // namespace hebe::ttgir
