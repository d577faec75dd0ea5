#include "qualify/static_checks.hpp"

#include "ttgir/reader.hpp"
#include "ttgir/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hebe::qualify {
namespace {

// Passes that tidy up: where they find nothing the candidate is what it was to be.
bool may_find_nothing(std::string_view pass) { return pass == "simplify" || pass == "remove-dead"; }

std::string list(const std::vector<std::string>& items) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

Check rewrite_applied(const Candidate& spec, const rewrite::Account& account) {
  Checks out("static");
  std::vector<std::string> idle;
  std::string reasons;
  for (std::size_t i = 0; i < spec.passes.size(); ++i) {
    const auto& pass = spec.passes[i];
    if ((i < account.done.size() && account.done[i] > 0) || may_find_nothing(pass.name)) continue;
    idle.push_back(pass.name);
    for (const auto& refused : account.refused)
      if (refused.pass == pass.name)
        reasons += fmt::format("; {} at line {}: {}", refused.op, refused.line, refused.why);
  }
  if (idle.empty())
    out.passed("rewrite_applied",
               fmt::format("{} changes by {} passes", account.changes.size(), spec.passes.size()));
  else
    out.failed("rewrite_applied",
               fmt::format("changed nothing: {}{}", list(idle),
                           reasons.empty() ? ": there is no such place" : reasons));
  return out.rows.front();
}

std::string differences(const kernel::LaunchSpec& a, const kernel::LaunchSpec& b) {
  std::vector<std::string> out;
  const auto compare = [&](const char* what, const auto& x, const auto& y) {
    if (x != y) out.push_back(fmt::format("{}: {} and {}", what, Json(x).dump(), Json(y).dump()));
  };
  compare("entry", a.entry, b.entry);
  compare("grid", a.grid, b.grid);
  compare("warps", a.num_warps, b.num_warps);
  compare("blocks of a cluster", a.num_ctas, b.num_ctas);
  compare("scratch bytes", a.global_scratch.bytes, b.global_scratch.bytes);
  compare("cooperative", a.cooperative, b.cooperative);
  compare("programmatic dependent launch", a.pdl, b.pdl);
  compare("arguments", a.json.value("arguments", Json()), b.json.value("arguments", Json()));
  return list(out);
}

/// Where another kernel's buffers are not the baseline's, in name, type, shape, role or input.
std::string other_buffers(const kernel::LaunchSpec& a, const kernel::LaunchSpec& b) {
  const auto buffers = [](const kernel::LaunchSpec& launch) {
    std::map<std::string, std::string> out;
    for (const auto& argument : launch.json.value("arguments", Json::array()))
      if (argument.at("kind") == "buffer")
        out[argument.at("name").get<std::string>()] = argument.dump();
    return out;
  };
  const auto first = buffers(a), second = buffers(b);
  std::vector<std::string> out;
  for (const auto& [name, text] : first)
    if (const auto found = second.find(name); found == second.end())
      out.push_back(name + " is none of its buffers");
    else if (found->second != text)
      out.push_back(fmt::format("{}: {} and {}", name, text, found->second));
  for (const auto& [name, text] : second)
    if (!first.contains(name)) out.push_back(name + " is none of the baseline's");
  return list(out);
}

Check artifacts_distinct(const kernel::CompiledCase& baseline,
                         const kernel::CompiledCase& candidate,
                         const std::vector<std::string>& kinds) {
  Checks out("static");
  std::vector<std::string> same, absent;
  for (const auto& kind : kinds) {
    const auto a = baseline.artifacts.find(kind), b = candidate.artifacts.find(kind);
    if (a == baseline.artifacts.end() || b == candidate.artifacts.end())
      absent.push_back(kind);
    else if (a->second == b->second)
      same.push_back(kind);
  }
  if (!same.empty())
    out.failed("artifacts_distinct",
               "the same bytes as the baseline's: " + list(same) + "; nothing would be compared");
  else if (!absent.empty())
    out.not_run("artifacts_distinct", "not made here: " + list(absent));
  else
    out.passed("artifacts_distinct", "others than the baseline's: " + list(kinds));
  return out.rows.front();
}

} // namespace

rewrite::LaunchFacts facts_of(const kernel::LaunchSpec& launch) {
  rewrite::LaunchFacts facts;
  facts.grid = launch.grid;
  facts.disjoint = true;
  for (const auto& a : launch.arguments) facts.arguments.push_back(a.name);
  for (const auto& a : launch.arguments) {
    if (a.is_buffer || kernel::is_float(a.dtype)) continue;
    if (a.value.is_boolean())
      facts.scalars[a.name] = a.value.get<bool>() ? 1 : 0;
    else if (const auto value = integer_from(a.value, a.name))
      facts.scalars[a.name] = *value;
  }
  return facts;
}

