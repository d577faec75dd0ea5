// Operations read by the assembly format of their row, and the types that follow from it.
#include "ttgir/reader_state.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {

using Kind = Element::Kind;

bool Reader::table(Operation& op, Parts& parts) {
  const auto& formats = formats_of(op.code);
  const auto begin = at_;
  const auto line = line_;
  for (std::size_t i = 0; i < formats.size(); ++i) {
    parts.segments.assign(formats[i].specs, 0);
    if (elements(formats[i].elements, parts)) {
      op.form = Operation::Form::table;
      op.format = static_cast<std::uint8_t>(i);
      break;
    }
    if (i + 1 == formats.size()) return false;
    failed_ = false;
    at_ = begin;
    line_ = line;
    parts.clear();
  }
  return true;
}

bool Reader::elements(const std::vector<Element>& list, Parts& parts) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!element(list[i], i + 1 < list.size() ? &list[i + 1] : nullptr, parts)) return false;
  return true;
}

/// Whether what stands here can be the element. On this line only: the next one is another
/// operation.
bool Reader::begins(const Element& element) const {
  auto place = at_;
  while (place < text_.size() && text_[place] == ' ') ++place;
  const auto rest = text_.substr(place);
  switch (element.kind) {
  case Kind::operand:
  case Kind::operands:
    return rest.starts_with('%');
  case Kind::literal:
    if (!rest.starts_with(element.text)) return false;
    return !name_character(element.text[0]) || element.text == "-" ||
           rest.size() == element.text.size() || !name_character(rest[element.text.size()]);
  default:
    return true;
  }
}

bool Reader::element(const Element& e, const Element* following, Parts& parts) {
  const auto count_operand = [&](std::uint8_t spec) { ++parts.segments[spec]; };
  switch (e.kind) {
  case Kind::literal:
    return expect(e.text);
  case Kind::operand:
    count_operand(e.spec);
    return operand(parts);
  case Kind::operands:
    if (!begins(e)) return true;
    do {
      count_operand(e.spec);
      if (!operand(parts)) return false;
    } while (accept(","));
    return true;
  case Kind::attribute: {
    skip();
    Attribute attribute{e.text, {}, Attribute::Place::syntax};
    if (at("\"")) {
      const auto end = end_of_string(text_, at_);
      if (end == kNowhere) return fail(at_, "the end of the string, on its line");
      attribute.text = text_.substr(at_, end - at_);
      at_ = end;
    } else {
      const bool listed = following && following->kind == Kind::literal && following->text == "]";
      if (!attribute_text(listed ? "]" : " ,>:(){]", attribute.text))
        return fail(at_, fmt::format("the attribute {}", e.text));
    }
    parts.attributes.push_back(attribute);
    return true;
  }
  case Kind::dictionary:
    skip_blanks();
    return !accept("{") || dictionary('}', Attribute::Place::dictionary, parts.attributes);
  case Kind::type: {
    TypeRef found = nullptr;
    if (!e.text.empty()) {
      skip();
      const auto end = at("<") ? end_of_brackets(text_, at_) : kNowhere;
      if (end == kNowhere)
        return fail(at_, fmt::format("`<…>`, a type without its name {}", e.text));
      found = module_.types_.get(std::string(e.text) + std::string(text_.substr(at_, end - at_)));
      at_ = end;
    } else if (!type(found)) {
      return false;
    }
    if (e.specs[0] == Element::kResults)
      parts.results.push_back(found);
    else if (parts.segments[e.specs[0]] > 0)
      parts.written.emplace_back(e.specs[0], found);
    return true;
  }
  case Kind::types: {
    // One operand list, or single operands in a row.
    for (std::size_t i = 0; i < e.specs.size(); ++i) {
      const auto spec = e.specs[i];
      const std::size_t wanted = spec == Element::kResults ? ~std::size_t{0} : parts.segments[spec];
      for (std::size_t n = 0; n < wanted; ++n) {
        if ((n > 0 || i > 0) && !accept(",")) {
          if (spec == Element::kResults) break;
          return fail(at_, "`,` and the type of the next operand");
        }
        TypeRef found = nullptr;
        if (!type(found)) return false;
        if (spec == Element::kResults)
          parts.results.push_back(found);
        else
          parts.written.emplace_back(spec, found);
      }
    }
    return true;
  }
  case Kind::function_type:
    return function_type(parts);
  case Kind::group:
    return !begins(e.parts[0][0]) || elements(e.parts[0], parts);
  case Kind::any:
    for (bool more = true; more;) {
      more = false;
      for (const auto& clause : e.parts)
        if (begins(clause[0])) {
          if (!elements(clause, parts)) return false;
          more = true;
        }
    }
    return true;
  case Kind::flag: {
    if (!accept_word(e.text)) return true;
    const auto end = at("<") ? end_of_brackets(text_, at_) : kNowhere;
    if (end == kNowhere) return fail(at_, "`<…>`");
    parts.attributes.push_back(
        {e.text, text_.substr(at_ + 1, end - at_ - 2), Attribute::Place::syntax});
    at_ = end;
    return true;
  }
  case Kind::unit:
    if (accept_word(e.text)) parts.attributes.push_back({e.text, {}, Attribute::Place::syntax});
    return true;
  case Kind::word:
    for (const auto word : e.words)
      if (accept_word(word)) {
        parts.attributes.push_back({e.text, word, Attribute::Place::syntax});
        break;
      }
    return true;
  case Kind::token:
    if (!accept("[")) return true;
    parts.attributes.push_back({"token", {}, Attribute::Place::syntax});
    if (skip_blanks(); at("%")) {
      count_operand(e.spec);
      if (!operand(parts)) return false;
    }
    return expect("]");
  case Kind::pairs: {
    Parts seconds; // the operation has all of the first operand, then all of the second
    while (accept(",")) {
      ++parts.segments[e.spec];
      ++parts.segments[e.specs[0]];
      if (!operand(parts) || !expect("[") || !operand(seconds) || !expect("]")) return false;
    }
    for (const auto& [index, place] : seconds.later)
      parts.later.emplace_back(parts.operands.size() + index, place);
    parts.operands.insert(parts.operands.end(), seconds.operands.begin(), seconds.operands.end());
    return true;
  }
  }
  return false;
}

