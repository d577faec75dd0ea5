// Makes every operation of a module anew, under one name for all, and prints it: what Triton makes
// of that must be what it made of the original. In: a file; out: the edited module on stdout.
#include "core/files.hpp"
#include "ttgir/printer.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/verify.hpp"

#include <cstdio>

using namespace hebe;
using namespace hebe::ttgir;

namespace {

void remake(Module& module, Block& block) {
  const std::vector<Operation*> before(block.operations.begin(), block.operations.end());
  for (Value& argument : block.arguments) argument.name = "x";
  for (Operation* op : before) {
    for (Region* region : op->regions)
      for (Block* inner : region->blocks) remake(module, *inner);
    for (Value& value : op->results) value.name = "x";
    const bool constant = op->is(Op::arith_constant);
    if (!op->regions.empty() || (op->form != Operation::Form::table && !constant)) {
      if (!op->regions.empty() || !op->successors.empty() || op->form == Operation::Form::opaque)
        continue;
    }
    std::vector<TypeRef> results;
    for (const Value& value : op->results) results.push_back(value.type);
    Operation& made = module.create({.code = op->code,
                                     .operands = {op->operands.begin(), op->operands.end()},
                                     .results = results,
                                     .attributes = {op->attributes.begin(), op->attributes.end()},
                                     .segments = {op->segments.begin(), op->segments.end()},
                                     .name = "x",
                                     .location = std::string(op->location)},
                                    block, op);
    for (std::size_t i = 0; i < results.size(); ++i)
      module.replace_all_uses(op->result(i), made.result(i));
    module.erase(*op);
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: hebe_remake FILE\n", stderr), 2;
  auto text = read_file(argv[1]);
  if (!text) return std::fputs(to_text(text.error()).c_str(), stderr), 2;
  const auto module = read_module(*std::move(text), {false, argv[1]});
  if (!module) return std::fputs(to_text(module.error()).c_str(), stderr), 2;
  for (Operation* function : (*module)->body().operations)
    for (Region* region : function->regions)
      for (Block* block : region->blocks) remake(**module, *block);
  const auto findings = verify(**module);
  for (const auto& finding : findings)
    std::fprintf(stderr, "%s in %s\n", finding.what.c_str(), finding.op.c_str());
  const auto out = print(**module);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return findings.empty() ? 0 : 1;
}
