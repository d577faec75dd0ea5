// Hints to the caches, by argument. In: eviction priorities and cache modifiers for the loads and
// stores of named arguments; out: these attributes, on accesses that can reach that argument only.
// Invariant: exact: a hint changes where a line lies, never what is read; none is set that Triton's
// lowering drops without a word, since a measurement would then compare a kernel with itself.
#include "rewrite/access_passes.hpp"

#include "ttgir/memory_effects.hpp"
#include "ttgir/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hebe::rewrite {
namespace {

using ttgir::Attribute;
using ttgir::Op;
using ttgir::Operation;

constexpr std::string_view kNoCache = "none", kNoEviction = "evict_normal";
constexpr std::array<std::string_view, 3> kEvictions = {"evict_normal", "evict_first",
                                                        "evict_last"};
// What the lowering of Triton 3.6 emits; it drops the others.
constexpr std::array<std::string_view, 3> kLoadCaches = {"none", "ca", "cg"};
constexpr std::array<std::string_view, 5> kStoreCaches = {"none", "wb", "cg", "cs", "wt"};

/// What is asked for one argument; empty: as it is.
struct Wanted {
  std::string argument;
  std::uint32_t number = 0; ///< of the function's arguments
  std::string evict, cache;
  bool found = false; ///< an access of it was looked at
};

std::string joined(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

Result<std::string> word(const Json& value, std::string_view key,
                         std::span<const std::string_view> words, std::string_view where) {
  if (value.is_string() && std::ranges::find(words, value.get<std::string>()) != words.end())
    return value.get<std::string>();
  return refuse(RefusalCode::bad_spec, fmt::format("{}: {} = {}", where, key, value.dump()),
                fmt::format("one of {} (Triton's lowering drops any other)", joined(words)));
}

/// Reads one of the options "loads", "stores".
Result<std::vector<Wanted>> wanted_from(const ttgir::Function& function, const Json& options,
                                        const char* option,
                                        std::span<const std::string_view> caches) {
  std::vector<Wanted> out;
  if (!options.contains(option)) return out;
  const Json& table = options.at(option);
  if (!table.is_object())
    return refuse(RefusalCode::bad_spec,
                  fmt::format("hint: {} is a table: argument = {{evict = …}}", option));
  for (const auto& [argument, hints] : table.items()) {
    const auto where = fmt::format("hint: {} of {}", option, argument);
    Wanted wanted{.argument = argument, .number = 0, .evict = {}, .cache = {}};
    std::string pointers;
    bool there = false;
    for (const ttgir::Value& each : function.arguments()) {
      const bool pointer = each.type && (each.type->is(ttgir::Type::Kind::pointer) ||
                                         each.type->is(ttgir::Type::Kind::tensordesc));
      if (!pointer) continue;
      pointers += (pointers.empty() ? "" : ", ") + std::string(each.name);
      if (each.name != argument) continue;
      there = true;
      wanted.number = each.index;
    }
    if (!there)
      return refuse(RefusalCode::bad_spec,
                    fmt::format("{}: no argument of that name is a pointer", where),
                    "pointers: " + pointers);
    if (!hints.is_object() || hints.empty())
      return refuse(RefusalCode::bad_spec, where + ": a table with evict or cache");
    for (const auto& [key, value] : hints.items()) {
      if (key == "evict") {
        HEBE_TRY(wanted.evict, word(value, key, kEvictions, where));
      } else if (key == "cache") {
        HEBE_TRY(wanted.cache, word(value, key, caches, where));
      } else {
        return refuse(RefusalCode::bad_spec, fmt::format("{}: there is no \"{}\"", where, key),
                      "evict, cache");
      }
    }
    if (!wanted.evict.empty() && wanted.evict != kNoEviction && !wanted.cache.empty() &&
        wanted.cache != kNoCache)
      return refuse(RefusalCode::bad_spec,
                    fmt::format("{}: an eviction priority and a cache modifier", where),
                    "PTX has them in different forms of an access: ask for one of them");
    out.push_back(std::move(wanted));
  }
  return out;
}

/// Which operand is the address, of an access that a hint could mean; whether it reads or writes.
struct Access {
  const ttgir::Value* address = nullptr;
  bool reads = false, writes = false;
};

std::optional<Access> access_of(const Operation& op) {
  if (op.operands.empty()) return std::nullopt;
  switch (op.code) {
  case Op::tt_load:
  case Op::tt_descriptor_load:
  case Op::tt_descriptor_gather:
  case Op::ttg_async_copy_global_to_local:
  case Op::ttng_async_tma_copy_global_to_local:
  case Op::ttng_async_tma_gather:
    return Access{op.operands[0], true, false};
  case Op::tt_store:
  case Op::tt_descriptor_store:
  case Op::tt_descriptor_scatter:
  case Op::ttng_async_tma_copy_local_to_global:
  case Op::ttng_async_tma_scatter:
    return Access{op.operands[0], false, true};
  case Op::tt_atomic_rmw:
  case Op::tt_atomic_cas:
  case Op::tt_descriptor_reduce:
  case Op::ttng_async_tma_reduce:
    return Access{op.operands[0], true, true};
  default:
    return std::nullopt;
  }
}

class Hints {
public:
  Hints(Work& work, std::vector<Wanted> loads, std::vector<Wanted> stores)
      : work_(work), loads_(std::move(loads)), stores_(std::move(stores)) {}

  void run() {
    ttgir::walk(work_.function, [&](Operation& op) {
      const auto access = access_of(op);
      if (!access) return;
      const auto origin = ttgir::origin_of(*access->address);
      if (access->reads) look(op, origin, loads_);
      if (access->writes) look(op, origin, stores_);
    });
    none_of(loads_, "load");
    none_of(stores_, "store");
  }

private:
  void look(Operation& op, const ttgir::PointerOrigin& origin, std::vector<Wanted>& wanted) {
    for (Wanted& each : wanted) {
      if (!origin.arguments.contains(each.number)) continue;
      each.found = true;
      if (origin.anything || origin.arguments.size() != 1)
        work_.account.refuse(op, fmt::format("it may reach other memory than %{}", each.argument));
      else if (const auto why = why_not(op, each); !why.empty())
        work_.account.refuse(op, why);
      else
        set(op, each);
    }
  }

  [[nodiscard]] static std::string why_not(Operation& op, const Wanted& wanted) {
    if (op.is(Op::ttg_async_copy_global_to_local))
      return "it is pipelined: the lowering to cp.async ignores the hint";
    if (op.is(Op::tt_atomic_rmw) || op.is(Op::tt_atomic_cas)) return "an atomic takes no hint";
    if (!op.is(Op::tt_load) && !op.is(Op::tt_store)) return "a bulk copy takes no hint";
    if (op.form != Operation::Form::table) return "it is written in the generic form";
    for (const char* name : {"evict", "cache"}) // set_attribute goes by name only
      if (op.find(name) && !op.syntax(name)) return "it has an attribute of its own by that name";
    const auto load = ttgir::Load::of(op);
    if (load && load->is_volatile()) return "it is volatile";
    const auto store = ttgir::Store::of(op);
    if (!load && !store) return "its form is not understood";
    const auto evict = load ? load->eviction() : store->eviction();
    const auto cache = load ? load->cache() : store->cache();
    const auto then_evict = wanted.evict.empty() ? evict : std::string_view(wanted.evict);
    const auto then_cache = wanted.cache.empty() ? cache : std::string_view(wanted.cache);
    if (then_evict != kNoEviction && then_cache != kNoCache)
      return fmt::format("it would have both {} and {}, which PTX has no form for", then_evict,
                         then_cache);
    if (then_evict == evict && then_cache == cache) return "it has that hint already";
    return {};
  }

  void set(Operation& op, const Wanted& wanted) {
    const auto one = [&](std::string_view name, std::string_view value, std::string_view normal) {
      if (value.empty()) return;
      if (value == normal)
        work_.module.remove_attribute(op, name);
      else
        work_.module.set_attribute(op, {name, value, Attribute::Place::syntax});
    };
    one("evict", wanted.evict, kNoEviction);
    one("cache", wanted.cache, kNoCache);
    work_.account.changed(op, fmt::format("{} of %{}: {}{}{}", describe(op), wanted.argument,
                                          wanted.evict,
                                          wanted.evict.empty() || wanted.cache.empty() ? "" : ", ",
                                          wanted.cache.empty() ? "" : "cache " + wanted.cache));
  }

  void none_of(const std::vector<Wanted>& wanted, std::string_view what) {
    for (const Wanted& each : wanted)
      if (!each.found)
        work_.account.refuse(work_.function, fmt::format("no {} is of %{}", what, each.argument));
  }

  Work& work_;
  std::vector<Wanted> loads_, stores_;
};

Status run(Work& work, const Json& options) {
  const auto function = ttgir::Function::of(work.function);
  HEBE_TRY(auto loads, wanted_from(*function, options, "loads", kLoadCaches));
  HEBE_TRY(auto stores, wanted_from(*function, options, "stores", kStoreCaches));
  if (loads.empty() && stores.empty())
    return refuse(RefusalCode::bad_spec, "hint: nothing is asked for",
                  "loads or stores = {argument = {evict = \"evict_last\"}}");
  Hints(work, std::move(loads), std::move(stores)).run();
  return {};
}

} // namespace

Pass hint() {
  return {"hint",
          "eviction priorities and cache modifiers, by argument",
          {{"loads", "{argument = {evict = evict_first | evict_last | evict_normal}}, or cache = "
                     "ca | cg | none"},
           {"stores", "the same of stores; cache = wb | cg | cs | wt | none"}},
          run};
}

} // namespace hebe::rewrite
