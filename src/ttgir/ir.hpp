// A module of TTIR or TTGIR as data: operations with operands, results, regions, in SSA form.
// In: what the reader found, and edits; out: what passes, the printer and the interpreter walk.
// Invariant: everything belongs to one Module and lives as long as it does; an edit that goes
// through Module marks it as edited.
#pragma once

#include "ttgir/attribute.hpp"
#include "ttgir/op.hpp"
#include "ttgir/type.hpp"

#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hebe::ttgir {

class Module;
struct Operation;
struct Block;
struct Region;

/// An SSA value: a result of an operation or an argument of a block.
struct Value {
  TypeRef type = nullptr;  ///< null: not known (result of an op that is not understood)
  std::string_view name;   ///< without '%'; results of one group share it
  Operation* op = nullptr; ///< defining operation; null for block arguments
  Block* block = nullptr;  ///< of a block argument
  std::uint32_t index = 0; ///< result or argument number
  std::uint32_t id = 0;    ///< dense in its module, for tables by value
  std::uint32_t line = 0;  ///< of the definition; 0: made by an edit
  std::int32_t group =
      -1; ///< position in a result group ("%r:3"), -1 where it has a name of its own
  std::string_view location;       ///< of a block argument, "loc(…)" or empty
  std::span<Attribute> attributes; ///< of a function's argument
};

/// Where an operation goes on: cf.br and cf.cond_br.
struct Successor {
  Block* block = nullptr;
  std::uint32_t first = 0, count = 0; ///< the operands that become its arguments
};

/// Part of an operation that is carried as text.
struct Piece {
  enum class Kind : std::uint8_t { text, operand, region, argument } kind = Kind::text;
  std::string_view text;   ///< of text
  std::uint32_t index = 0; ///< of an operand, a region or (in region 0's first block) an argument
};

struct Operation {
  enum class Form : std::uint8_t {
    table,   ///< by the assembly format of its row in ops.def
    custom,  ///< by code of its own (functions, loops, constants, branches)
    generic, ///< "name"(…) <{…}> ({…}) {…} : (…) -> …
    opaque,  ///< not understood: pieces of text with operands and regions between them
  };
  Op code = Op::unknown;
  Form form = Form::opaque;
  std::uint8_t format = 0; ///< which of the row's assembly formats
  std::string_view name;   ///< "arith.addf"
  Block* block = nullptr;
  std::span<Value*> operands;
  std::span<Value> results;
  std::span<const std::uint8_t> result_groups; ///< sizes; empty: each result has its own name
  std::span<const std::uint16_t> segments;     ///< operands per operand of the format; may be empty
  std::span<Attribute> attributes;
  std::span<Region*> regions;
  std::span<Successor> successors;
  std::span<const Piece> pieces; ///< of an opaque operation
  std::string_view location;     ///< "loc(#loc3)" or empty
  std::string_view spacing;      ///< what stands where versions of Triton differ in blanks
  std::string_view unread;       ///< why a known op is opaque: what its format expected
  std::uint32_t line = 0;        ///< 1-based; 0: made by an edit

  [[nodiscard]] bool is(Op o) const { return code == o; }
  [[nodiscard]] const OpInfo& info() const { return info_of(code); }
  [[nodiscard]] const Attribute* find(std::string_view attribute) const;
  [[nodiscard]] std::string_view text_of(std::string_view attribute) const; ///< "" where absent
  /// The same among what the op's own syntax has, for printing: a dictionary may hold the same
  /// name.
  [[nodiscard]] const Attribute* syntax(std::string_view attribute) const;
  [[nodiscard]] std::string_view syntax_text(std::string_view attribute) const;
  /// Operands of number `segment` of the format (empty where optional and absent).
  [[nodiscard]] std::span<Value* const> segment(std::size_t number) const;
  [[nodiscard]] Value& result(std::size_t i = 0) { return results[i]; }
  [[nodiscard]] const Value& result(std::size_t i = 0) const { return results[i]; }
  [[nodiscard]] Operation* parent() const; ///< the operation around it; null for the module
};

struct Block {
  Region* region = nullptr;
  std::string_view label;   ///< "bb0"; empty: not printed
  std::string_view comment; ///< what follows the label ("  // 2 preds: …")
  std::span<Value> arguments;
  std::pmr::vector<Operation*> operations;
};

struct Region {
  Operation* parent = nullptr;
  std::pmr::vector<Block*> blocks;
  [[nodiscard]] Block& front() const { return *blocks.front(); }
};

class Module {
public:
  explicit Module(std::string source);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  [[nodiscard]] std::string_view source() const { return source_; }
  [[nodiscard]] std::string_view before() const { return before_; } ///< aliases ahead of the module
  [[nodiscard]] std::string_view after() const { return after_; }   ///< aliases behind it
  [[nodiscard]] bool edited() const { return edited_; }
  [[nodiscard]] Operation& top() const { return *top_; } ///< the `module` operation
  [[nodiscard]] Block& body() const { return top_->regions[0]->front(); }
  /// The function of that name ("" gives the first public one); null where there is none.
  [[nodiscard]] Operation* function(std::string_view name = {}) const;
  /// What `#name` stands for, followed through aliases; `text` itself where it is none.
  [[nodiscard]] std::string_view resolve(std::string_view text) const;
  [[nodiscard]] TypeTable& types() { return types_; }
  [[nodiscard]] std::uint32_t value_count() const { return values_; }

  // Edits. Names are made unique when printed; nothing is checked here but by verify().
  struct Draft {
    Op code;
    std::vector<Value*> operands;
    std::vector<TypeRef> results;
    std::vector<Attribute> attributes;
    std::vector<std::uint16_t> segments; ///< empty: one operand each
    std::string name;                    ///< of the results
    std::string_view location;
  };
  /// `before` null: at the end of the block, before its terminator.
  Operation& create(const Draft& draft, Block& block, Operation* before = nullptr);
  void replace_all_uses(Value& of, Value& with);
  void set_operand(Operation& op, std::size_t i, Value& value);
  void set_attribute(Operation& op, const Attribute& attribute);
  bool remove_attribute(Operation& op, std::string_view name);
  void erase(Operation& op); ///< results must have no uses
  void move(Operation& op, Block& block, Operation* before);
  /// The body of a single-block region, before `before`, with its arguments replaced; the region's
  /// terminator is returned, taken out.
  Operation& splice(Region& region, std::span<Value* const> arguments, Operation& before);
  Operation& clone(const Operation& op, Block& block, Operation* before);
  [[nodiscard]] std::string_view keep(std::string_view text); ///< copies text into the module
  [[nodiscard]] bool used(const Value& value) const;

private:
  friend class Reader;
  template <class T> std::span<T> make_list(std::size_t n); ///< value-initialised
  Operation& make_operation();
  Region& make_region(Operation& parent);
  Block& make_block(Region& region, bool placed = true);
  void init_value(Value& value) { value.id = values_++; }

  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_;
  TypeTable types_;
  const std::string source_;
  std::string_view before_, after_; ///< of the source: what stands around the module operation
  std::pmr::unordered_map<std::string_view, std::string_view> aliases_;
  Operation* top_ = nullptr;
  std::uint32_t values_ = 0;
  bool edited_ = false;
};

/// Calls `visit(Operation&)` for `op` and everything inside it, parents first.
template <class Visit> void walk(Operation& op, Visit&& visit) {
  visit(op);
  for (Region* region : op.regions)
    for (Block* block : region->blocks)
      for (Operation* inner : block->operations) walk(*inner, visit);
}

} // namespace hebe::ttgir
