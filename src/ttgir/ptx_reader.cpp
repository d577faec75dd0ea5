#include "ttgir/ptx.hpp"

#include "ttgir/scan.hpp"

#include <bit>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>

namespace hebe::ttgir {
namespace {

using Type = Ptx::Type;
using Do = Ptx::Do;

std::optional<Type> type_named(std::string_view name) {
  constexpr std::pair<std::string_view, Type> names[] = {
      {"b16", Type::b16},       {"b32", Type::b32},       {"b64", Type::b64},
      {"s16", Type::s16},       {"u16", Type::u16},       {"s32", Type::s32},
      {"u32", Type::u32},       {"s64", Type::s64},       {"u64", Type::u64},
      {"f16", Type::f16},       {"bf16", Type::bf16},     {"f16x2", Type::f16x2},
      {"bf16x2", Type::bf16x2}, {"f32", Type::f32},       {"f64", Type::f64},
      {"tf32", Type::tf32},     {"e4m3x2", Type::e4m3x2}, {"e5m2x2", Type::e5m2x2},
      {"pred", Type::pred}};
  for (const auto& [text, type] : names)
    if (text == name) return type;
  return std::nullopt;
}

std::optional<Do> action_named(std::string_view name) {
  constexpr std::pair<std::string_view, Do> names[] = {
      {"mov", Do::mov},   {"add", Do::add},    {"sub", Do::sub},   {"mul", Do::mul},
      {"mad", Do::mad},   {"fma", Do::fma},    {"div", Do::div},   {"min", Do::min},
      {"max", Do::max},   {"neg", Do::neg},    {"abs", Do::abs},   {"and", Do::and_},
      {"or", Do::or_},    {"xor", Do::xor_},   {"not", Do::not_},  {"shl", Do::shl},
      {"shr", Do::shr},   {"lop3", Do::lop3},  {"prmt", Do::prmt}, {"setp", Do::setp},
      {"selp", Do::selp}, {"cvt", Do::cvt},    {"ex2", Do::ex2},   {"lg2", Do::lg2},
      {"sin", Do::sin},   {"cos", Do::cos},    {"tanh", Do::tanh}, {"rcp", Do::rcp},
      {"sqrt", Do::sqrt}, {"rsqrt", Do::rsqrt}};
  for (const auto& [text, action] : names)
    if (text == name) return action;
  return std::nullopt;
}

std::optional<Ptx::Compare> compare_named(std::string_view name) {
  constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<Ptx::Compare>(i);
  return std::nullopt;
}

std::size_t inputs_of(Do what) {
  switch (what) {
  case Do::mov:
  case Do::neg:
  case Do::abs:
  case Do::not_:
  case Do::ex2:
  case Do::lg2:
  case Do::sin:
  case Do::cos:
  case Do::tanh:
  case Do::rcp:
  case Do::sqrt:
  case Do::rsqrt:
    return 1;
  case Do::mad:
  case Do::fma:
  case Do::prmt:
  case Do::selp:
    return 3;
  case Do::lop3:
    return 4;
  case Do::cvt:
    return 0; // one, or two that become a pair
  default:
    return 2;
  }
}

struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::vector<std::string_view> dotted(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    if (dot == text.npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

} // namespace

class PtxReader {
public:
  PtxReader(Ptx& ptx, std::size_t operands) : ptx_(ptx) {
    ptx_.registers_ = operands;
    operands_ = operands;
  }

  void read() {
    std::string_view rest = ptx_.text_;
    while (!(rest = trimmed(rest)).empty()) {
      if (rest[0] == '{' || rest[0] == '}') {
        rest.remove_prefix(1);
        continue;
      }
      const auto end = rest.find(';');
      if (end == rest.npos) throw Unknown(std::string(rest));
      statement(trimmed(rest.substr(0, end)));
      rest.remove_prefix(end + 1);
    }
  }

private:
  void statement(std::string_view text) {
    if (text.empty()) return;
    if (text.starts_with(".reg")) return declare(text);
    Ptx::Instruction made;
    const std::string_view whole = text;
    const auto blank = [&] { return text.find_first_of(" \t"); };
    if (text[0] == '@') {
      auto guard = text.substr(1, blank() - 1);
      if ((made.negated = guard.starts_with('!'))) guard.remove_prefix(1);
      made.guard = register_named(guard);
      text = trimmed(text.substr(blank()));
    }
    const auto words = dotted(text.substr(0, blank()));
    text = blank() == text.npos ? std::string_view{} : trimmed(text.substr(blank()));
    if (words[0] == "griddepcontrol") return; // programs of one launch only
    const auto what = action_named(words[0]);
    if (!what) throw Unknown(std::string(whole));
    made.what = *what;
    std::vector<Type> types;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto word = words[i];
      if (const auto type = type_named(word)) {
        types.push_back(*type);
      } else if (made.what == Do::setp && compare_named(word)) {
        made.compare = *compare_named(word);
      } else if (word == "satfinite" || word == "sat") {
        made.saturate = true;
      } else if (word == "hi" && made.what == Do::mul) {
        made.what = Do::mul_hi;
      } else if (word == "rn" || word == "rz" || word == "rna" || word == "rni" || word == "rzi") {
        made.rounding = word;
      } else if (word != "approx" && word != "ftz" && word != "full" && word != "lo" &&
                 word != "wrap") {
        throw Unknown(std::string(whole));
      }
    }
    if (types.empty() || types.size() > (made.what == Do::cvt ? 2U : 1U))
      throw Unknown(std::string(whole));
    made.type = types[0];
    made.from = types.back();
    operands(made, text, whole);
    ptx_.instructions_.push_back(std::move(made));
  }

  void operands(Ptx::Instruction& made, std::string_view text, std::string_view whole) {
    const auto parts = parts_of(text);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto part = parts[i];
      auto& list = i == 0 ? made.to : made.in;
      const bool braces = part.starts_with('{') && part.ends_with('}');
      if (braces) {
        if (made.what != Do::mov && made.what != Do::pack && made.what != Do::unpack)
          throw Unknown(std::string(whole));
        made.what = i == 0 ? Do::unpack : Do::pack;
        for (const auto each : parts_of(part.substr(1, part.size() - 2)))
          list.push_back(operand(each, Type::b16, i == 0));
        continue;
      }
      // setp writes two predicates for the halves of a pair: p|q.
      if (const auto bar = part.find('|'); i == 0 && bar != part.npos) {
        list.push_back(operand(trimmed(part.substr(0, bar)), Type::pred, true));
        part = trimmed(part.substr(bar + 1));
      }
      const Type type = made.what == Do::cvt && i > 0                              ? made.from
                        : (made.what == Do::shl || made.what == Do::shr) && i == 2 ? Type::u32
                                                                                   : made.type;
      list.push_back(operand(part, type, i == 0));
    }
    const std::size_t wanted = inputs_of(made.what);
    const bool fits = made.what == Do::cvt ? made.in.size() == 1 || made.in.size() == 2
                      : made.what == Do::pack || made.what == Do::unpack
                          ? !made.to.empty() && !made.in.empty()
                          : made.in.size() == wanted;
    if (made.to.empty() || !fits) throw Unknown(std::string(whole));
  }

