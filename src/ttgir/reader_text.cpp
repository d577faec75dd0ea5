// The reader's tokens: blanks, words, names, types, dictionaries, locations; and the scopes of
// names.
#include "ttgir/reader_state.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::ttgir {

void Scopes::close() {
  for (const auto mark = marks_.back(); undo_.size() > mark; undo_.pop_back())
    *undo_.back() = nullptr;
  marks_.pop_back();
}

Value* Scopes::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second;
}

void Scopes::define(std::string_view name, Value* value) {
  Value*& entry = values_[name];
  entry = value;
  undo_.push_back(&entry); // stays where it is: the map moves no nodes
}

void Reader::Parts::clear() {
  operands.clear(), segments.clear(), attributes.clear(), written.clear(), results.clear(),
      operand_types.clear();
  regions.clear(), successors.clear(), pieces.clear(), later.clear();
}

Reader::Reader(Module& module, const ReadOptions& options)
    : module_(module), options_(options), text_(module.source_) {}

bool Reader::fail(std::size_t at, std::string expected) {
  if (!failed_) {
    failed_ = true;
    failed_at_ = at;
    expected_ = std::move(expected);
  }
  return false;
}

std::uint32_t Reader::line_of(std::size_t place) const {
  const auto before = text_.substr(0, place);
  return 1 + static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
}

void Reader::skip_blanks() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

bool Reader::skip() {
  while (true) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      ++line_;
    } else if (at("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return at_ < text_.size();
    }
  }
}

bool Reader::accept(std::string_view token) {
  skip_blanks();
  if (!at(token)) return false;
  at_ += token.size();
  return true;
}

bool Reader::accept_word(std::string_view word) {
  skip_blanks();
  if (!at(word)) return false;
  const auto end = at_ + word.size();
  if (end < text_.size() && name_character(text_[end])) return false;
  at_ = end;
  return true;
}

bool Reader::expect(std::string_view token) {
  skip();
  if (name_character(token[0]) ? accept_word(token) : accept(token)) return true;
  return fail(at_, fmt::format("`{}`", token));
}

std::string_view Reader::word() {
  const auto begin = at_;
  while (at_ < text_.size() && name_character(text_[at_]) && text_[at_] != '-') ++at_;
  return text_.substr(begin, at_ - begin);
}

bool Reader::value_name(std::string_view& name, std::uint32_t& number) {
  skip();
  if (!at("%")) return fail(at_, "a value (`%name`)");
  const auto begin = ++at_;
  while (at_ < text_.size() && name_character(text_[at_])) ++at_;
  name = text_.substr(begin, at_ - begin);
  if (name.empty()) return fail(at_, "a name after `%`");
  number = ~0U;
  if (at("#")) {
    const auto digits = ++at_;
    number = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - digits < 7)
      number = number * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
    if (at_ == digits) return fail(at_, "the number of a result after `#`");
  }
  return true;
}

bool Reader::type(TypeRef& type) {
  skip_blanks();
  const auto length = end_of_type(text_.substr(at_));
  if (length == kNowhere) return fail(at_, "a type");
  type = module_.types_.get(text_.substr(at_, length));
  at_ += length;
  return true;
}

bool Reader::types_until(char close, std::vector<TypeRef>& types) {
  const std::string_view end(&close, 1);
  if (skip(); accept(end)) return true;
  do {
    TypeRef each = nullptr;
    if (!type(each)) return false;
    types.push_back(each);
  } while (accept(","));
  return expect(end);
}

bool Reader::attribute_text(std::string_view stops, std::string_view& text) {
  skip();
  const auto end = end_of_item(text_, at_, stops);
  text = trimmed(text_.substr(at_, end - at_));
  if (text.empty()) return fail(at_, "an attribute");
  if (end < text_.size() && stops.find(text_[end]) == kNowhere && text_[end] != '\n')
    return fail(end, fmt::format("the end of what `{}` opens, on this line", text_[end]));
  at_ = end;
  return true;
}

/// After the opening brace.
bool Reader::dictionary(char close, Attribute::Place place, std::vector<Attribute>& attributes) {
  const std::string_view end(&close, 1);
  if (skip(); accept(end)) return true;
  do {
    skip();
    Attribute attribute{{}, {}, place};
    if (at("\"")) {
      const auto stop = end_of_string(text_, at_);
      if (stop == kNowhere) return fail(at_, "the end of the string, on its line");
      attribute.name = text_.substr(at_ + 1, stop - at_ - 2);
      at_ = stop;
    } else if (attribute.name = word(); attribute.name.empty()) {
      return fail(at_, "the name of an attribute");
    }
    if (accept("=") && !attribute_text(",}", attribute.text)) return false;
    attributes.push_back(attribute);
  } while (skip(), accept(","));
  return expect(end);
}

bool Reader::location(std::string_view& location) {
  skip_blanks();
  if (!at("loc(")) return true;
  const auto end = end_of_brackets(text_, at_ + 3);
  if (end == kNowhere) return fail(at_ + 3, "the closing bracket of `loc(`, on its line");
  location = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

} // namespace hebe::ttgir
