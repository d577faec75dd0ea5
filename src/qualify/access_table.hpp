// Every access to global memory in a kernel's TTGIR. In: a function; out: one row per load, store,
// atomic, asynchronous copy and descriptor operation: whose memory, how wide, under which mask and
// hints, in which loop. Invariant: static; what the layout or the pointer does not tell is absent.
#pragma once

#include "core/json.hpp"
#include "ttgir/ir.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hebe::qualify {

struct TableAccess {
  enum class Kind : std::uint8_t {
    load,
    store,
    atomic,
    async_copy,
    descriptor_load,
    descriptor_store
  };
  Kind kind = Kind::load;
  std::string op;       ///< "tt.load"
  std::string value;    ///< of the result; empty for stores
  std::string argument; ///< "X", "X or Y"; "?": may be any
  std::string element;  ///< "f16"
  std::int64_t elements = 1;
  std::optional<std::uint64_t> bytes;        ///< a program, for one execution, no lane masked off
  std::optional<std::uint32_t> vector_bytes; ///< side by side in one thread, by the layout
  bool strided = false; ///< neighbours of the text's order are not the layout's: its fastest
                        ///< dimension is not the last
  bool masked = false;
  bool is_volatile = false;
  std::string cache, eviction; ///< empty: no hint
  std::uint32_t depth = 0;     ///< loops around it
  std::uint32_t loop_line = 0; ///< of the innermost loop; 0: in none
  std::uint32_t line = 0;
};
[[nodiscard]] std::string_view name_of(TableAccess::Kind kind);

struct AccessTable {
  std::vector<TableAccess> rows; ///< in the order of the text
  std::uint32_t layout_conversions = 0;
  std::uint64_t converted_bytes = 0; ///< of their tensors, each once
  [[nodiscard]] const TableAccess* at(std::uint32_t line) const;
};

[[nodiscard]] AccessTable access_table(ttgir::Module& module, ttgir::Operation& function);
[[nodiscard]] Json to_json(const AccessTable& table);

} // namespace hebe::qualify
