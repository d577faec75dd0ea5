#include "rewrite/pass.hpp"

#include "ttgir/memory_effects.hpp"
#include "ttgir/printer.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/verify.hpp"
#include "ttgir/view.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::rewrite {

std::string_view name_of(Exactness exactness) {
  switch (exactness) {
  case Exactness::exact:
    return "exact";
  case Exactness::exact_in_ir:
    return "exact_in_ir";
  case Exactness::approximate:
    return "approximate";
  }
  return "approximate";
}

std::string describe(const ttgir::Operation& op) {
  return op.results.empty() ? std::string(op.name)
                            : fmt::format("{} %{}", op.name, op.results[0].name);
}

void Account::changed(const ttgir::Operation& op, std::string what) {
  changes.push_back({pass_, op.line, std::move(what)});
}

void Account::refuse(const ttgir::Operation& op, std::string why) {
  refused.push_back({pass_, op.line, describe(op), std::move(why)});
}

void Account::assume(Contract contract) {
  for (const auto& each : contracts)
    if (each.kind == contract.kind && each.argument == contract.argument) return;
  contracts.push_back(std::move(contract));
}

void Account::assume_scalar(const LaunchFacts& facts, const std::string& argument,
                            std::string why) {
  assume({Contract::Kind::scalar_equals, argument, facts.scalars.at(argument), std::move(why)});
}

void Account::assume_grid(std::string why) {
  assume({Contract::Kind::grid_equals, {}, 0, std::move(why)});
}

void Account::assume_disjoint(std::string why) {
  assume({Contract::Kind::disjoint_arguments, {}, 0, std::move(why)});
}

std::size_t Account::changes_of(std::string_view pass) const {
  return static_cast<std::size_t>(std::ranges::count(changes, pass, &Change::pass));
}

Json to_json(const Account& account) {
  Json out{{"exactness", name_of(account.exactness)},
           {"changes", Json::array()},
           {"refused", Json::array()},
           {"contracts", Json::array()}};
  for (const auto& each : account.changes)
    out["changes"].push_back({{"pass", each.pass}, {"line", each.line}, {"what", each.what}});
  for (const auto& each : account.refused)
    out["refused"].push_back(
        {{"pass", each.pass}, {"line", each.line}, {"op", each.op}, {"why", each.why}});
  for (const auto& each : account.contracts) {
    Json contract{{"why", each.why}};
    switch (each.kind) {
    case Contract::Kind::scalar_equals:
      contract["kind"] = "scalar_equals";
      contract["argument"] = each.argument;
      contract["value"] = json_integer(each.value);
      break;
    case Contract::Kind::grid_equals:
      contract["kind"] = "grid_equals";
      break;
    case Contract::Kind::disjoint_arguments:
      contract["kind"] = "disjoint_arguments";
      break;
    }
    out["contracts"].push_back(std::move(contract));
  }
  return out;
}

Json to_json(const std::vector<PassRequest>& requests) {
  Json out = Json::array();
  for (const auto& each : requests) {
    Json row = each.options;
    row["pass"] = each.name;
    out.push_back(std::move(row));
  }
  return out;
}

Result<std::vector<PassRequest>> requests_from(const Json& list, std::string_view where) {
  const auto wrong = [&](std::string what, std::string next = {}) {
    return refuse(RefusalCode::bad_spec, std::move(what), std::move(next), std::string(where));
  };
  if (!list.is_array()) return wrong("passes are a list");
  std::vector<PassRequest> out;
  for (const auto& item : list) {
    PassRequest request;
    if (item.is_string())
      request.name = item.get<std::string>();
    else if (item.is_object() && item.contains("pass") && item.at("pass").is_string())
      request.name = item.at("pass").get<std::string>();
    else
      return wrong(fmt::format("{} is no pass", item.dump()),
                   "write its name, or a table with pass = its name and its options");
    const auto row = std::ranges::find(passes(), request.name, &Pass::name);
    if (row == passes().end()) {
      std::string known;
      for (const auto& each : passes())
        known += (known.empty() ? "" : ", ") + std::string(each.name);
      return wrong("there is no pass \"" + request.name + "\"", "passes: " + known);
    }
    if (item.is_object())
      for (const auto& [key, value] : item.items()) {
        if (key == "pass") continue;
        if (std::ranges::find(row->options, key, &PassOption::name) == row->options.end()) {
          std::string known;
          for (const auto& each : row->options)
            known += (known.empty() ? "" : ", ") + std::string(each.name);
          return wrong(fmt::format("pass \"{}\" has no option \"{}\"", request.name, key),
                       known.empty() ? "it has none" : "its options: " + known);
        }
        request.options[key] = value;
      }
    out.push_back(std::move(request));
  }
  return out;
}

