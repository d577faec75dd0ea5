#include "tune/backend.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

bool same_values(const std::optional<kernel::Initialiser>& a,
                 const std::optional<kernel::Initialiser>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->kind == b->kind && a->first == b->first && a->second == b->second && a->seed == b->seed;
}

std::vector<const kernel::Argument*> buffers_of(const kernel::LaunchSpec& launch) {
  std::vector<const kernel::Argument*> out;
  for (const auto& a : launch.arguments)
    if (a.is_buffer) out.push_back(&a);
  return out;
}

} // namespace

std::string text_of(const Candidate& c) { return c.name + " " + c.configuration.dump(); }

bool cannot_run(RefusalCode code) {
  switch (code) {
  case RefusalCode::case_failed:
  case RefusalCode::compile_failed:
  case RefusalCode::bad_argument: // by the case or the compiler: 3 warps
  case RefusalCode::bad_spec:     // by the device: a block's shared memory, another architecture
  case RefusalCode::abi_mismatch:
  case RefusalCode::unsupported:
  case RefusalCode::toolchain_unavailable:
  case RefusalCode::driver_unavailable:
  case RefusalCode::no_device:
    return true;
  default:
    return false;
  }
}

Status same_operation(const kernel::LaunchSpec& baseline, const kernel::LaunchSpec& candidate) {
  const auto required = buffers_of(baseline), found = buffers_of(candidate);
  const auto wrong = [&](const std::string& what) {
    return refuse(RefusalCode::bad_spec,
                  fmt::format("\"{}\" is not the baseline's operation: {}", candidate.name, what),
                  "candidates of a shape take the same buffers with the same values");
  };
  if (required.size() != found.size())
    return wrong(
        fmt::format("it takes {} buffers, the baseline {}", found.size(), required.size()));
  for (const auto* f : found) {
    const auto hit = std::ranges::find_if(required, [&](auto* r) { return r->name == f->name; });
    if (hit == required.end()) return wrong("the baseline has no buffer \"" + f->name + "\"");
    const auto& r = **hit;
    if (r.dtype != f->dtype || r.shape != f->shape || r.role != f->role)
      return wrong("\"" + f->name + "\" has another type, shape or role there");
    if (!same_values(r.init, f->init)) return wrong("\"" + f->name + "\" has other values there");
  }
  return {};
}

Result<DeviceCode> in_place_of(const campaign::PreparedCase& baseline,
                               kernel::CompiledCase compiled) {
  HEBE_CHECK(same_operation(baseline.compiled.launch, compiled.launch));
  compiled.launch.atol = baseline.compiled.launch.atol;
  compiled.launch.rtol = baseline.compiled.launch.rtol;
  auto out = std::make_shared<campaign::PreparedCase>();
  out->compiled = std::move(compiled);
  out->inputs = baseline.inputs;
  out->expected = baseline.expected;
  return DeviceCode(std::move(out));
}

} // namespace hebe::tune
