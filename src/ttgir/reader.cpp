// Structure: regions, blocks, operations in generic form, the module. Tokens are in
// reader_text.cpp.
#include "ttgir/reader.hpp"

#include "ttgir/reader_state.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

constexpr std::size_t kDeepestRegion = 200; // Triton's own kernels nest about ten

/// What stands at a place, for a message.
std::string found_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return "the end of the text";
  const auto c = static_cast<unsigned char>(text[at]);
  if (c == '\n' || c == '\r') return "the end of the line";
  if (c < 0x20 || c >= 0x7f) return fmt::format("the byte 0x{:02x}", c);
  auto end = at + 1;
  if (name_character(text[at]) || text[at] == '%' || text[at] == '!' || text[at] == '#')
    while (end < text.size() && end - at < 40 && name_character(text[end])) ++end;
  return fmt::format("`{}`", text.substr(at, end - at));
}

} // namespace

bool Reader::operand(Parts& parts) {
  std::string_view name;
  std::uint32_t number = 0;
  skip();
  const auto place = at_;
  if (!value_name(name, number)) return false;
  Value* value = scopes_.find(name);
  if (value && number == ~0U && value->group >= 0)
    return fail(place, fmt::format("one of the results of %{}, as %{}#0", name, name));
  if (value && number != ~0U) {
    const auto* owner = value->op;
    if (!owner || value->group < 0 || value->index + number >= owner->results.size() ||
        owner->results[value->index + number].name != name)
      return fail(place, fmt::format("a result that %{} has", name));
    value += number;
  }
  if (!value) parts.later.emplace_back(parts.operands.size(), place);
  parts.operands.push_back(value);
  return true;
}

bool Reader::result_names(Names& names) {
  do {
    std::string_view name;
    std::uint32_t unused = 0;
    const auto place = at_;
    if (!value_name(name, unused)) return false;
    if (const Value* known = scopes_.find(name))
      return fail(place, fmt::format("a new name: %{} is defined on line {}", name, known->line));
    std::uint32_t count = 1;
    bool grouped = false;
    if (at(":")) {
      grouped = names.grouped = true;
      const auto digits = ++at_;
      count = 0;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - digits < 5)
        count = count * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
      if (count == 0) return fail(digits, "the number of results after `:`");
    }
    names.groups.emplace_back(name, grouped ? count : 0);
    names.count += count;
  } while (accept(","));
  return expect("=");
}

bool Reader::block_arguments(Block& block, char close) {
  const std::string_view end(&close, 1);
  struct Argument {
    Value value;
    std::vector<Attribute> attributes;
  };
  std::vector<Argument> found;
  if (skip(); !accept(end)) {
    do {
      Argument argument;
      std::uint32_t unused = 0;
      skip();
      const auto place = at_;
      argument.value.line = line_;
      if (!value_name(argument.value.name, unused) || !expect(":") || !type(argument.value.type))
        return false;
      if (const Value* known = scopes_.find(argument.value.name))
        return fail(place, fmt::format("a new name: %{} is defined on line {}", argument.value.name,
                                       known->line));
      if (accept("{") && !dictionary('}', Attribute::Place::dictionary, argument.attributes))
        return false;
      if (!location(argument.value.location)) return false;
      found.push_back(std::move(argument));
    } while (skip(), accept(","));
    if (!expect(end)) return false;
  }
  block.arguments = module_.make_list<Value>(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    Value& value = block.arguments[i] = found[i].value;
    value.block = &block;
    value.index = static_cast<std::uint32_t>(i);
    value.attributes = keep(found[i].attributes);
    module_.init_value(value);
    if (scopes_.find(value.name))
      return fail(at_, fmt::format("every argument once: %{} is there twice", value.name));
    scopes_.define(value.name, &value);
  }
  return true;
}

/// "^bb1(%a: f32):  // pred: ^bb0"
bool Reader::block_label(Region& region, Block*& block) {
  const auto place = ++at_;
  const auto label = word();
  if (label.empty()) return fail(place, "the name of a block after `^`");
  Block*& entry = (*labels_)[label];
  if (entry && !entry->label.empty())
    return fail(place, fmt::format("a new name: ^{} is there already", label));
  if (!entry) entry = &module_.make_block(region, false);
  block = entry;
  block->label = label;
  region.blocks.push_back(block);
  if (accept("(") && !block_arguments(*block, ')')) return false;
  if (!expect(":")) return false;
  const auto end = std::min(text_.find('\n', at_), text_.size());
  if (const auto rest = text_.substr(at_, end - at_); trimmed(rest).starts_with("//")) {
    block->comment = rest;
    at_ = end;
  }
  return true;
}

