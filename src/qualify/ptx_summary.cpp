#include "qualify/ptx_summary.hpp"

#include "qualify/ptx_text.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

namespace hebe::qualify {
namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, word) != list.end();
}

/// Which registers an instruction copies an address from: operands that are added or moved, not
/// those that are multiplied or shifted, which are offsets.
std::vector<std::string_view> carried(const PtxInstruction& at, std::string_view base,
                                      const std::vector<std::string_view>& operands) {
  if (operands.size() < 2) return {};
  if (one_of(base, {"mov", "cvta", "add", "sub", "selp", "or", "and", "min", "max", "cvt"}) ||
      (base == "ld" && at.has("param"))) {
    std::vector<std::string_view> from;
    const std::size_t end = base == "selp" ? 3 : operands.size();
    for (std::size_t i = 1; i < std::min(end, operands.size()); ++i)
      for (const auto name : names_in(operands[i])) from.push_back(name);
    return from;
  }
  if ((base == "mad" || base == "fma") && operands.size() >= 4) return names_in(operands[3]);
  return {};
}

class Origins {
public:
  explicit Origins(const PtxText& text) : text_(text) {
    for (std::size_t i = 0; i < text.instructions.size(); ++i) {
      const auto operands = text.instructions[i].operands();
      if (operands.empty() || operands[0].starts_with('[')) continue;
      for (const auto name : names_in(operands[0])) defined_[name].push_back(i);
    }
    for (std::size_t i = 0; i < text.parameters.size(); ++i)
      parameters_.emplace(text.parameters[i].name, i);
    any_marked_ = std::ranges::any_of(text.parameters, &ParameterPlace::pointer);
  }

  /// Fills `argument` or `untraced`.
  void trace(std::string_view address, const PtxText& named, StaticAccess& access) const {
    std::set<std::size_t> found;
    std::string_view stopped;
    std::set<std::string_view> seen;
    std::vector<std::string_view> open = names_in(address);
    while (!open.empty()) {
      const auto name = open.back();
      open.pop_back();
      if (!seen.insert(name).second) continue;
      if (const auto parameter = parameters_.find(name); parameter != parameters_.end()) {
        const auto& place = named.parameters[parameter->second];
        // Without .ptr marks (older PTX) any 64-bit parameter may be a pointer.
        if (any_marked_ ? place.pointer : place.bytes == 8) found.insert(parameter->second);
        continue;
      }
      const auto definitions = defined_.find(name);
      if (definitions == defined_.end()) {
        if (!name.starts_with('%')) stopped = name; // a variable of the module: a table
        continue;
      }
      for (const auto number : definitions->second) {
        const auto& from = text_.instructions[number];
        const auto base = from.opcode.substr(0, from.opcode.find('.'));
        const auto next = carried(from, base, from.operands());
        open.insert(open.end(), next.begin(), next.end());
        if (next.empty() && (base == "ld" || base == "shfl" || base == "atom" || base == "call"))
          stopped = from.opcode;
      }
    }
    for (const auto number : found)
      access.argument += (access.argument.empty() ? "" : " or ") + named.parameters[number].name;
    if (!found.empty()) return;
    access.untraced = stopped.empty() ? "no parameter found behind its address"
                                      : fmt::format("its address comes out of {}",
                                                    stopped); // "ld.shared.b64", a name
  }

private:
  const PtxText& text_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> defined_;
  std::unordered_map<std::string_view, std::size_t> parameters_;
  bool any_marked_ = false;
};

unsigned width_of(const std::vector<std::string_view>& parts) {
  unsigned bits = 0, vector = 1;
  for (const auto part : parts) {
    if (part == "v2") vector = 2;
    if (part == "v4") vector = 4;
    if (part == "v8") vector = 8;
    if (part.size() < 2) continue;
    const auto digits = part.find_first_of("0123456789");
    const auto letters = part.substr(0, digits);
    if (digits != std::string_view::npos && one_of(letters, {"b", "u", "s", "f", "bf"}))
      std::from_chars(part.data() + digits, part.data() + part.size(), bits);
    if (part.ends_with("x2") && one_of(letters, {"f", "bf"})) bits *= 2;
  }
  return bits * vector / 8;
}