namespace {

// What no rewrite may touch: an operation that could do anything, or something that a user sees.
Status rewritable(ttgir::Operation& function, std::string_view where) {
  Status status;
  ttgir::walk(function, [&](ttgir::Operation& op) {
    if (!status) return;
    const auto at = [&] { return fmt::format("{}:{}", where, op.line); };
    if (op.is(ttgir::Op::unknown) || op.form == ttgir::Operation::Form::opaque)
      status = refuse(RefusalCode::unsupported, describe(op) + " is not understood",
                      "rewrite a kernel of operations that Hebe knows (hebe ttgir verify)", at());
    else if (op.is(ttgir::Op::tt_print) || op.is(ttgir::Op::tt_assert))
      status = refuse(RefusalCode::unsupported,
                      std::string(op.name) + " is seen outside of memory: a rewrite may change "
                                             "when it happens, and timing it times the host",
                      "compile the kernel without device_print and device_assert", at());
  });
  return status;
}

} // namespace

Status name_arguments(ttgir::Module& module, ttgir::Operation& function,
                      const std::vector<std::string>& names) {
  const auto arguments = ttgir::Function{function}.arguments();
  if (arguments.size() != names.size())
    return refuse(RefusalCode::abi_mismatch,
                  fmt::format("the TTGIR's function takes {} arguments, the launch has {}",
                              arguments.size(), names.size()),
                  "the TTGIR must be the one that was compiled for this launch");
  for (std::size_t i = 0; i < names.size(); ++i)
    if (arguments[i].name != names[i]) arguments[i].name = module.keep(names[i]);
  return {};
}

Result<Rewritten> apply(std::string ttgir, const std::vector<PassRequest>& requests,
                        const LaunchFacts& facts, std::string_view where) {
  HEBE_TRY(const auto module, ttgir::read_module(std::move(ttgir), {false, std::string(where)}));
  auto* function = module->function();
  if (!function || !ttgir::Function::of(*function))
    return refuse(RefusalCode::bad_ir, "the module has no function", {}, std::string(where));
  HEBE_CHECK(rewritable(*function, where));
  if (!facts.arguments.empty()) HEBE_CHECK(name_arguments(*module, *function, facts.arguments));
  Rewritten out;
  Work work{*module, *function, facts, out.account};
  for (const auto& request : requests) {
    const auto row = std::ranges::find(passes(), request.name, &Pass::name);
    if (row == passes().end())
      return refuse(RefusalCode::bad_spec, "there is no pass \"" + request.name + "\"");
    out.account.begin(request.name);
    const auto before = out.account.changes.size();
    HEBE_CHECK(row->run(work, request.options));
    out.account.done.push_back(out.account.changes.size() - before);
    // A pass that breaks the IR is found here, by name, not in what Triton says of the whole.
    if (const auto findings = ttgir::verify(*module); !findings.empty())
      return refuse(RefusalCode::internal,
                    fmt::format("after the pass {}: {}: {}", request.name, findings.front().op,
                                findings.front().what),
                    "please report the TTGIR and the passes",
                    fmt::format("{}:{}", where, findings.front().line));
  }
  out.ttgir = module->edited() ? ttgir::print(*module) : std::string(module->source());
  return out;
}

} // namespace hebe::rewrite