/// After the opening brace, up to and with the closing one.
bool Reader::region(Region& region) {
  if (++depth_ > kDeepestRegion)
    return fail(at_, fmt::format("regions nested at most {} deep", kDeepestRegion));
  std::unordered_map<std::string_view, Block*> labels;
  auto* const outer = std::exchange(labels_, &labels);
  Region* const around = std::exchange(region_, &region);
  scopes_.open();
  Block* block = region.blocks.empty() ? nullptr : region.blocks.front();
  if (block)
    for (Value& argument : block->arguments) scopes_.define(argument.name, &argument);
  while (true) {
    if (!skip()) return fail(at_, "`}`, the end of a region");
    if (at("}")) break;
    if (at("^")) {
      if (!block_label(region, block)) return false;
      continue;
    }
    if (!block) block = &module_.make_block(region);
    if (!operation(*block)) return false;
  }
  for (const auto& [label, target] : labels)
    if (target->label.empty())
      return fail(at_, fmt::format("a block ^{}, which a branch names", label));
  if (!fixups_.empty()) {
    std::vector<Fixup> open;
    for (const Fixup& fixup : fixups_) {
      Parts parts;
      const auto here = std::exchange(at_, fixup.place);
      if (!operand(parts)) return false;
      at_ = here;
      if (parts.operands[0]) {
        fixup.op->operands[fixup.operand] = parts.operands[0];
        if (!agrees(*parts.operands[0], fixup.written, *fixup.op, fixup.place)) return false;
      } else if (scopes_.depth() > 1)
        open.push_back(fixup);
      else
        return fail(fixup.place, "a value that is defined");
    }
    fixups_ = std::move(open);
  }
  ++at_;
  scopes_.close();
  labels_ = outer;
  region_ = around;
  --depth_;
  return true;
}

/// After the quoted name.
bool Reader::generic(Operation& op, Parts& parts) {
  op.form = Operation::Form::generic;
  if (!expect("(")) return false;
  if (skip(); !accept(")")) {
    do
      if (!operand(parts)) return false;
    while (skip(), accept(","));
    if (!expect(")")) return false;
  }
  if (accept("[")) {
    do
      if (!successor(parts)) return false;
    while (accept(","));
    if (!expect("]")) return false;
  }
  if (accept("<{") &&
      (!dictionary('}', Attribute::Place::properties, parts.attributes) || !expect(">")))
    return false;
  if (accept("(")) {
    do {
      if (!expect("{")) return false;
      if (!region(new_region(op, parts))) return false;
    } while (skip(), accept(","));
    if (!expect(")")) return false;
  }
  if (accept("{") && !dictionary('}', Attribute::Place::dictionary, parts.attributes)) return false;
  if (!expect(":") || !expect("(")) return false;
  const auto before = parts.results.size();
  if (!types_until(')', parts.results)) return false;
  for (std::size_t i = before; i < parts.results.size(); ++i)
    parts.written.emplace_back(static_cast<std::uint8_t>(i - before), parts.results[i]);
  if (parts.results.size() - before != parts.operands.size())
    return fail(at_, fmt::format("{} operand types, one for each operand", parts.operands.size()));
  parts.results.resize(before);
  return arrow_results(parts);
}

Region& Reader::new_region(Operation& op, Parts& parts) {
  Region& region = module_.make_region(op);
  parts.regions.push_back(&region);
  return region;
}

template <class T> std::span<T> Reader::keep(const std::vector<T>& from) {
  auto list = module_.make_list<T>(from.size());
  std::copy(from.begin(), from.end(), list.begin());
  return list;
}

/// `begin`: where the operation's name stands.
bool Reader::finish(Operation& op, Parts& parts, const Names& names, std::size_t begin) {
  if (!infer(op, parts, names, begin)) return false;
  op.operands = keep(parts.operands);
  op.segments = keep(parts.segments);
  op.attributes = keep(parts.attributes);
  op.regions = keep(parts.regions);
  op.successors = keep(parts.successors);
  op.pieces = keep(parts.pieces);
  for (const auto& [index, place] : parts.later)
    fixups_.push_back({&op, index, place, parts.operand_types[index]});
  op.results = module_.make_list<Value>(names.count);
  if (names.grouped) {
    auto groups = module_.make_list<std::uint8_t>(names.groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (names.groups[i].second > 255) return fail(begin, "at most 255 results of one name");
      groups[i] = static_cast<std::uint8_t>(names.groups[i].second);
    }
    op.result_groups = groups;
  }
  std::uint32_t index = 0;
  for (const auto& [name, count] : names.groups) {
    for (std::uint32_t i = 0; i < std::max(1U, count); ++i, ++index) {
      Value& value = op.results[index];
      value.type = index < parts.results.size() ? parts.results[index] : nullptr;
      value.name = name;
      value.op = &op;
      value.index = index;
      value.line = op.line;
      value.group = count ? static_cast<std::int32_t>(i) : -1;
      module_.init_value(value);
      if (i == 0) {
        if (scopes_.find(name))
          return fail(begin, fmt::format("a new name: %{} is there twice", name));
        scopes_.define(name, &value);
      }
    }
  }
  return true;
}

