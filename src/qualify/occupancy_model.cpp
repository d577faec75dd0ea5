#include "qualify/occupancy_model.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hebe::qualify {
namespace {

struct Multiprocessor {
  int arch;
  std::uint32_t warps, blocks, registers, shared_kib, block_shared_kib;
};
constexpr Multiprocessor kMultiprocessors[] = {
#define HEBE_SM(arch, warps, blocks, registers, shared, block_shared)                              \
  {arch, warps, blocks, registers, shared, block_shared},
#include "qualify/sm_limits.def"
#undef HEBE_SM
};
constexpr std::uint32_t kRegisterUnit = 256, kParts = 4, kReservedShared = 1024, kSharedUnit = 128;
constexpr std::uint32_t kMostRegisters = 255, kMostWarpsOfBlock = 32;

std::uint32_t rounded_up(std::uint32_t value, std::uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

} // namespace

Result<ComputedOccupancy> computed_occupancy(const BlockResources& block) {
  const auto sm = std::ranges::find(kMultiprocessors, block.arch, &Multiprocessor::arch);
  if (sm == std::end(kMultiprocessors))
    return refuse(RefusalCode::unsupported,
                  fmt::format("the limits of sm_{} are not known", block.arch),
                  "add its row to src/qualify/sm_limits.def");
  if (block.warps == 0) return refuse(RefusalCode::bad_argument, "a block has at least one warp");
  ComputedOccupancy out;
  out.most_warps = sm->warps;
  out.by_blocks = sm->blocks;
  out.by_warps = block.warps > kMostWarpsOfBlock ? 0 : sm->warps / block.warps;
  const std::uint32_t a_warp = rounded_up(std::max(block.registers, 1U) * 32, kRegisterUnit);
  // A warp's registers lie in one part of the file.
  out.by_registers =
      block.registers > kMostRegisters ? 0 : sm->registers / kParts / a_warp * kParts / block.warps;
  const std::uint64_t capacity = std::uint64_t{sm->shared_kib} * 1024;
  const std::uint64_t most = std::uint64_t{sm->block_shared_kib} * 1024;
  const std::uint64_t a_block =
      (block.shared_bytes + kReservedShared + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
  out.by_shared = block.shared_bytes > most ? 0 : static_cast<std::uint32_t>(capacity / a_block);
  out.blocks = std::min({out.by_blocks, out.by_warps, out.by_registers, out.by_shared});
  out.warps = out.blocks * block.warps;
  for (const auto& [blocks, name] : {std::pair{out.by_registers, "registers"},
                                     {out.by_shared, "shared memory"},
                                     {out.by_warps, "warps"},
                                     {out.by_blocks, "blocks"}})
    if (blocks == out.blocks) out.limits.emplace_back(name);
  return out;
}

Json to_json(const ComputedOccupancy& occupancy) {
  return {{"provenance", "computed"},
          {"blocks_a_multiprocessor", occupancy.blocks},
          {"warps", occupancy.warps},
          {"most_warps", occupancy.most_warps},
          {"share", occupancy.share()},
          {"limits", occupancy.limits},
          {"blocks_by",
           {{"registers", occupancy.by_registers},
            {"shared_memory", occupancy.by_shared},
            {"warps", occupancy.by_warps},
            {"blocks", occupancy.by_blocks}}}};
}

} // namespace hebe::qualify
