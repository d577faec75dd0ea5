#include "qualify/sass_summary.hpp"

#include "qualify/ptx_text.hpp"
#include "qualify/sass_origins.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace hebe::qualify {
namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, word) != list.end();
}

const std::unordered_map<std::string_view, std::string_view>& classes() {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::string_view> all;
    const auto add = [&](std::string_view name, std::string_view mnemonics) {
      while (!mnemonics.empty()) {
        const auto blank = mnemonics.find(' ');
        if (blank != 0) all.emplace(mnemonics.substr(0, blank), name);
        mnemonics.remove_prefix(blank == std::string_view::npos ? mnemonics.size() : blank + 1);
      }
    };
#define HEBE_SASS(name, mnemonics) add(#name, mnemonics);
#include "qualify/sass_classes.def"
#undef HEBE_SASS
    return all;
  }();
  return table;
}

/// "" where no class is known.
std::string_view class_of(const SassInstruction& at) {
  const auto mnemonic = at.mnemonic();
  if (mnemonic == "HADD2" && at.has("F32")) return "convert"; // half to single
  if (const auto found = classes().find(mnemonic); found != classes().end()) return found->second;
  if (mnemonic.starts_with('U') && !mnemonic.starts_with("UTC") && !mnemonic.starts_with("UTMA") &&
      !mnemonic.starts_with("UBLK"))
    return "uniform";
  return {};
}

std::optional<AccessKind> access_of(std::string_view mnemonic) {
  using K = AccessKind;
  static const std::unordered_map<std::string_view, K> table = {
      {"LDG", K::global_load},     {"LD", K::global_load},     {"STG", K::global_store},
      {"ST", K::global_store},     {"LDGSTS", K::async_copy},  {"ATOMG", K::atomic},
      {"ATOM", K::atomic},         {"RED", K::atomic},         {"REDG", K::atomic},
      {"UTMALDG", K::bulk_load},   {"UTMASTG", K::bulk_store}, {"UTMAREDG", K::atomic},
      {"UBLKCP", K::bulk_load},    {"UBLKRED", K::atomic},     {"LDS", K::shared_load},
      {"LDSM", K::shared_load},    {"STS", K::shared_store},   {"STSM", K::shared_store},
      {"ATOMS", K::shared_atomic}, {"STAS", K::shared_store},  {"REDAS", K::shared_atomic},
      {"LDL", K::local_load},      {"STL", K::local_store}};
  const auto found = table.find(mnemonic);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

unsigned width_of(const SassInstruction& at) {
  const auto mnemonic = at.mnemonic();
  if (mnemonic.starts_with('U')) return 0; // by the descriptor, or a register
  if (mnemonic == "LDSM" || mnemonic == "STSM")
    return at.opcode.ends_with(".4") ? 16 : at.opcode.ends_with(".2") ? 8 : 4;
  unsigned bytes = 4;
  for (const auto part : parts_of(at.opcode)) {
    if (one_of(part, {"U8", "S8"})) bytes = 1;
    if (one_of(part, {"U16", "S16"})) bytes = 2;
    if (part == "64") bytes = 8;
    if (part == "128") bytes = 16;
    if (part == "256") bytes = 32;
  }
  return bytes;
}

std::string modifiers_of(const SassInstruction& at) {
  std::string text;
  const auto parts = parts_of(at.opcode);
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (!one_of(parts[i], {"E", "U8", "S8", "U16", "S16", "64", "128", "256", "16", "M88", "MT88",
                           "4", "2", "1"}))
      text += (text.empty() ? "" : " ") + std::string(parts[i]);
  return text;
}

/// The operand that holds the address in global memory.
std::string_view global_address(const SassInstruction& at, AccessKind kind) {
  std::vector<std::string_view> addresses;
  for (const auto operand : at.operands)
    if (operand.find('[') != std::string_view::npos && !operand.starts_with("c[") &&
        !(kind == AccessKind::bulk_load && operand.starts_with("desc")))
      addresses.push_back(operand);
  if (addresses.empty()) return {};
  return kind == AccessKind::async_copy || kind == AccessKind::bulk_load ? addresses.back()
                                                                         : addresses.front();
}

void name_argument(SassOrigins::Set origins, std::span<const ParameterPlace> parameters,
                   bool base_known, StaticAccess& access) {
  for (std::size_t i = 0; i < std::min<std::size_t>(parameters.size(), 62); ++i)
    if (origins >> i & 1)
      access.argument += (access.argument.empty() ? "" : " or ") + parameters[i].name;
  if (!access.argument.empty()) return;
  access.untraced = parameters.empty() ? "the parameters are not known"
                    : !base_known      ? "where parameters lie is not known for this architecture"
                    : origins & SassOrigins::kLoaded
                        ? "its address comes out of memory or another thread"
                        : "no parameter found behind its address";
}

} // namespace

std::uint32_t parameter_base(int arch) {
  // EIATTR_PARAM_CBANK of cubins by ptxas 12.8 and 12.9.
  if (arch >= 70 && arch < 90) return 0x160;
  if (arch == 90) return 0x210;
  if (arch >= 100 && arch < 130) return 0x380;
  return 0;
}

Result<SassSummary> summarise_sass(std::string_view text,
                                   std::span<const ParameterPlace> parameters) {
  const SassText cut = cut_sass(text);
  if (cut.instructions.empty())
    return refuse(RefusalCode::bad_ir, "the SASS has no instructions",
                  "give what `nvdisasm -c` prints of the cubin");
  SassSummary out;
  out.arch = cut.arch;
  const std::uint32_t base = parameter_base(cut.arch);
  const SassOrigins origins(cut, parameters, base);
  for (std::size_t i = 0; i < cut.instructions.size(); ++i) {
    const SassInstruction& at = cut.instructions[i];
    const bool predicated = !at.predicate.empty();
    ++out.opcodes[std::string(at.opcode)];
    const auto kind = access_of(at.mnemonic());
    out.code.count(kind ? name_of(*kind) : class_of(at), at.mnemonic(), predicated);
    if (!kind) continue;
    StaticAccess access;
    access.kind = *kind;
    access.bytes = width_of(at);
    access.predicated = predicated;
    access.modifiers = modifiers_of(at);
    access.line = at.line;
    // LDGSTS has its mask as an operand ("…, P1"); !PT there is never.
    if (*kind == AccessKind::async_copy && !at.operands.empty() &&
        (at.operands.back().starts_with('P') || at.operands.back().starts_with('!')))
      access.predicated = true;
    if (is_global(*kind))
      name_argument(origins.of_address(i, global_address(at, *kind)), parameters, base != 0,
                    access);
    out.code.accesses.push_back(std::move(access));
  }
  for (const SassInstruction& at : cut.instructions)
    if (one_of(at.mnemonic(), {"BRA", "JMP"}) && !at.operands.empty()) {
      const auto operand = at.operands.back();
      const auto open = operand.find("`(");
      if (open == std::string_view::npos) continue;
      const auto label = cut.labels.find(operand.substr(open + 2, operand.find(')') - open - 2));
      if (label == cut.labels.end() || label->second >= cut.instructions.size()) continue;
      out.code.mark_loop(cut.instructions[label->second].line, at.line);
    }
  return out;
}

Json to_json(const SassSummary& summary) {
  Json json = to_json(summary.code);
  json["arch"] = summary.arch;
  json["opcodes"] = summary.opcodes;
  return json;
}

} // namespace hebe::qualify