bool Reader::operation(Block& block) {
  Names names;
  const auto line = line_;
  if (at("%") && !result_names(names)) return false;
  skip();
  if (parts_.size() <= depth_) parts_.emplace_back();
  Parts& parts = parts_[depth_];
  parts.clear();
  Operation& op = module_.make_operation();
  op.block = &block;
  op.line = line;
  const auto begin = at_;
  bool understood = true;
  if (at("\"")) {
    const auto end = end_of_string(text_, at_);
    if (end == kNowhere) return fail(at_, "the end of the string, on its line");
    op.name = text_.substr(at_ + 1, end - at_ - 2);
    op.code = op_named(op.name);
    at_ = end;
    if (!generic(op, parts)) return false;
    recognise(op, parts);
  } else {
    op.name = word();
    if (op.name.empty()) return fail(begin, "an operation");
    op.code = op_named(op.name);
    const auto format = op.info().format;
    const auto after_name = at_;
    const auto read_line = line_;
    if (op.code == Op::unknown || format == "generic")
      understood = false;
    else
      understood = format == "custom" ? custom(op, parts) : table(op, parts);
    if (failed_ && options_.carry_unmatched && parts.regions.empty()) {
      op.unread = module_.keep(
          fmt::format("{}:{}: expected {}", options_.file, line_of(failed_at_), expected_));
      failed_ = understood = false;
    }
    if (failed_) return false;
    if (!understood) {
      at_ = after_name;
      line_ = read_line;
      parts.clear();
      if (!opaque(op, parts)) return false;
    }
  }
  if (!finish(op, parts, names, begin)) return false;
  if (op.form != Operation::Form::custom || op.regions.empty()) {
    if (!location(op.location)) return false;
  }
  block.operations.push_back(&op);
  return true;
}

bool Reader::module_operation() {
  Operation& op = module_.make_operation();
  op.form = Operation::Form::custom;
  op.code = Op::module;
  op.name = "module";
  op.line = line_;
  Parts& parts = parts_.emplace_back();
  if (accept("@")) {
    parts.attributes.push_back({"sym_name", word(), Attribute::Place::syntax});
  }
  if (accept_word("attributes")) {
    if (!expect("{") || !dictionary('}', Attribute::Place::dictionary, parts.attributes))
      return false;
  }
  if (!expect("{")) return false;
  op.attributes = keep(parts.attributes);
  Region& body = new_region(op, parts);
  op.regions = keep(parts.regions);
  module_.make_block(body);
  module_.top_ = &op;
  return region(body) && location(op.location);
}

Status Reader::read() {
  // "#blocked = #ttg.blocked<…>", "#loc3 = loc(…)": before the module and after it.
  const auto aliases = [&]() {
    while (skip() && (at("#") || at("!"))) {
      const auto begin = at_++;
      const auto name = text_.substr(begin, 1 + word().size());
      if (!expect("=")) return false;
      skip_blanks();
      const auto end = std::min(text_.find('\n', at_), text_.size());
      const auto value = trimmed(text_.substr(at_, end - at_));
      if (value.empty()) return fail(at_, "what the alias stands for");
      if (!module_.aliases_.emplace(name, value).second)
        return fail(begin, fmt::format("a new name: {} is there already", name));
      at_ = end;
    }
    return true;
  };
  bool whole = aliases();
  if (whole) {
    module_.before_ = text_.substr(0, at_);
    whole = at_ < text_.size() && (accept_word("module") || accept_word("builtin.module"))
                ? module_operation()
                : fail(at_, "`module`, or an alias (`#name = …`)");
  }
  if (whole) {
    module_.after_ = text_.substr(at_);
    whole = aliases();
    if (whole && at_ < text_.size())
      whole = fail(at_, "an alias (`#name = …`) or the end of the text");
  }
  if (whole) {
    std::size_t circle = kNowhere;
    for (const auto& [name, value] : module_.aliases_)
      if (module_.aliases_.contains(module_.resolve(name)))
        circle = std::min(circle, text_.find(std::string(name) + " ="));
    if (circle != kNowhere)
      whole = fail(circle, "an alias that ends somewhere: this one goes in a circle");
  }
  if (whole) return {};
  const auto line_begin =
      failed_at_ == 0 ? 0 : text_.rfind('\n', std::min(failed_at_, text_.size()) - 1) + 1;
  return refuse(
      RefusalCode::bad_ir,
      fmt::format("expected {}, found {}", expected_, found_at(text_, failed_at_)),
      "compare the line with what this Triton prints; `hebe ttgir verify` says more about types "
      "and names",
      fmt::format("{}:{}:{}", options_.file, line_of(failed_at_), failed_at_ - line_begin + 1));
}

Result<std::unique_ptr<Module>> read_module(std::string text, const ReadOptions& options) {
  auto module = std::make_unique<Module>(std::move(text));
  HEBE_CHECK(Reader(*module, options).read());
  return module;
}

} // namespace hebe::ttgir
