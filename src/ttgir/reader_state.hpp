// The reader's inside, shared by its files. In: the text and a place in it; out: operations in
// their blocks. Invariant: the first failure is kept and ends the reading; nothing is thrown.
#pragma once

#include "ttgir/format.hpp"
#include "ttgir/ir.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/scan.hpp"

#include <deque>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hebe::ttgir {

/// SSA names and what they mean here, innermost scope first.
class Scopes {
public:
  void open() { marks_.push_back(undo_.size()); }
  void close();
  [[nodiscard]] Value* find(std::string_view name) const;
  void define(std::string_view name, Value* value);
  [[nodiscard]] std::size_t depth() const { return marks_.size(); }

private:
  std::unordered_map<std::string_view, Value*> values_;
  std::vector<Value**> undo_;
  std::vector<std::size_t> marks_;
};

class Reader {
public:
  Reader(Module& module, const ReadOptions& options);
  [[nodiscard]] Status read();

private:
  /// What is found of one operation before it is made; reused by depth.
  struct Parts {
    std::vector<Value*> operands;
    std::vector<std::uint16_t> segments;
    std::vector<Attribute> attributes;
    std::vector<std::pair<std::uint8_t, TypeRef>> written; ///< types by operand number
    std::vector<TypeRef> results;
    std::vector<TypeRef> operand_types; ///< as written, null where nothing is
    std::vector<Region*> regions;
    std::vector<Successor> successors;
    std::vector<Piece> pieces;
    std::vector<std::pair<std::size_t, std::size_t>>
        later; ///< operand and place of a name not yet defined
    void clear();
  };
  struct Names {
    std::vector<std::pair<std::string_view, std::uint32_t>> groups; ///< name and number of results
    std::uint32_t count = 0;
    bool grouped = false;
  };
  struct Fixup {
    Operation* op;
    std::size_t operand, place;
    TypeRef written;
  };

  // text: reader.cpp
  bool fail(std::size_t at, std::string expected);
  bool skip();        ///< blanks, comments, line ends; false on a byte that cannot be there
  void skip_blanks(); ///< blanks only
  [[nodiscard]] bool at(std::string_view token) const {
    return text_.substr(at_, token.size()) == token;
  }
  bool accept(std::string_view token); ///< after blanks
  bool expect(std::string_view token);
  bool accept_word(std::string_view word);
  std::string_view word(); ///< a bare identifier, empty if none
  bool value_name(std::string_view& name, std::uint32_t& number); ///< "%x", "%x#1"
  bool type(TypeRef& type);
  bool types_until(char close, std::vector<TypeRef>& types);
  bool attribute_text(std::string_view stops, std::string_view& text);
  bool dictionary(char close, Attribute::Place place, std::vector<Attribute>& attributes);
  bool location(std::string_view& location);

  // structure: reader.cpp
  bool module_operation();
  bool operation(Block& block);
  bool result_names(Names& names);
  bool region(Region& region);
  bool block_label(Region& region, Block*& block);
  bool block_arguments(Block& block, char close);
  bool generic(Operation& op, Parts& parts);
  void recognise(Operation& op, Parts& parts);
  bool opaque(Operation& op, Parts& parts);
  bool finish(Operation& op, Parts& parts, const Names& names, std::size_t begin);

  // by format: reader_formats.cpp
  bool table(Operation& op, Parts& parts);
  bool elements(const std::vector<Element>& elements, Parts& parts);
  bool element(const Element& element, const Element* following, Parts& parts);
  [[nodiscard]] bool begins(const Element& element) const;
  bool operand(Parts& parts);
  bool function_type(Parts& parts);
  bool arrow_results(Parts& parts);
  bool agrees(Value& value, TypeRef written, const Operation& op, std::size_t place);
  bool infer(Operation& op, Parts& parts, const Names& names, std::size_t begin);

  // by code: reader_custom.cpp
  bool custom(Operation& op, Parts& parts);
  bool constant(Operation& op, Parts& parts);
  bool function(Operation& op, Parts& parts);
  bool declared_arguments(Parts& parts);
  bool for_loop(Operation& op, Parts& parts);
  bool if_else(Operation& op, Parts& parts);
  bool while_loop(Operation& op, Parts& parts);
  bool branch(Operation& op, Parts& parts);
  bool warp_specialize(Operation& op, Parts& parts);
  bool successor(Parts& parts);
  Region& new_region(Operation& op, Parts& parts);
  Block& new_block(Region& region);
  void set_arguments(Block& block,
                     const std::vector<std::pair<std::string_view, TypeRef>>& arguments);

  template <class T> std::span<T> keep(const std::vector<T>& from);
  [[nodiscard]] std::uint32_t line_of(std::size_t place) const;

  Module& module_;
  const ReadOptions& options_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  Scopes scopes_;
  std::deque<Parts> parts_; ///< by depth
  std::size_t depth_ = 0;
  std::vector<Fixup> fixups_;
  Region* region_ = nullptr;                                       ///< being read
  std::unordered_map<std::string_view, Block*>* labels_ = nullptr; ///< its blocks
  std::string expected_;                                           ///< of the first failure
  std::size_t failed_at_ = 0;
  bool failed_ = false;
};

} // namespace hebe::ttgir
