#include "qualify/ptx_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace hebe::qualify {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

class Cutter {
public:
  explicit Cutter(std::string_view text) : text_(text) {}

  PtxText cut() {
    while (skip_blanks()) {
      const char c = text_[at_];
      if (c == '{' || c == '}' || c == ';')
        ++at_;
      else if (c == '.')
        directive();
      else if (!label())
        instruction();
    }
    return std::move(out_);
  }

private:
  void step() {
    if (at_ == text_.size()) return;
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  bool comment() {
    if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      return true;
    }
    if (text_.substr(at_, 2) == "/*") {
      while (at_ < text_.size() && text_.substr(at_, 2) != "*/") step();
      at_ = std::min(text_.size(), at_ + 2);
      return true;
    }
    return false;
  }
  bool skip_blanks() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])))
        step();
      else if (!comment())
        break;
    }
    return at_ < text_.size();
  }
  std::string_view until_line_end() {
    const auto begin = at_;
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    return text_.substr(begin, at_ - begin);
  }
  /// To the first of `stops` outside parentheses; initialisers' braces too where '{' is no stop.
  std::string_view until(std::string_view stops) {
    const auto begin = at_;
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (depth == 0 && stops.find(c) != std::string_view::npos) break;
      if (c == '(' || c == '{') ++depth;
      if (c == ')' || c == '}') depth = std::max(0, depth - 1);
      step();
    }
    return text_.substr(begin, at_ - begin);
  }

  void directive() {
    const auto begin = at_;
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    static constexpr std::string_view lines[] = {".version", ".address_size", ".loc", ".file"};
    if (word == ".target") {
      out_.target = trimmed(until_line_end());
      out_.target = out_.target.substr(0, out_.target.find_first_of(", /"));
      return;
    }
    if (std::ranges::find(lines, word) != std::end(lines)) {
      until_line_end();
      return;
    }
    if (word == ".section") { // debug information, in braces
      until("{");
      step();
      until("}");
      return;
    }
    if (word == ".visible" || word == ".entry" || word == ".func" || word == ".weak" ||
        word == ".extern") {
      at_ = begin;
      header();
      return;
    }
    until(";");
  }

  void header() {
    const auto head = until("{;");
    const auto entry = head.find(".entry");
    if (entry == std::string_view::npos && head.find(".func") == std::string_view::npos)
      until(";"); // a variable and its initialiser
    if (entry == std::string_view::npos || !out_.entry.empty()) return;
    const auto open = head.find('(', entry);
    out_.entry =
        trimmed(head.substr(entry + 6, open == std::string_view::npos ? open : open - entry - 6));
    if (open != std::string_view::npos)
      parameters(head.substr(open + 1, head.find(')', open) - open - 1));
  }

  void parameters(std::string_view list) {
    std::uint32_t offset = 0;
    while (!list.empty()) {
      const auto comma = list.find(',');
      const auto each = trimmed(list.substr(0, comma));
      list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
      if (each.empty()) continue;
      const auto last = each.find_last_of(" \t");
      auto name = each.substr(last == std::string_view::npos ? 0 : last + 1);
      ParameterPlace place;
      place.bytes = 4;
      for (const auto& [type, bytes] : {std::pair{".u64", 8U},
                                        {".b64", 8U},
                                        {".s64", 8U},
                                        {".f64", 8U},
                                        {".u16", 2U},
                                        {".b16", 2U},
                                        {".s16", 2U},
                                        {".f16", 2U},
                                        {".u8", 1U},
                                        {".b8", 1U},
                                        {".s8", 1U}})
        if (each.find(type) != std::string_view::npos) place.bytes = bytes;
      std::uint32_t align = place.bytes;
      place.pointer = each.find(".ptr") != std::string_view::npos;
      if (const auto bracket = name.find('['); bracket != std::string_view::npos) {
        // An array: a tensor descriptor by value.
        std::uint32_t number = 0;
        std::from_chars(name.data() + bracket + 1, name.data() + name.size(), number);
        place.bytes *= number;
        place.pointer = true;
        name = name.substr(0, bracket);
        if (const auto at = each.find(".align "); at != std::string_view::npos)
          std::from_chars(each.data() + at + 7, each.data() + each.size(), align);
      }
      offset = (offset + align - 1) / align * align;
      place.offset = offset;
      offset += place.bytes;
      place.name = name;
      out_.parameters.push_back(std::move(place));
    }
  }

  bool label() {
    auto end = at_;
    while (end < text_.size() && is_name(text_[end])) ++end;
    if (end == at_ || end >= text_.size() || text_[end] != ':' || text_.substr(end, 2) == "::")
      return false;
    out_.labels.emplace(text_.substr(at_, end - at_), line_);
    at_ = end + 1;
    return true;
  }

  void instruction() {
    PtxInstruction found;
    found.line = line_;
    if (text_[at_] == '@') {
      found.predicated = true;
      while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
      skip_blanks();
    }
    const auto begin = at_;
    while (at_ < text_.size() && text_[at_] != ';' &&
           !std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
    found.opcode = text_.substr(begin, at_ - begin);
    found.rest = trimmed(until(";"));
    if (!found.opcode.empty()) out_.instructions.push_back(found);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  PtxText out_;
};

} // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts_of(std::string_view opcode) {
  std::vector<std::string_view> parts;
  while (!opcode.empty()) {
    const auto dot = opcode.find('.');
    parts.push_back(opcode.substr(0, dot));
    opcode.remove_prefix(dot == std::string_view::npos ? opcode.size() : dot + 1);
  }
  return parts;
}

std::vector<std::string_view> names_in(std::string_view operand) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < operand.size();) {
    const auto begin = i;
    while (i < operand.size() && is_name(operand[i])) ++i;
    if (i == begin)
      ++i;
    else if (!std::isdigit(static_cast<unsigned char>(operand[begin])))
      names.push_back(operand.substr(begin, i - begin));
  }
  return names;
}

std::vector<std::string_view> PtxInstruction::operands() const {
  std::vector<std::string_view> found;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= rest.size(); ++i) {
    if (i == rest.size() || (rest[i] == ',' && depth == 0)) {
      if (const auto each = trimmed(rest.substr(begin, i - begin)); !each.empty())
        found.push_back(each);
      begin = i + 1;
    } else if (rest[i] == '{' || rest[i] == '[' || rest[i] == '(') {
      ++depth;
    } else if (rest[i] == '}' || rest[i] == ']' || rest[i] == ')') {
      --depth;
    }
  }
  return found;
}

bool PtxInstruction::has(std::string_view part) const {
  const auto parts = parts_of(opcode);
  return std::ranges::find(parts, part) != parts.end();
}

PtxText cut_ptx(std::string_view text) { return Cutter(text).cut(); }

} // namespace hebe::qualify
