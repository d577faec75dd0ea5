// Operations whose syntax is code: functions, loops, branches, constants; and those that are
// carried as text.
#include "ttgir/reader_state.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace hebe::ttgir {

bool Reader::custom(Operation& op, Parts& parts) {
  op.form = Operation::Form::custom;
  switch (op.code) {
  case Op::arith_constant:
    return constant(op, parts);
  case Op::tt_func:
    return function(op, parts);
  case Op::scf_for:
    return for_loop(op, parts);
  case Op::scf_if:
    return if_else(op, parts);
  case Op::scf_while:
    return while_loop(op, parts);
  case Op::cf_br:
  case Op::cf_cond_br:
    return branch(op, parts);
  case Op::ttg_warp_specialize:
    return warp_specialize(op, parts);
  default:
    return fail(at_, fmt::format("no {} here", op.name));
  }
}

/// "arith.constant dense<0> : tensor<8xi32>", "arith.constant 1.0 : f32", "arith.constant true".
bool Reader::constant(Operation&, Parts& parts) {
  if (accept("{") && !dictionary('}', Attribute::Place::dictionary, parts.attributes)) return false;
  Attribute value{"value", {}, Attribute::Place::syntax};
  if (!attribute_text(": ", value.text)) return fail(at_, "the constant's value");
  TypeRef found = nullptr;
  if (value.text == "true" || value.text == "false")
    found = module_.types_.get("i1");
  else if (!expect(":") || !type(found))
    return false;
  parts.attributes.insert(parts.attributes.begin(),
                          value); // found before a dictionary's entry of that name
  parts.results.push_back(found);
  return true;
}

/// "tt.func public @name(%a: T {…} loc(…), …) -> (T) attributes {…} {".
bool Reader::function(Operation& op, Parts& parts) {
  for (const auto visibility : {"public", "private", "nested"})
    if (accept_word(visibility)) {
      parts.attributes.push_back({"sym_visibility", visibility, Attribute::Place::syntax});
      break;
    }
  if (!expect("@")) return false;
  Attribute name{"sym_name", {}, Attribute::Place::syntax};
  const auto begin = at_;
  if (at("\"")) {
    const auto end = end_of_string(text_, at_);
    if (end == kNowhere) return fail(at_, "the end of the string, on its line");
    at_ = end;
  } else {
    word();
  }
  name.text = text_.substr(begin, at_ - begin);
  if (name.text.empty()) return fail(begin, "the function's name");
  parts.attributes.push_back(name);
  if (!expect("(")) return false;
  Region& body = new_region(op, parts);
  Block& entry = module_.make_block(body);
  skip();
  const bool declared = !at("%") && !at(")");
  scopes_.open();
  bool good = true;
  if (declared) { // types only, no body
    good = declared_arguments(parts);
  } else {
    good = block_arguments(entry, ')');
  }
  scopes_.close(); // region() defines them again, inside
  if (!good) return false;
  if (accept("->")) {
    skip();
    const auto end = at("(") ? end_of_brackets(text_, at_) : kNowhere;
    const auto start = at_;
    if (end != kNowhere) {
      at_ = end;
    } else {
      TypeRef result = nullptr;
      if (!type(result)) return false;
    }
    parts.attributes.push_back(
        {"results", text_.substr(start, at_ - start), Attribute::Place::syntax});
  }
  if (accept_word("attributes") &&
      (!expect("{") || !dictionary('}', Attribute::Place::dictionary, parts.attributes)))
    return false;
  skip_blanks();
  if (!at("{")) {
    body.blocks.clear();
    return declared || fail(at_, "`{`, the function's body");
  }
  if (declared) return fail(at_, "no body, or arguments with names (`%name: type`)");
  ++at_;
  return region(body) && location(op.location);
}

bool Reader::declared_arguments(Parts& parts) {
  const auto begin = at_;
  std::vector<Attribute> unused;
  do {
    TypeRef argument = nullptr;
    std::string_view place;
    skip();
    if (!type(argument)) return false;
    if (accept("{") && !dictionary('}', Attribute::Place::dictionary, unused)) return false;
    if (!location(place)) return false;
  } while (skip(), accept(","));
  const auto end = at_;
  if (!expect(")")) return false;
  parts.attributes.push_back(
      {"arguments", trimmed(text_.substr(begin, end - begin)), Attribute::Place::syntax});
  return true;
}

