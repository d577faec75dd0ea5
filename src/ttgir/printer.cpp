#include "ttgir/printer.hpp"

#include "ttgir/format.hpp"
#include "ttgir/names.hpp"
#include "ttgir/scan.hpp"

#include <algorithm>
#include <charconv>

namespace hebe::ttgir {

using Kind = Element::Kind;
using Place = Attribute::Place;

struct Printer {
  explicit Printer(const Names* unique) : names(unique) {}

  const Names* names; ///< null: as they are
  std::string out;
  std::size_t indent = 0;
  bool shallow = false; ///< no regions, no locations

  void add(std::string_view text) { out += text; }
  void number(std::size_t n) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
  }
  void new_line() { out.append(1, '\n').append(indent, ' '); }

  void name(const Value& value) {
    out += '%';
    add(names ? names->of(value) : value.name);
  }
  void use(const Value* value) {
    if (!value) return add("%<none>");
    name(*value);
    if (value->group < 0) return;
    out += '#';
    number(static_cast<std::size_t>(value->group));
  }
  void type(TypeRef type) { add(type ? type->text : "<unknown type>"); }

  void short_type(TypeRef of, std::string_view left_out) {
    if (of && of->text.starts_with(left_out)) return add(of->text.substr(left_out.size()));
    type(of);
  }

  template <class List, class Each> void comma_list(const List& list, Each&& each) {
    bool first = true;
    for (const auto& item : list) {
      if (!first) add(", ");
      first = false;
      each(item);
    }
  }

  void attribute_name(std::string_view text) {
    const bool bare =
        !text.empty() && (text[0] < '0' || text[0] > '9') && text[0] != '.' && text[0] != '$' &&
        std::ranges::all_of(text, [](char c) { return name_character(c) && c != '-'; });
    if (bare) return add(text);
    out += '"';
    add(text);
    out += '"';
  }
  /// "{a = 1 : i32, b}"; returns false and prints nothing where there is none.
  bool dictionary(std::span<const Attribute> attributes, Place place, std::string_view before,
                  std::string_view open = "{", std::string_view close = "}") {
    bool any = false;
    for (const Attribute& attribute : attributes) {
      if (attribute.place != place) continue;
      add(any ? std::string_view(", ") : before);
      if (!any) add(open);
      any = true;
      attribute_name(attribute.name);
      if (attribute.text.empty()) continue;
      add(" = ");
      add(attribute.text);
    }
    if (any) add(close);
    return any;
  }
  void location(std::string_view text) {
    if (text.empty() || shallow) return;
    out += ' ';
    add(text);
  }

  void results(const Operation& op) {
    if (op.results.empty()) return;
    if (op.result_groups.empty()) {
      comma_list(op.results, [&](const Value& value) { name(value); });
    } else {
      std::size_t next = 0;
      comma_list(op.result_groups, [&](std::uint8_t size) {
        name(op.results[next]);
        if (size) {
          out += ':';
          number(size);
        }
        next += std::max<std::size_t>(1, size);
      });
    }
    add(" = ");
  }

  void arguments(const Block& block) {
    comma_list(block.arguments, [&](const Value& value) {
      name(value);
      add(": ");
      type(value.type);
      dictionary(value.attributes, Place::dictionary, " ");
      location(value.location);
    });
  }

  void label(const Block& block) {
    if (block.label.empty()) return;
    new_line();
    out += '^';
    add(block.label);
    if (!block.arguments.empty()) {
      out += '(';
      arguments(block);
      out += ')';
    }
    out += ':';
    add(block.comment);
  }

  /// From "{" to "}".
  void region(const Region& region) {
    out += '{';
    if (shallow) return add("…}");
    for (const Block* block : region.blocks) {
      label(*block);
      indent += 2;
      for (const Operation* op : block->operations) {
        new_line();
        operation(*op);
      }
      indent -= 2;
    }
    new_line();
    out += '}';
  }