std::string modifiers_of(const std::vector<std::string_view>& parts) {
  std::string text;
  for (const auto part : parts)
    if (part.find("evict") != std::string_view::npos || part.starts_with("L1::") ||
        part.starts_with("L2::") ||
        one_of(part, {"ca",       "cg",      "cs",      "lu",      "cv",      "wb",  "wt",  "nc",
                      "volatile", "relaxed", "acquire", "release", "acq_rel", "add", "min", "max",
                      "cas",      "exch",    "and",     "or",      "xor",     "inc", "dec"}))
      text += (text.empty() ? "" : " ") + std::string(part);
  return text;
}

/// The space of a load, store or atomic; "" where it is generic.
std::string_view space_of(const std::vector<std::string_view>& parts) {
  for (const auto part : parts)
    for (const auto space : {"global", "shared", "local", "param", "const"})
      if (part == space || (part.starts_with(space) && part.find("::") != part.npos)) return space;
  return {};
}

bool is_floating(const std::vector<std::string_view>& parts) {
  return std::ranges::any_of(parts, [](std::string_view part) {
    return one_of(part, {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32"});
  });
}

/// "" where no class is known.
std::string class_of(const std::vector<std::string_view>& parts) {
  const auto base = parts[0];
  if (one_of(base, {"mma", "wmma"})) return "tensor_core";
  if (base == "wgmma")
    return parts.size() > 1 && parts[1].starts_with("mma") ? "tensor_core" : "barrier";
  if (base == "tcgen05") {
    const auto what = parts.size() > 1 ? parts[1] : "";
    if (what == "mma") return "tensor_core";
    return one_of(what, {"wait", "commit", "fence"}) ? "barrier" : "tensor_memory";
  }
  if (one_of(base, {"bar", "barrier", "mbarrier", "fence", "membar", "griddepcontrol"}))
    return "barrier";
  if (one_of(base, {"shfl", "vote", "match", "redux", "activemask", "elect"})) return "shuffle";
  if (one_of(base,
             {"bra", "brx", "ret", "exit", "call", "trap", "brkpt", "nanosleep", "setmaxnreg"}))
    return "control";
  if (one_of(base, {"mov", "selp", "slct", "cvta", "prmt", "mapa", "isspacep", "alloca"}))
    return "move";
  if (one_of(base, {"setp", "set", "testp"})) return "compare";
  if (one_of(base, {"cvt", "szext"})) return "convert";
  if (one_of(base,
             {"createpolicy", "prefetch", "prefetchu", "applypriority", "discard", "tensormap"}))
    return "cache_control";
  if (one_of(base, {"ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt"}))
    return "special_function";
  if (base == "div" || base == "rem") return is_floating(parts) ? "special_function" : "integer";
  if (one_of(base, {"and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf", "bfe", "bfi",
                    "brev", "popc", "clz", "bfind", "fns", "bmsk", "szext"}))
    return "integer";
  if (one_of(base, {"add", "sub", "mul", "mad", "fma", "neg", "abs", "min", "max", "addc", "subc",
                    "madc", "mul24", "mad24", "sad", "dp4a", "dp2a", "copysign"}))
    return is_floating(parts) || base == "fma" || base == "copysign" ? "floating_point" : "integer";
  return {};
}

class Summary {
public:
  Summary(const PtxText& text, PtxSummary& out) : text_(text), origins_(text), out_(out) {
    named_.parameters = out.parameters;
  }

  void add(const PtxInstruction& at) {
    const auto parts = parts_of(at.opcode);
    const auto base = parts[0];
    std::string name;
    if (one_of(base, {"ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "st", "multimem"}))
      name = memory(at, parts);
    else if (base == "cp")
      name = copy(at, parts);
    else
      name = class_of(parts);
    if (base == "bra")
      if (const auto target = text_.labels.find(at.rest); target != text_.labels.end())
        if (target->second <= at.line) loops_.emplace_back(target->second, at.line);
    out_.code.count(name, base == at.opcode ? base : at.opcode, at.predicated);
  }
  void finish() {
    for (const auto& [first, last] : loops_) out_.code.mark_loop(first, last);
  }

private:
  std::string access(AccessKind kind, const PtxInstruction& at,
                     const std::vector<std::string_view>& parts, std::string_view address,
                     unsigned bytes) {
    StaticAccess each;
    each.kind = kind;
    each.bytes = bytes;
    each.predicated = at.predicated;
    each.line = at.line;
    each.modifiers = modifiers_of(parts);
    if (is_global(kind)) origins_.trace(address, named_, each);
    out_.code.accesses.push_back(std::move(each));
    return std::string(name_of(kind));
  }

  std::string memory(const PtxInstruction& at, const std::vector<std::string_view>& parts) {
    const auto base = parts[0];
    const auto operands = at.operands();
    const auto bracket = std::ranges::find_if(operands, [](auto o) { return o.starts_with('['); });
    const std::string_view address = bracket == operands.end() ? std::string_view{} : *bracket;
    if (base == "ldmatrix" || base == "stmatrix") {
      const unsigned tiles = at.has("x4") ? 4 : at.has("x2") ? 2 : 1; // 8x8 of 16 bits: 4 B a lane
      return access(base == "ldmatrix" ? AccessKind::shared_load : AccessKind::shared_store, at,
                    parts, address, 4 * tiles);
    }
    const auto space = space_of(parts);
    const bool loads = base == "ld" || base == "ldu", atomic = base == "atom" || base == "red";
    const unsigned bytes = width_of(parts);
    if (space == "param" || space == "const") return "parameter";
    if (space == "local")
      return access(loads ? AccessKind::local_load : AccessKind::local_store, at, parts, address,
                    bytes);
    if (space == "shared")
      return access(atomic  ? AccessKind::shared_atomic
                    : loads ? AccessKind::shared_load
                            : AccessKind::shared_store,
                    at, parts, address, bytes);
    return access(atomic  ? AccessKind::atomic
                  : loads ? AccessKind::global_load
                          : AccessKind::global_store,
                  at, parts, address, bytes); // a generic address is traced as a global one
  }

  std::string copy(const PtxInstruction& at, const std::vector<std::string_view>& parts) {
    if (one_of(parts.size() > 2 ? parts.back() : "", {"commit_group"}) || at.has("commit_group") ||
        at.has("wait_group") || at.has("wait_all") || at.has("mbarrier"))
      return "barrier";
    const auto operands = at.operands();
    if (at.has("prefetch")) return "cache_control";
    if (!at.has("bulk")) { // cp.async.cg.shared.global [to], [from], bytes, …
      unsigned bytes = 0;
      if (operands.size() > 2) {
        auto digits = operands[2];
        const bool hex = digits.starts_with("0x");
        if (hex) digits.remove_prefix(2);
        std::from_chars(digits.data(), digits.data() + digits.size(), bytes, hex ? 16 : 10);
      }
      return access(AccessKind::async_copy, at, parts, operands.size() > 1 ? operands[1] : "",
                    bytes);
    }
    // The space written first is where it goes to; the descriptor or address of the global side
    // stands first in its brackets.
    std::string_view first;
    for (const auto part : parts)
      if (first.empty() && (part == "global" || part.starts_with("shared"))) first = part;
    const bool stores = first == "global";
    const std::size_t number = stores ? 0 : 1;
    std::string_view address = operands.size() > number ? operands[number] : std::string_view{};
    address = address.substr(0, address.find(',')); // coordinates are not addresses
    return access(parts.size() > 2 && at.has("reduce") ? AccessKind::atomic
                  : stores                             ? AccessKind::bulk_store
                                                       : AccessKind::bulk_load,
                  at, parts, address, 0);
  }

  const PtxText& text_;
  PtxText named_; ///< only its parameters, under the names asked for
  Origins origins_;
  PtxSummary& out_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loops_;
};

} // namespace

Result<PtxSummary> summarise_ptx(std::string_view text, std::span<const std::string> names) {
  const PtxText cut = cut_ptx(text);
  if (cut.entry.empty() || cut.instructions.empty())
    return refuse(RefusalCode::bad_ir, "the PTX has no entry with instructions",
                  "give the PTX that was compiled for the launch");
  PtxSummary out;
  out.target = cut.target;
  out.entry = cut.entry;
  out.parameters = cut.parameters;
  for (std::size_t i = 0; i < std::min(names.size(), out.parameters.size()); ++i)
    out.parameters[i].name = names[i];
  Summary summary(cut, out);
  for (const auto& instruction : cut.instructions) summary.add(instruction);
  summary.finish();
  return out;
}

Json to_json(const PtxSummary& summary) {
  Json json = to_json(summary.code);
  json["target"] = summary.target;
  json["entry"] = summary.entry;
  return json;
}

} // namespace hebe::qualify
