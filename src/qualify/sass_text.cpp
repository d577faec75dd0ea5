#include "qualify/sass_text.hpp"

#include "qualify/ptx_text.hpp"

#include <algorithm>
#include <charconv>

namespace hebe::qualify {
namespace {

std::vector<std::string_view> cut_operands(std::string_view text) {
  std::vector<std::string_view> found;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const auto each = trimmed(text.substr(begin, i - begin)); !each.empty())
        found.push_back(each);
      begin = i + 1;
    } else if (text[i] == '[' || text[i] == '{') {
      ++depth;
    } else if (text[i] == ']' || text[i] == '}') {
      --depth;
    }
  }
  return found;
}

} // namespace

bool SassInstruction::has(std::string_view modifier) const {
  const auto parts = parts_of(opcode);
  return std::ranges::find(parts, modifier) != parts.end();
}

SassText cut_sass(std::string_view text) {
  SassText out;
  std::uint32_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    auto line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // In a header flag, or (from sm_100 on) a directive of its own.
    for (const std::string_view mark : {"EF_CUDA_SM", ".target\tsm_", ".target sm_"})
      if (const auto at = line.find(mark); at != std::string_view::npos && out.arch == 0)
        std::from_chars(line.data() + at + mark.size(), line.data() + line.size(), out.arch);
    if (line.ends_with(':')) {
      out.labels.emplace(line.substr(0, line.size() - 1), out.instructions.size());
      continue;
    }
    if (!line.starts_with("/*")) continue;
    const auto close = line.find("*/"), semicolon = line.find(';');
    if (close == std::string_view::npos || semicolon == std::string_view::npos) continue;
    line = trimmed(line.substr(close + 2, semicolon - close - 2));
    SassInstruction found;
    found.line = number;
    if (line.starts_with('{')) line = trimmed(line.substr(1)); // dual issue of old architectures
    if (line.starts_with('@')) {
      found.predicate = line.substr(0, line.find(' '));
      line = trimmed(line.substr(found.predicate.size()));
    }
    found.opcode = line.substr(0, line.find(' '));
    found.operands = cut_operands(line.substr(found.opcode.size()));
    if (!found.opcode.empty()) out.instructions.push_back(std::move(found));
  }
  return out;
}

} // namespace hebe::qualify