/// "(A, B) -> C", "(A) -> (B, C)", "() -> ()".
bool Reader::function_type(Parts& parts) {
  if (!expect("(")) return false;
  const auto place = at_;
  std::vector<TypeRef> inputs;
  if (!types_until(')', inputs)) return false;
  if (inputs.size() != parts.operands.size())
    return fail(place,
                fmt::format("{} operand types, one for each operand", parts.operands.size()));
  std::size_t next = 0;
  for (std::uint8_t spec = 0; spec < parts.segments.size(); ++spec)
    for (std::uint16_t n = 0; n < parts.segments[spec]; ++n)
      parts.written.emplace_back(spec, inputs[next++]);
  return arrow_results(parts);
}

/// "-> C", "-> (B, C)", "-> ()".
bool Reader::arrow_results(Parts& parts) {
  if (!expect("->")) return false;
  if (skip(); accept("(")) return types_until(')', parts.results);
  TypeRef result = nullptr;
  if (!type(result)) return false;
  parts.results.push_back(result);
  return true;
}

namespace {

/// How many values an operand of a format may be.
struct Arity {
  std::uint16_t least = 1, most = 1;
};

void collect(const std::vector<Element>& list, bool optional, std::vector<Arity>& arities) {
  for (const Element& e : list) {
    if (e.kind == Kind::operand)
      arities[e.spec] = {static_cast<std::uint16_t>(optional ? 0 : 1), 1};
    if (e.kind == Kind::token) arities[e.spec] = {0, 1};
    if (e.kind == Kind::operands) arities[e.spec] = {0, 65535};
    if (e.kind == Kind::pairs) arities[e.spec] = arities[e.specs[0]] = {0, 65535};
    for (const auto& part : e.parts) collect(part, true, arities);
  }
}

} // namespace