void Reader::set_arguments(Block& block,
                           const std::vector<std::pair<std::string_view, TypeRef>>& arguments) {
  block.arguments = module_.make_list<Value>(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Value& value = block.arguments[i];
    std::tie(value.name, value.type) = arguments[i];
    value.block = &block;
    value.index = static_cast<std::uint32_t>(i);
    value.line = line_;
    module_.init_value(value);
  }
}

/// "scf.for %i = %lb to %ub step %s iter_args(%a = %x) -> (T)  : i32 { … } {…}".
bool Reader::for_loop(Operation& op, Parts& parts) {
  if (accept_word("unsigned"))
    parts.attributes.push_back({"unsignedCmp", {}, Attribute::Place::syntax});
  std::vector<std::pair<std::string_view, TypeRef>> arguments(1);
  std::uint32_t unused = 0;
  const auto new_name = [&](std::string_view& name) {
    skip();
    const auto place = at_;
    if (!value_name(name, unused)) return false;
    const Value* known = scopes_.find(name);
    return !known ||
           fail(place, fmt::format("a new name: %{} is defined on line {}", name, known->line));
  };
  if (!new_name(arguments[0].first) || !expect("=") || !operand(parts) || !expect("to") ||
      !operand(parts) || !expect("step") || !operand(parts))
    return false;
  if (accept_word("iter_args")) {
    if (!expect("(")) return false;
    do {
      arguments.emplace_back();
      if (!new_name(arguments.back().first) || !expect("=") || !operand(parts)) return false;
    } while (skip(), accept(","));
    if (!expect(")") || !expect("->") || !expect("(") || !types_until(')', parts.results))
      return false;
    if (parts.results.size() + 1 != arguments.size())
      return fail(at_, fmt::format("{} types, one for each of iter_args", arguments.size() - 1));
    for (std::size_t i = 0; i < parts.results.size(); ++i)
      arguments[i + 1].second = parts.results[i];
  }
  const auto blanks = at_;
  arguments[0].second = module_.types_.get("index");
  if (accept(":")) {
    op.spacing = text_.substr(blanks, at_ - 1 - blanks); // Triton 3.6's MLIR prints two blanks
    if (!type(arguments[0].second)) return false;
  }
  if (!expect("{")) return false;
  parts.operand_types.assign(3, arguments[0].second);
  parts.operand_types.insert(parts.operand_types.end(), parts.results.begin(), parts.results.end());
  Region& body = new_region(op, parts);
  set_arguments(module_.make_block(body), arguments);
  if (!region(body)) return false;
  if (accept("{") && !dictionary('}', Attribute::Place::dictionary, parts.attributes)) return false;
  return location(op.location);
}

/// "scf.if %c -> (T) { … } else { … } {…}".
bool Reader::if_else(Operation& op, Parts& parts) {
  if (!operand(parts)) return false;
  parts.operand_types.assign(1, module_.types_.get("i1"));
  if (accept("->") && (!expect("(") || !types_until(')', parts.results))) return false;
  // A branch with nothing in it is a block with nothing in it.
  const auto branch = [&] {
    Region& body = new_region(op, parts);
    if (!expect("{") || !region(body)) return false;
    if (body.blocks.empty()) module_.make_block(body);
    return true;
  };
  if (!branch() || (accept_word("else") && !branch())) return false;
  if (accept("{") && !dictionary('}', Attribute::Place::dictionary, parts.attributes)) return false;
  return location(op.location);
}

