#include "qualify/access_table.hpp"

#include "ttgir/memory_effects.hpp"
#include "ttgir/view.hpp"

#include <algorithm>

namespace hebe::qualify {
namespace {

using ttgir::Op;
using ttgir::Operation;
using ttgir::Type;
using ttgir::Value;
using Kind = TableAccess::Kind;

/// A descriptor that the kernel makes in its scratch memory stands for the memory it was made of.
const Value& described(const Value& pointer, const ttgir::Module& module) {
  const Value* scratch = &pointer;
  if (scratch->op && scratch->op->is(Op::ttng_reinterpret_tensor_descriptor) &&
      !scratch->op->operands.empty())
    scratch = scratch->op->operands[0];
  if (!scratch->op || scratch->op->is(Op::tt_addptr)) return pointer;
  const Value* made_of = nullptr;
  ttgir::walk(module.top(), [&](Operation& op) {
    if (op.is(Op::ttng_tensormap_create) && op.operands.size() > 1 && op.operands[0] == scratch)
      made_of = op.operands[1];
  });
  return made_of ? *made_of : pointer;
}

std::string argument_of(const Value& pointer, const ttgir::Module& module,
                        std::span<const Value> arguments) {
  const auto origin = ttgir::origin_of(described(pointer, module));
  if (origin.anything || origin.arguments.empty()) return "?";
  std::string name;
  for (const auto number : origin.arguments)
    if (number < arguments.size())
      name += (name.empty() ? "" : " or ") + std::string(arguments[number].name);
  return name;
}

/// Elements that a thread holds side by side along the layout's fastest dimension; slices stand for
/// their parent's.
std::optional<std::int64_t> side_by_side(const ttgir::Module& module, const Type& type) {
  if (type.shape.empty()) return 1;
  std::string_view layout = module.resolve(type.encoding);
  std::optional<std::int64_t> removed;
  if (const auto parent = ttgir::parameter(layout, "parent");
      parent && layout.starts_with("#ttg.slice")) {
    removed = ttgir::integer(ttgir::parameter(layout, "dim").value_or(""));
    layout = module.resolve(*parent);
  }
  const auto each = ttgir::parameter(layout, "sizePerThread");
  const auto order = ttgir::parameter(layout, "order");
  if (!layout.starts_with("#ttg.blocked") || !each || !order) return std::nullopt;
  const auto sizes = ttgir::integers(*each), dims = ttgir::integers(*order);
  if (!sizes || !dims) return std::nullopt;
  for (const auto dim : *dims) {
    if (removed && dim == *removed) continue;
    if (dim < 0 || static_cast<std::size_t>(dim) >= sizes->size()) return std::nullopt;
    const auto kept = static_cast<std::size_t>(removed && dim > *removed ? dim - 1 : dim);
    const auto size = (*sizes)[static_cast<std::size_t>(dim)];
    return kept < type.shape.size() ? std::min(size, type.shape[kept]) : size;
  }
  return 1;
}

/// Whether the fastest dimension of a tensor's layout is not its last one: then neighbours in the
/// order that the interpreter counts in are not neighbours of a warp.
bool strided(const ttgir::Module& module, const Type& type) {
  if (type.shape.size() < 2) return false;
  const auto order = ttgir::parameter(module.resolve(type.encoding), "order");
  const auto dims = order ? ttgir::integers(*order) : std::nullopt;
  return !dims || dims->empty() ||
         dims->front() != static_cast<std::int64_t>(type.shape.size()) - 1;
}

class Builder {
public:
  Builder(ttgir::Module& module, Operation& function)
      : module_(module), arguments_(ttgir::Function{function}.arguments()) {}

  void visit(Operation& op) {
    switch (op.code) {
    case Op::tt_load:
      if (auto* row = add(op, Kind::load, 0, op.results.empty() ? nullptr : &op.result(), 1)) {
        const auto load = ttgir::Load::of(op);
        if (load) row->is_volatile = load->is_volatile();
      }
      break;
    case Op::tt_store:
      add(op, Kind::store, 0, operand(op, 1), 2);
      break;
    case Op::tt_atomic_rmw:
      add(op, Kind::atomic, 0, operand(op, 1), 2);
      break;
    case Op::tt_atomic_cas:
      add(op, Kind::atomic, 0, operand(op, 2), kNoMask);
      break;
    case Op::ttg_async_copy_global_to_local:
      add(op, Kind::async_copy, 0, operand(op, 1), 2);
      break;
    case Op::tt_descriptor_load:
    case Op::tt_descriptor_gather:
      add(op, Kind::descriptor_load, 0, op.results.empty() ? nullptr : &op.result(), kNoMask);
      break;
    case Op::ttng_async_tma_copy_global_to_local:
      add(op, Kind::descriptor_load, 0, operand(op, 2), kNoMask);
      break;
    case Op::ttng_async_tma_gather:
      add(op, Kind::descriptor_load, 0, operand(op, 3), kNoMask);
      break;
    case Op::tt_descriptor_store:
    case Op::ttng_async_tma_copy_local_to_global:
      add(op, Kind::descriptor_store, 0, operand(op, 2), kNoMask);
      break;
    case Op::tt_descriptor_scatter:
    case Op::ttng_async_tma_scatter:
      add(op, Kind::descriptor_store, 0, operand(op, 3), kNoMask);
      break;
    case Op::tt_descriptor_reduce:
    case Op::ttng_async_tma_reduce:
      add(op, Kind::atomic, 0, operand(op, 2), kNoMask);
      break;
    case Op::ttg_convert_layout:
      ++table.layout_conversions;
      if (!op.results.empty() && op.result().type)
        table.converted_bytes += bytes_of(*op.result().type).value_or(0);
      break;
    default:
      break;
    }
  }
  AccessTable table;

private:
  static constexpr std::size_t kNoMask = 99;