/// Gives an operation in generic form the segments of its row; one that cannot have them, or whose
/// structure only its own syntax promises, is not understood.
void Reader::recognise(Operation& op, Parts& parts) {
  const auto& formats = formats_of(op.code);
  const auto format = op.info().format;
  bool fits = op.code == Op::unknown;
  if (format == "generic") {
    // A mapped region may branch; one that combines or reduces is one block.
    fits = parts.regions.size() == 1 && !parts.operands.empty() &&
           (parts.regions[0]->blocks.size() == 1 || op.is(Op::tt_map_elementwise)) &&
           !parts.regions[0]->blocks.empty() && !parts.regions[0]->front().operations.empty();
  } else if (!formats.empty()) {
    std::vector<Arity> arities(formats[0].specs);
    collect(formats[0].elements, false, arities);
    const auto given = std::ranges::find(parts.attributes, "operandSegmentSizes", &Attribute::name);
    std::vector<std::int64_t> sizes;
    if (given != parts.attributes.end())
      sizes = integers(given->text).value_or(sizes);
    else if (arities.size() == 1)
      sizes.assign(1, static_cast<std::int64_t>(parts.operands.size()));
    else
      sizes.assign(arities.size(), 1);
    std::int64_t sum = 0;
    fits = sizes.size() == arities.size();
    for (std::size_t i = 0; fits && i < sizes.size(); ++i) {
      fits = sizes[i] >= arities[i].least && sizes[i] <= arities[i].most;
      sum += sizes[i];
      parts.segments.push_back(static_cast<std::uint16_t>(sizes[i]));
    }
    fits = fits && sum == static_cast<std::int64_t>(parts.operands.size());
    if (!fits) parts.segments.clear();
    const auto typing = op.info().typing;
    fits = fits && (typing == Typing::none || !parts.results.empty());
  }
  if (!fits) op.code = Op::unknown;
}

/// Result types that the text leaves out; and that written operand types are those of the values.
bool Reader::infer(Operation& op, Parts& parts, const Names& names, std::size_t begin) {
  const auto first = [&]() -> TypeRef {
    return !parts.results.empty()  ? parts.results[0]
           : parts.written.empty() ? nullptr
                                   : parts.written[0].second;
  };
  auto& results = parts.results;
  auto& types = module_.types_;
  const TypeRef lead = first();
  if (op.form == Operation::Form::table) {
    switch (op.info().typing) {
    case Typing::none:
      results.clear();
      break;
    case Typing::same:
    case Typing::split:
      results.assign(std::max(1U, names.count), lead);
      break;
    case Typing::compare:
      results.assign(1, types.with_element(lead, "i1"));
      break;
    case Typing::powi:
      results.assign(1, lead);
      break;
    case Typing::load:
      results.assign(1, types.pointee(lead));
      if (!results[0])
        return fail(begin, fmt::format("a pointer type, or a tensor of pointers, for {}", op.name));
      break;
    case Typing::token:
      results.assign(1, types.get("!ttg.async.token"));
      break;
    case Typing::element:
      results.assign(1, lead && lead->shaped() ? lead->element : lead);
      break;
    case Typing::i32:
      results.assign(1, types.get("i32"));
      break;
    case Typing::as_operands:
      results.clear();
      for (const auto& [spec, type] : parts.written) results.push_back(type);
      break;
    case Typing::token_last:
      if (results.size() < names.count) results.push_back(types.get("!ttg.async.token"));
      break;
    case Typing::written:
    case Typing::extended:
    case Typing::select:
      break;
    }
  }
  if (op.form != Operation::Form::opaque && results.size() != names.count)
    return fail(begin, fmt::format("{} named results for {}, which has {}", results.size(), op.name,
                                   results.size()));
  if (op.form == Operation::Form::opaque && results.size() != names.count)
    results.clear(); // not known
  // What is written of an operand must be what its definition says, or says it where that does not.
  auto& types_of = parts.operand_types; // those of code are there already
  types_of.resize(parts.operands.size(), nullptr);
  if (op.form == Operation::Form::generic) {
    for (std::size_t i = 0; i < types_of.size(); ++i) types_of[i] = parts.written[i].second;
  } else if (op.form == Operation::Form::table && op.info().typing == Typing::same) {
    std::ranges::fill(types_of, lead);
  } else if (op.form == Operation::Form::table) {
    std::size_t index = 0;
    for (std::uint8_t spec = 0; spec < parts.segments.size(); ++spec)
      for (std::uint16_t n = 0; n < parts.segments[spec]; ++n, ++index) {
        std::uint16_t seen = 0;
        for (const auto& [of, type] : parts.written)
          if (of == spec && seen++ == n) types_of[index] = type;
      }
  }
  for (std::size_t i = 0; i < types_of.size(); ++i)
    if (parts.operands[i] && !agrees(*parts.operands[i], types_of[i], op, begin)) return false;
  return true;
}

bool Reader::agrees(Value& value, TypeRef written, const Operation& op, std::size_t place) {
  if (!value.type) value.type = written;
  if (!written || value.type == written) return true;
  return fail(place, fmt::format("operand %{} of {} to be {}, as written; line {} defines it as {}",
                                 value.name, op.name, written->text, value.line, value.type->text));
}

} // namespace hebe::ttgir