  void declare(std::string_view text) {
    text = trimmed(text.substr(4));
    const auto blank = text.find_first_of(" \t");
    if (blank == text.npos) throw Unknown(std::string(text));
    for (const auto name : parts_of(text.substr(blank))) {
      const auto open = name.find('<');
      if (open == name.npos) {
        names_[std::string(name)] = next();
        continue;
      }
      int count = 0;
      std::from_chars(name.data() + open + 1, name.data() + name.size(), count);
      if (count <= 0 || count > 256) throw Unknown(std::string(text));
      for (int i = 0; i < count; ++i)
        names_[std::string(name.substr(0, open)) + std::to_string(i)] = next();
    }
  }
  std::int32_t next() { return static_cast<std::int32_t>(ptx_.registers_++); }

  std::int32_t register_named(std::string_view name) {
    if (name.starts_with('$')) {
      std::size_t number = operands_;
      std::from_chars(name.data() + 1, name.data() + name.size(), number);
      if (number < operands_) return static_cast<std::int32_t>(number);
    }
    const auto found = names_.find(std::string(name));
    if (found == names_.end()) throw Unknown(std::string(name));
    return found->second;
  }

  Ptx::Operand operand(std::string_view text, Type type, bool written) {
    if (!text.empty() && ((text[0] >= '0' && text[0] <= '9') || text[0] == '-') && !written)
      return {-1, constant(text, type)};
    return {register_named(text), 0};
  }

  static std::uint64_t constant(std::string_view text, Type type) {
    const std::string whole(text);
    const bool single = text.starts_with("0f") || text.starts_with("0F"),
               twice = text.starts_with("0d") || text.starts_with("0D");
    std::uint64_t bits = 0;
    if (single || twice || text.starts_with("0x") || text.starts_with("0X")) {
      const auto [end, error] =
          std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
      if (error != std::errc() || end != text.data() + text.size()) throw Unknown(whole);
      return bits;
    }
    const bool real = text.find('.') != text.npos || text.find('e') != text.npos;
    if (real || type == Type::f32 || type == Type::f64) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) throw Unknown(whole);
      if (type == Type::f64) return std::bit_cast<std::uint64_t>(value);
      if (type != Type::f32 && type != Type::b32) throw Unknown(whole);
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw Unknown(whole);
    return static_cast<std::uint64_t>(value);
  }

  Ptx& ptx_;
  std::size_t operands_ = 0;
  std::map<std::string, std::int32_t> names_;
};

std::expected<Ptx, std::string> Ptx::read(std::string text, std::size_t operands) {
  // Comments: "//" to the end of the line, "/* */".
  for (auto begin = text.find("//"); begin != text.npos; begin = text.find("//")) {
    const auto end = text.find('\n', begin);
    text.erase(begin, end == text.npos ? text.npos : end - begin);
  }
  for (auto begin = text.find("/*"); begin != text.npos; begin = text.find("/*")) {
    const auto end = text.find("*/", begin);
    text.erase(begin, end == text.npos ? text.npos : end + 2 - begin);
  }
  for (char& c : text)
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  Ptx ptx;
  ptx.text_ = std::move(text);
  try {
    PtxReader(ptx, operands).read();
  } catch (const Unknown& unknown) {
    return std::unexpected(std::string(unknown.what()));
  }
  // `rounding` points into text_, whose characters may move with it where they are few.
  for (auto& each : ptx.instructions_)
    if (!each.rounding.empty()) {
      constexpr std::string_view words[] = {"rn", "rz", "rna", "rni", "rzi"};
      for (const auto word : words)
        if (each.rounding == word) {
          each.rounding = word;
          break;
        }
    }
  return ptx;
}

} // namespace hebe::ttgir