  void operation(const Operation& op) {
    results(op);
    switch (op.form) {
    case Operation::Form::table:
      table(op);
      break;
    case Operation::Form::custom:
      return custom(op);
    case Operation::Form::generic:
      generic(op);
      break;
    case Operation::Form::opaque:
      add(op.name);
      for (const Piece& piece : op.pieces) {
        if (piece.kind == Piece::Kind::text)
          add(piece.text);
        else if (piece.kind == Piece::Kind::operand)
          use(op.operands[piece.index]);
        else if (piece.kind == Piece::Kind::argument)
          name(op.regions[0]->front().arguments[piece.index]);
        else
          opaque_region(*op.regions[piece.index]);
      }
      break;
    }
    location(op.location);
  }

  void opaque_region(const Region& inner) { // its braces are in the text around it
    const auto before = out.size();
    region(inner);
    out.erase(before, 1);
    out.pop_back();
  }

  void function_type(std::span<Value* const> operands, std::span<const Value> results_of) {
    out += '(';
    comma_list(operands, [&](const Value* value) { type(value ? value->type : nullptr); });
    add(") -> ");
    const bool single =
        results_of.size() == 1 && results_of[0].type && results_of[0].type->text[0] != '(';
    if (!single) out += '(';
    comma_list(results_of, [&](const Value& value) { type(value.type); });
    if (!single) out += ')';
  }

  void generic(const Operation& op) {
    out += '"';
    add(op.name);
    add("\"(");
    comma_list(op.operands, [&](const Value* value) { use(value); });
    out += ')';
    if (!op.successors.empty()) {
      out += '[';
      comma_list(op.successors, [&](const Successor& next) {
        out += '^';
        add(next.block->label);
      });
      out += ']';
    }
    dictionary(op.attributes, Place::properties, " ", "<{", "}>");
    if (!op.regions.empty()) {
      add(" (");
      comma_list(op.regions, [&](const Region* inner) { region(*inner); });
      out += ')';
    }
    dictionary(op.attributes, Place::dictionary, " ");
    add(" : ");
    function_type(op.operands, op.results);
  }

  // By format, with the blanks that MLIR puts between elements: none after an opening bracket, none
  // before a comma or a closing one.
  bool blank_due = true, after_punctuation = false;