/// "scf.while (%a = %x) : (T) -> U { … } do { ^bb0(…): … } attributes {…}".
bool Reader::while_loop(Operation& op, Parts& parts) {
  std::vector<std::pair<std::string_view, TypeRef>> arguments;
  if (accept("(")) {
    do {
      std::uint32_t unused = 0;
      arguments.emplace_back();
      if (!value_name(arguments.back().first, unused) || !expect("=") || !operand(parts))
        return false;
    } while (skip(), accept(","));
    if (!expect(")")) return false;
  }
  std::vector<TypeRef> inputs;
  if (!expect(":") || !expect("(") || !types_until(')', inputs)) return false;
  if (inputs.size() != arguments.size())
    return fail(at_, fmt::format("{} types, one for each argument of the loop", arguments.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) arguments[i].second = inputs[i];
  parts.operand_types = inputs;
  if (!arrow_results(parts) || !expect("{")) return false;
  Region& before = new_region(op, parts);
  set_arguments(module_.make_block(before), arguments);
  if (!region(before) || !expect("do") || !expect("{") || !region(new_region(op, parts)))
    return false;
  if (accept_word("attributes") &&
      (!expect("{") || !dictionary('}', Attribute::Place::dictionary, parts.attributes)))
    return false;
  return location(op.location);
}

/// "^bb1(%a, %b : T, T)" or "^bb1".
bool Reader::successor(Parts& parts) {
  skip();
  const auto place = at_;
  if (!accept("^")) return fail(place, "a block (`^name`)");
  const auto label = word();
  if (label.empty()) return fail(at_, "the name of a block after `^`");
  Block*& block = (*labels_)[label];
  if (!block) block = &module_.make_block(*region_, false);
  Successor next{block, static_cast<std::uint32_t>(parts.operands.size()), 0};
  if (accept("(")) {
    do {
      if (!operand(parts)) return false;
      ++next.count;
    } while (accept(","));
    std::vector<TypeRef> types;
    if (!expect(":") || !types_until(')', types)) return false;
    if (types.size() != next.count)
      return fail(at_, fmt::format("{} types, one for each operand", next.count));
    parts.operand_types.resize(next.first, nullptr);
    parts.operand_types.insert(parts.operand_types.end(), types.begin(), types.end());
  }
  parts.successors.push_back(next);
  return true;
}

bool Reader::branch(Operation& op, Parts& parts) {
  if (op.is(Op::cf_cond_br)) {
    if (!operand(parts) || !expect(",") || !successor(parts) || !expect(",") || !successor(parts))
      return false;
  } else if (!successor(parts)) {
    return false;
  }
  if (accept("{") && !dictionary('}', Attribute::Place::dictionary, parts.attributes)) return false;
  return location(op.location);
}

/// "ttg.warp_specialize(%a) attributes {…}", "default {", "partition0(%x: T) num_warps(4) {" …
/// "} : (T) -> ()".
bool Reader::warp_specialize(Operation& op, Parts& parts) {
  if (!expect("(")) return false;
  if (skip(); !accept(")")) {
    do
      if (!operand(parts)) return false;
    while (skip(), accept(","));
    if (!expect(")")) return false;
  }
  if (accept_word("attributes") &&
      (!expect("{") || !dictionary('}', Attribute::Place::dictionary, parts.attributes)))
    return false;
  if (!expect("default") || !expect("{") || !region(new_region(op, parts))) return false;
  std::string warps = "array<i32";
  for (std::size_t i = 0; skip() && at("partition"); ++i) {
    if (!expect(fmt::format("partition{}", i)) || !expect("(")) return false;
    Region& partition = new_region(op, parts);
    Block& entry = module_.make_block(partition);
    scopes_.open();
    const bool good = block_arguments(entry, ')');
    scopes_.close();
    Attribute count;
    if (!good || !expect("num_warps") || !expect("(") || !attribute_text(")", count.text) ||
        !expect(")"))
      return false;
    warps += fmt::format("{}{}", i ? ", " : ": ", count.text);
    if (!expect("{") || !region(partition)) return false;
  }
  parts.attributes.push_back(
      {"partitionNumWarps", module_.keep(warps + ">"), Attribute::Place::syntax});
  parts.segments.assign(1, static_cast<std::uint16_t>(parts.operands.size()));
  if (!expect(":") || !function_type(parts)) return false;
  for (const auto& [spec, type] : parts.written) parts.operand_types.push_back(type);
  return location(op.location);
}

/// Text up to the end of the operation, with its operands and regions. Blanks are part of the text.
bool Reader::opaque(Operation& op, Parts& parts) {
  op.form = Operation::Form::opaque;
  auto begin = at_;
  const auto flush = [&] {
    if (at_ > begin)
      parts.pieces.push_back({Piece::Kind::text, text_.substr(begin, at_ - begin), 0});
  };
  std::vector<std::pair<std::string_view, TypeRef>> arguments; // names that only the region knows
  std::size_t first_argument = 0;
  int depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      if (depth > 0) return fail(at_, "the closing bracket, on this line");
      break;
    }
    if (depth == 0 &&
        (c == '}' || text_.substr(at_, 5) == " loc(" || text_.substr(at_, 3) == " //"))
      break;
    if (c == '"') {
      const auto end = end_of_string(text_, at_);
      if (end == kNowhere) return fail(at_, "the end of the string, on its line");
      at_ = end;
    } else if (c == '%') {
      flush();
      const auto place = at_;
      std::string_view name;
      std::uint32_t number = 0;
      if (!value_name(name, number)) return false;
      const auto rest = trimmed(text_.substr(at_, 3));
      if (!scopes_.find(name) && number == ~0U &&
          (rest.starts_with("=") || rest.starts_with(":"))) {
        TypeRef type = nullptr;
        if (rest.starts_with(":"))
          if (const auto colon = text_.find(':', at_) + 1;
              end_of_type(trimmed(text_.substr(colon, 400))) != kNowhere) {
            const auto typed = trimmed(text_.substr(colon, 400));
            type = module_.types_.get(typed.substr(0, end_of_type(typed)));
          }
        if (!parts.regions.empty())
          return fail(place, "a value that is defined"); // of region 0 only
        if (arguments.empty()) first_argument = place;
        parts.pieces.push_back(
            {Piece::Kind::argument, {}, static_cast<std::uint32_t>(arguments.size())});
        arguments.emplace_back(name, type);
      } else {
        at_ = place;
        parts.pieces.push_back(
            {Piece::Kind::operand, {}, static_cast<std::uint32_t>(parts.operands.size())});
        if (!operand(parts)) return false;
      }
      begin = at_;
    } else if (c == '{' && depth == 0 &&
               trimmed(text_.substr(at_ + 1, text_.find('\n', at_) - at_ - 1)).empty()) {
      ++at_;
      flush();
      Region& body = new_region(op, parts);
      if (!arguments.empty()) set_arguments(module_.make_block(body), arguments);
      arguments.clear(); // they are the region's now
      parts.pieces.push_back(
          {Piece::Kind::region, {}, static_cast<std::uint32_t>(parts.regions.size() - 1)});
      if (!region(body)) return false;
      begin = at_ - 1; // with its brace
    } else {
      if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
      if (c == ')' || c == ']' || c == '}' || (c == '>' && text_[at_ - 1] != '-')) --depth;
      if (depth < 0) return fail(at_, "an opening bracket before this one");
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
        return fail(at_, "text (outside strings: printable ASCII)");
      ++at_;
    }
  }
  flush();
  if (!arguments.empty()) return fail(first_argument, "a value that is defined");
  // A type after the last colon is the result's: "… : A -> B", "… : T".
  if (!parts.pieces.empty() && parts.pieces.back().kind == Piece::Kind::text) {
    const auto tail = parts.pieces.back().text;
    const auto colon = tail.rfind(" : ");
    if (colon != kNowhere) {
      auto typed = trimmed(tail.substr(colon + 3));
      if (const auto arrow = typed.rfind("-> "); arrow != kNowhere)
        typed = trimmed(typed.substr(arrow + 3));
      if (typed.starts_with('(') && typed.ends_with(')')) typed = typed.substr(1, typed.size() - 2);
      for (const auto part : parts_of(typed))
        parts.results.push_back(
            end_of_type(part) == part.size() && !part.empty() ? module_.types_.get(part) : nullptr);
    }
  }
  return true;
}

} // namespace hebe::ttgir
