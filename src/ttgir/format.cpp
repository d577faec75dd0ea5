#include "ttgir/format.hpp"

#include "ttgir/scan.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

using Kind = Element::Kind;

/// Compiles one alternative.
class Compiler {
public:
  Compiler(std::string_view text, std::string_view op) : rest_(text), op_(op) {}

  Format compile() {
    Format format;
    format.elements = sequence("");
    format.specs = static_cast<std::uint8_t>(names_.size());
    return format;
  }

private:
  [[noreturn]] void wrong(std::string_view why) const {
    throw std::logic_error(fmt::format("ops.def, format of {}: {}", op_, why));
  }

  std::string_view next() {
    rest_ = trimmed(rest_);
    const auto end = std::min(rest_.find(' '), rest_.size());
    const auto word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  std::uint8_t spec(std::string_view name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end())
      return names_.push_back(name), static_cast<std::uint8_t>(names_.size() - 1);
    return static_cast<std::uint8_t>(found - names_.begin());
  }

  std::vector<Element> sequence(std::string_view close) {
    std::vector<Element> elements;
    while (true) {
      const auto word = next();
      if (word == close || (word == "|" && close == ")")) {
        separator_ = word;
        return elements;
      }
      if (word.empty()) wrong("a bracket is not closed");
      elements.push_back(element(word));
    }
  }

  void type_list(std::string_view names, Element& element) {
    while (!(names = trimmed(names)).empty()) {
      const auto end = std::min(names.find(' '), names.size());
      const auto name = names.substr(0, end);
      names.remove_prefix(end);
      // "%1" is the second result, as in addui_extended: written after the others.
      element.specs.push_back(name.starts_with('%') ? Element::kResults : spec(name.substr(1)));
    }
  }

  Element element(std::string_view word) {
    Element e;
    if (word == "{}") {
      e.kind = Kind::dictionary;
    } else if (word == "fn" || word == "fn_none") {
      e.kind = Kind::function_type;
    } else if (word == "?(") {
      e.kind = Kind::group;
      e.parts.push_back(sequence(")"));
    } else if (word == "any(") {
      e.kind = Kind::any;
      do e.parts.push_back(sequence(")"));
      while (separator_ == "|");
    } else if (word == "?flag(" || word == "?unit(" || word == "?word(" || word == "?token(") {
      e.kind = word == "?flag("   ? Kind::flag
               : word == "?unit(" ? Kind::unit
               : word == "?word(" ? Kind::word
                                  : Kind::token;
      e.text = next();
      if (e.kind == Kind::token) e.spec = spec(e.text.substr(1));
      for (auto each = next(); each != ")"; each = next()) {
        if (each.empty()) wrong("a bracket is not closed");
        e.words.push_back(each);
      }
    } else if (word == "?pairs(") {
      e.kind = Kind::pairs;
      e.spec = spec(next().substr(1));
      e.specs.push_back(spec(next().substr(1)));
      if (next() != ")") wrong("a bracket is not closed");
    } else if (word.starts_with("short")) {
      e.kind = Kind::type;
      const auto open = word.find('(');
      for (const auto name : kShortened)
        if (name.substr(name.find('.') + 1) == word.substr(6, open - 6)) e.text = name;
      if (e.text.empty()) wrong("no such short type");
      type_list(word.substr(open + 1, word.size() - open - 2), e);
    } else if (word.starts_with("type")) {
      auto names = word;
      while (!names.ends_with(')')) { // "types($a $b)": the blank is inside
        const auto more = next();
        if (more.empty()) wrong("a bracket is not closed");
        names = {names.data(), static_cast<std::size_t>(more.data() + more.size() - names.data())};
      }
      e.kind = names.starts_with("types") ? Kind::types : Kind::type;
      const auto open = names.find('(');
      type_list(names.substr(open + 1, names.size() - open - 2), e);
    } else if (word.starts_with('$')) {
      e.kind = word.ends_with('*') ? Kind::operands : Kind::operand;
      e.spec = spec(word.substr(1, word.size() - (word.ends_with('*') ? 2 : 1)));
    } else if (word.starts_with('@')) {
      e.kind = Kind::attribute;
      e.text = word.substr(1);
    } else {
      e.text = word;
    }
    return e;
  }

  std::string_view rest_, op_, separator_;
  std::vector<std::string_view> names_;
};

std::vector<Format> compile(const OpInfo& info) {
  std::vector<Format> formats;
  auto text = info.format;
  if (text == "custom" || text == "generic" || text.empty()) return formats;
  while (true) {
    const auto bar = text.find(" || ");
    formats.push_back(Compiler(text.substr(0, bar), info.name).compile());
    if (bar == kNowhere) return formats;
    text.remove_prefix(bar + 4);
  }
}

} // namespace

const std::vector<Format>& formats_of(Op op) {
  static const auto all = [] {
    std::vector<std::vector<Format>> rows;
    rows.emplace_back(); // unknown
#define HEBE_OP(id, name, typing, effect, format) rows.push_back(compile(info_of(Op::id)));
#include "ttgir/ops.def"
#undef HEBE_OP
    return rows;
  }();
  return all[static_cast<std::size_t>(op)];
}

} // namespace hebe::ttgir