  static const Value* operand(const Operation& op, std::size_t segment) {
    const auto found = op.segment(segment);
    return found.empty() ? nullptr : found[0];
  }
  static std::optional<std::uint64_t> bytes_of(const Type& type) {
    const Type& leaf = type.leaf();
    const unsigned bits =
        leaf.is(Type::Kind::pointer)
            ? 64
            : std::max(leaf.scalar == ttgir::Scalar::i1 ? 8U : 0U, ttgir::bits_of(leaf.scalar));
    if (bits == 0) return std::nullopt;
    return static_cast<std::uint64_t>(type.elements()) * bits / 8;
  }

  TableAccess* add(Operation& op, Kind kind, std::size_t pointer, const Value* moved,
                   std::size_t mask) {
    TableAccess row;
    row.kind = kind;
    row.op = op.name;
    row.value = op.results.empty() ? "" : std::string(op.results[0].name);
    row.line = op.line;
    const Value* from = operand(op, pointer);
    row.argument = from ? argument_of(*from, module_, arguments_) : "?";
    row.masked = mask != kNoMask && operand(op, mask) != nullptr;
    if (moved && moved->type) {
      const Type& type = *moved->type;
      row.element = type.leaf().text;
      row.elements = type.elements();
      row.bytes = bytes_of(type);
      // Copies have the layout of their pointers; a descriptor's access belongs to no thread.
      const Type* layout = kind == Kind::async_copy && from ? from->type : &type;
      if (layout && kind != Kind::descriptor_load && kind != Kind::descriptor_store && row.bytes) {
        row.strided = strided(module_, *layout);
        if (const auto wide = side_by_side(module_, *layout))
          row.vector_bytes = static_cast<std::uint32_t>(
              std::min<std::uint64_t>(16, static_cast<std::uint64_t>(*wide) * *row.bytes /
                                              static_cast<std::uint64_t>(row.elements)));
      }
    }
    // What the text leaves out is the default: only a hint that is written is one.
    row.cache = op.text_of("cache");
    row.eviction = op.text_of("evict");
    if (const auto load = ttgir::Load::of(op)) {
      row.cache = load->cache();
      row.eviction = load->eviction();
    } else if (const auto store = ttgir::Store::of(op)) {
      row.cache = store->cache();
      row.eviction = store->eviction();
    }
    if (row.cache == "none") row.cache.clear();
    if (row.eviction == "evict_normal") row.eviction.clear();
    for (const Operation* around = op.parent(); around; around = around->parent())
      if (around->is(Op::scf_for) || around->is(Op::scf_while)) {
        if (row.depth++ == 0) row.loop_line = around->line;
      }
    table.rows.push_back(std::move(row));
    return &table.rows.back();
  }

  ttgir::Module& module_;
  std::span<const Value> arguments_;
};

} // namespace

std::string_view name_of(Kind kind) {
  constexpr std::string_view names[] = {"load",       "store",           "atomic",
                                        "async_copy", "descriptor_load", "descriptor_store"};
  return names[static_cast<std::size_t>(kind)];
}

const TableAccess* AccessTable::at(std::uint32_t line) const {
  const auto found = std::ranges::find(rows, line, &TableAccess::line);
  return found == rows.end() ? nullptr : &*found;
}

AccessTable access_table(ttgir::Module& module, Operation& function) {
  Builder builder(module, function);
  ttgir::walk(function, [&](Operation& op) { builder.visit(op); });
  return std::move(builder.table);
}

Json to_json(const AccessTable& table) {
  Json rows = Json::array();
  for (const TableAccess& each : table.rows) {
    Json row = {{"kind", name_of(each.kind)}, {"op", each.op},
                {"line", each.line},          {"argument", each.argument},
                {"element", each.element},    {"elements", each.elements},
                {"masked", each.masked},      {"depth", each.depth}};
    row["bytes"] = each.bytes ? Json(*each.bytes) : Json();
    row["vector_bytes"] = each.vector_bytes ? Json(*each.vector_bytes) : Json();
    if (!each.value.empty()) row["value"] = each.value;
    if (each.is_volatile) row["volatile"] = true;
    if (!each.cache.empty()) row["cache"] = each.cache;
    if (!each.eviction.empty()) row["eviction"] = each.eviction;
    if (each.loop_line != 0) row["loop_line"] = each.loop_line;
    rows.push_back(std::move(row));
  }
  return {{"provenance", "static, of the TTGIR; bytes of one execution with no lane masked off"},
          {"accesses", rows},
          {"layout_conversions", table.layout_conversions},
          {"converted_bytes", table.converted_bytes}};
}

} // namespace hebe::qualify
