#include "core/result.hpp"

#include <array>

namespace hebe {
namespace {
struct Row {
  std::string_view name;
  ExitCode exit;
  std::string_view meaning;
};
constexpr std::array kRows = {
#define X(name, exit, meaning) Row{#name, ExitCode::exit, meaning},
    HEBE_REFUSALS(X)
#undef X
};
const Row& row(RefusalCode code) { return kRows.at(static_cast<std::size_t>(code)); }

// Other people's files are quoted here, and a terminal obeys what it is sent.
std::string without_control(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t')
      out += c;
    else
      (out += "\\x") += {kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}
} // namespace

std::string_view name_of(RefusalCode code) { return row(code).name; }
std::string_view meaning_of(RefusalCode code) { return row(code).meaning; }
ExitCode exit_code_of(RefusalCode code) { return row(code).exit; }

std::optional<RefusalCode> refusal_named(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<RefusalCode>(i);
  return std::nullopt;
}

std::string to_text(const Refusal& r) {
  std::string text = "refused (" + std::string(name_of(r.code)) + "): " + r.what;
  if (!r.where.empty()) text += "\n  where: " + r.where;
  if (!r.not_written.empty()) text += "\n  not written: " + r.not_written;
  if (!r.next.empty()) text += "\n  next: " + r.next;
  return without_control(text);
}

} // namespace hebe