  void spaced(std::string_view text) {
    const bool single = text.size() == 1;
    const bool wanted =
        (!single && text != "->")
            ? true
            : std::string_view(after_punctuation ? ">)}]," : "<>(){}[],").find(text[0]) == kNowhere;
    if (blank_due && wanted) out += ' ';
    add(text);
    blank_due = !single || std::string_view("<({[").find(text[0]) == kNowhere;
    after_punctuation = !((text[0] >= 'a' && text[0] <= 'z') ||
                          (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '_');
  }
  void before_item() {
    if (blank_due || !after_punctuation) out += ' ';
    blank_due = true;
    after_punctuation = false;
  }

  bool present(const std::vector<Element>& list, const Operation& op) {
    for (const Element& e : list) {
      if (e.kind == Kind::operand || e.kind == Kind::operands) return !op.segment(e.spec).empty();
      if (e.kind == Kind::attribute) return op.syntax(e.text);
    }
    for (const Element& e : list) // ", type($scale)": there where the operand is
      if ((e.kind == Kind::type || e.kind == Kind::types) && e.specs[0] != Element::kResults)
        return !op.segment(e.specs[0]).empty();
    return false;
  }

  void table(const Operation& op) {
    add(op.name);
    blank_due = true;
    after_punctuation = false;
    extra_result_ = 0;
    elements(formats_of(op.code)[op.format].elements, op);
  }

  void elements(const std::vector<Element>& list, const Operation& op) {
    for (const Element& e : list) element(e, op);
  }

  void element(const Element& e, const Operation& op) {
    switch (e.kind) {
    case Kind::literal:
      return spaced(e.text);
    case Kind::operand:
    case Kind::operands: {
      const auto values = op.segment(e.spec);
      if (values.empty()) return;
      before_item();
      return comma_list(values, [&](const Value* value) { use(value); });
    }
    case Kind::attribute:
      before_item();
      return add(op.syntax_text(e.text));
    case Kind::dictionary:
      if (dictionary(op.attributes, Place::dictionary, " ")) {
        blank_due = true;
        after_punctuation = false;
      }
      return;
    case Kind::type:
    case Kind::types:
      before_item();
      return comma_list(e.specs, [&](std::uint8_t spec) {
        if (spec == Element::kResults && e.kind == Kind::types)
          comma_list(op.results, [&](const Value& value) { type(value.type); });
        else if (spec == Element::kResults)
          short_type(op.results[std::min(extra_result_++, op.results.size() - 1)].type, e.text);
        else
          comma_list(op.segment(spec), [&](const Value* value) {
            short_type(value ? value->type : nullptr, e.text);
          });
      });
    case Kind::function_type:
      before_item();
      return function_type(op.operands, op.results);
    case Kind::group:
      if (present(e.parts[0], op)) elements(e.parts[0], op);
      return;
    case Kind::any:
      for (const auto& clause : e.parts)
        if (present(clause, op)) elements(clause, op);
      return;
    case Kind::flag:
      if (const auto* flag = op.syntax(e.text)) {
        spaced(e.text);
        out += '<';
        add(flag->text);
        out += '>';
      }
      return;
    case Kind::unit:
      if (op.syntax(e.text)) spaced(e.text);
      return;
    case Kind::word:
      if (const auto* word = op.syntax(e.text)) spaced(word->text);
      return;
    case Kind::pairs: {
      const auto firsts = op.segment(e.spec), seconds = op.segment(e.specs[0]);
      for (std::size_t i = 0; i < firsts.size() && i < seconds.size(); ++i) {
        add(", ");
        use(firsts[i]);
        out += '[';
        use(seconds[i]);
        out += ']';
      }
      blank_due = true;
      after_punctuation = false;
      return;
    }
    case Kind::token:
      if (!op.syntax("token")) return;
      out += '[';
      comma_list(op.segment(e.spec), [&](const Value* value) { use(value); });
      out += ']';
      return;
    }
  }
  std::size_t extra_result_ = 0; ///< "type(%) , type(%1)": the results one by one

  // By code.
  void typed_results(const Operation& op) {
    if (op.results.empty()) return;
    add(" -> (");
    comma_list(op.results, [&](const Value& value) { type(value.type); });
    out += ')';
  }

  void custom(const Operation& op) {
    add(op.name);
    switch (op.code) {
    case Op::module:
      return module_operation(op);
    case Op::arith_constant:
      dictionary(op.attributes, Place::dictionary, " ");
      out += ' ';
      add(op.syntax_text("value"));
      if (op.results[0].type && op.results[0].type->scalar != Scalar::i1) {
        add(" : ");
        type(op.results[0].type);
      } else if (op.syntax_text("value").starts_with("dense")) {
        add(" : ");
        type(op.results[0].type);
      }
      return location(op.location);
    case Op::tt_func:
      return function(op);
    case Op::scf_for:
      return for_loop(op);
    case Op::scf_if:
      return if_else(op);
    case Op::scf_while:
      return while_loop(op);
    case Op::cf_br:
    case Op::cf_cond_br:
      out += ' ';
      if (op.is(Op::cf_cond_br)) {
        use(op.operands[0]);
        add(", ");
      }
      comma_list(op.successors, [&](const Successor& next) { successor(op, next); });
      dictionary(op.attributes, Place::dictionary, " ");
      return location(op.location);
    case Op::ttg_warp_specialize:
      return warp_specialize(op);
    default:
      return;
    }
  }

  void successor(const Operation& op, const Successor& next) {
    out += '^';
    add(next.block->label);
    if (next.count == 0) return;
    const auto values = op.operands.subspan(next.first, next.count);
    out += '(';
    comma_list(values, [&](const Value* value) { use(value); });
    add(" : ");
    comma_list(values, [&](const Value* value) { type(value ? value->type : nullptr); });
    out += ')';
  }

  void module_operation(const Operation& op) {
    if (const auto name = op.syntax_text("sym_name"); !name.empty()) {
      add(" @");
      add(name);
    }
    dictionary(op.attributes, Place::dictionary, " attributes ");
    out += ' ';
    region(*op.regions[0]);
    location(op.location);
  }

  void function(const Operation& op) {
    if (const auto visibility = op.syntax_text("sym_visibility"); !visibility.empty()) {
      out += ' ';
      add(visibility);
    }
    add(" @");
    add(op.syntax_text("sym_name"));
    out += '(';
    const Region& body = *op.regions[0];
    if (body.blocks.empty())
      add(op.syntax_text("arguments"));
    else
      arguments(body.front());
    out += ')';
    if (const auto types = op.syntax_text("results"); !types.empty()) {
      add(" -> ");
      add(types);
    }
    dictionary(op.attributes, Place::dictionary, " attributes ");
    if (!body.blocks.empty()) {
      out += ' ';
      region(body);
    }
    location(op.location);
  }

  void for_loop(const Operation& op) {
    const Block& body = op.regions[0]->front();
    if (op.syntax("unsignedCmp")) add(" unsigned");
    out += ' ';
    name(body.arguments[0]);
    add(" = ");
    use(op.operands[0]);
    add(" to ");
    use(op.operands[1]);
    add(" step ");
    use(op.operands[2]);
    if (op.operands.size() > 3) {
      add(" iter_args(");
      initialised(body.arguments.subspan(1), op.operands.subspan(3));
      out += ')';
      typed_results(op);
    }
    if (body.arguments[0].type && body.arguments[0].type->scalar != Scalar::index) {
      add(op.spacing.empty() ? "  " : op.spacing);
      add(": ");
      type(body.arguments[0].type);
    }
    out += ' ';
    region(*op.regions[0]);
    dictionary(op.attributes, Place::dictionary, " ");
    location(op.location);
  }

  void initialised(std::span<const Value> names_of, std::span<Value* const> values) {
    std::size_t next = 0;
    comma_list(names_of, [&](const Value& argument) {
      name(argument);
      add(" = ");
      use(values[next++]);
    });
  }

  void if_else(const Operation& op) {
    out += ' ';
    use(op.operands[0]);
    typed_results(op);
    out += ' ';
    region(*op.regions[0]);
    if (op.regions.size() > 1) {
      add(" else ");
      region(*op.regions[1]);
    }
    dictionary(op.attributes, Place::dictionary, " ");
    location(op.location);
  }

  void while_loop(const Operation& op) {
    const Block& before = op.regions[0]->front();
    if (!before.arguments.empty()) {
      add(" (");
      initialised(before.arguments, op.operands);
      out += ')';
    }
    add(" : ");
    function_type(op.operands, op.results);
    out += ' ';
    region(*op.regions[0]);
    add(" do ");
    region(*op.regions[1]);
    dictionary(op.attributes, Place::dictionary, " attributes ");
    location(op.location);
  }

  void warp_specialize(const Operation& op) {
    out += '(';
    comma_list(op.operands, [&](const Value* value) { use(value); });
    out += ')';
    dictionary(op.attributes, Place::dictionary, " attributes ");
    new_line();
    add("default ");
    region(*op.regions[0]);
    const auto warps =
        integers(op.syntax_text("partitionNumWarps")).value_or(std::vector<std::int64_t>{});
    for (std::size_t i = 1; i < op.regions.size(); ++i) {
      new_line();
      add("partition");
      number(i - 1);
      out += '(';
      arguments(op.regions[i]->front());
      add(") num_warps(");
      number(static_cast<std::size_t>(i - 1 < warps.size() ? warps[i - 1] : 0));
      add(") ");
      region(*op.regions[i]);
    }
    add(" : ");
    function_type(op.operands, op.results);
    location(op.location);
  }
};

std::string print_structure(const Module& module) {
  const Names names(module);
  Printer printer(module.edited() ? &names : nullptr);
  printer.out.reserve(module.source().size() + module.source().size() / 8);
  printer.add(module.before());
  printer.operation(module.top());
  printer.add(module.after());
  return std::move(printer.out);
}

std::string print(const Module& module) {
  return module.edited() ? print_structure(module) : std::string(module.source());
}

std::string to_text(const Operation& op) {
  Printer printer(nullptr);
  printer.shallow = true;
  printer.operation(op);
  return std::move(printer.out);
}

} // namespace hebe::ttgir