Check no_side_effects(const kernel::CompiledCase& compiled) {
  Checks out("static");
  const auto module = ttgir::read_module(compiled.ttgir, {true, compiled.launch.name + ".ttgir"});
  if (!module) {
    out.failed("no_side_effects", to_text(module.error()));
    return out.rows.front();
  }
  std::string found;
  ttgir::walk((*module)->top(), [&](ttgir::Operation& op) {
    const bool seen = op.is(ttgir::Op::tt_print) || op.is(ttgir::Op::tt_assert);
    const bool opaque = op.is(ttgir::Op::unknown) || op.form == ttgir::Operation::Form::opaque;
    if (found.empty() && (seen || opaque))
      found = fmt::format("line {}: {} {}", op.line, op.name,
                          seen ? "is seen outside of memory" : "is not understood");
  });
  out.add("no_side_effects", found.empty(),
          found.empty() ? "no print, no assertion; every operation is understood" : found);
  return out.rows.front();
}

Check no_spills(const kernel::CompiledCase& compiled, std::uint64_t most) {
  Checks out("static");
  const auto& r = compiled.resources;
  if (!r.is_object() || r.contains("unavailable")) {
    out.not_run("no_spills", r.is_object() ? r.at("unavailable").get<std::string>()
                                           : "the cubin's resources are not known");
    return out.rows.front();
  }
  const auto number = [&](const char* name) {
    return r.contains(name) && r.at(name).is_number() ? r.at(name).get<std::uint64_t>() : 0;
  };
  const auto bytes = number("stack_bytes") + number("local_bytes");
  const auto accesses = number("local_loads") + number("local_stores");
  out.add("no_spills", bytes <= most && (accesses == 0 || most > 0),
          fmt::format("{} registers, {} bytes of local memory a thread, {} accesses to it in the "
                      "SASS; at most {} bytes are allowed",
                      number("registers"), bytes, accesses, most));
  return out.rows.front();
}

Check contracts_hold(const rewrite::Account& account, const kernel::LaunchSpec& original,
                     const kernel::LaunchSpec& launch) {
  Checks out("static");
  const auto facts = facts_of(launch);
  std::string kept, broken;
  for (const auto& c : account.contracts) {
    using Kind = rewrite::Contract::Kind;
    std::string what;
    bool holds = true;
    if (c.kind == Kind::scalar_equals) {
      const auto found = facts.scalars.find(c.argument);
      holds = found != facts.scalars.end() && found->second == c.value;
      what = fmt::format("{} = {}", c.argument, c.value);
    } else if (c.kind == Kind::grid_equals) {
      holds = launch.grid == original.grid;
      what = fmt::format("grid = {}, {}, {}", original.grid[0], original.grid[1], original.grid[2]);
    } else {
      what = "buffers of different arguments are apart (pointers_disjoint)";
    }
    auto& to = holds ? kept : broken;
    to += (to.empty() ? "" : "; ") + what;
  }
  out.add("contracts_hold", broken.empty(),
          !broken.empty() ? "the launch breaks: " + broken
          : kept.empty()  ? "it assumes nothing of its launches"
                          : kept);
  return out.rows.front();
}

std::vector<Check> static_checks(const kernel::CompiledCase& baseline,
                                 const kernel::CompiledCase& candidate, const Candidate& spec,
                                 const rewrite::Account* account) {
  Checks out("static");
  if (account) {
    out.rows.push_back(rewrite_applied(spec, *account));
    out.rows.push_back(contracts_hold(*account, baseline.launch, candidate.launch));
  }
  if (!spec.other_case) {
    const auto differ = differences(baseline.launch, candidate.launch);
    out.add("same_abi", differ.empty(),
            differ.empty() ? "entry, arguments, grid, warps and scratch are the baseline's"
                           : "it is launched otherwise than the baseline: " + differ);
  }
  if (spec.other_case) {
    const auto differ = other_buffers(baseline.launch, candidate.launch);
    out.add("same_buffers", differ.empty(),
            differ.empty() ? "its buffers and their inputs are the baseline's"
                           : "another kernel must take the same buffers: " + differ);
  }
  out.rows.push_back(artifacts_distinct(baseline, candidate, spec.distinct));
  out.rows.push_back(no_side_effects(candidate));
  out.rows.push_back(no_spills(candidate, spec.max_local_bytes));
  return out.rows;
}

} // namespace hebe::qualify
