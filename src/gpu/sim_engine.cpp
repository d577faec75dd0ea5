#include "gpu/sim_engine.hpp"

#include "core/parallel.hpp"
#include "rewrite/contraction.hpp"
#include "ttgir/interpreter.hpp"
#include "ttgir/reader.hpp"
#include "ttgir/view.hpp"

#include <fmt/format.h>

#include <cstring>

namespace hebe::gpu {
namespace {

ttgir::Scalar scalar_of(kernel::DType type) {
  using kernel::DType;
  using ttgir::Scalar;
  switch (type) {
  case DType::i1:
    return Scalar::i1;
  case DType::i8:
  case DType::u8:
    return Scalar::i8;
  case DType::i16:
  case DType::u16:
    return Scalar::i16;
  case DType::i32:
  case DType::u32:
    return Scalar::i32;
  case DType::i64:
  case DType::u64:
    return Scalar::i64;
  case DType::fp16:
    return Scalar::f16;
  case DType::bf16:
    return Scalar::bf16;
  case DType::fp32:
    return Scalar::f32;
  case DType::fp64:
    return Scalar::f64;
  }
  return Scalar::none;
}

bool is_arithmetic(ttgir::WorkKind kind) {
  using K = ttgir::WorkKind;
  switch (kind) {
  case K::add:
  case K::multiply:
  case K::fma:
  case K::divide:
  case K::sqrt:
  case K::exponential:
  case K::logarithm:
  case K::trigonometric:
  case K::other_math:
  case K::minimum_maximum:
  case K::product:
    return true;
  default:
    return false;
  }
}

/// Bytes that cross the memory's pins are not modelled: what is read twice is paid twice.
Work priced(const ttgir::Counts& counts) {
  Work work;
  for (const auto& argument : counts.arguments)
    work.bytes += static_cast<double>(argument.loaded + argument.stored + 2 * argument.atomic);
  for (const auto& [what, count] : counts.operations) {
    const bool floating = !what.second.empty() && what.second.find('i') == std::string::npos;
    if (is_arithmetic(what.first) && floating)
      work.operations +=
          static_cast<double>(count) *
          (what.first == ttgir::WorkKind::product || what.first == ttgir::WorkKind::fma ? 2 : 1);
  }
  return work;
}

} // namespace

Result<std::unique_ptr<SimEngine>> SimEngine::make(const kernel::LaunchSpec& launch,
                                                   std::string ttgir, FpFusion fusion) {
  HEBE_TRY(auto module, ttgir::read_module(std::move(ttgir), {false, launch.name + ".ttgir"}));
  auto* function = module->function();
  const auto view = function ? ttgir::Function::of(*function) : std::nullopt;
  const std::size_t takes = view ? view->arguments().size() : 0;
  if (!view || takes != launch.arguments.size())
    return refuse(RefusalCode::abi_mismatch,
                  fmt::format("the TTGIR's function takes {} arguments, the launch has {}", takes,
                              launch.arguments.size()),
                  "the TTGIR must be the one that was compiled for this launch", launch.name);
  for (std::size_t i = 0; i < takes; ++i) {
    const auto& argument = launch.arguments[i];
    const auto* type = view->arguments()[i].type;
    const bool pointer = type && type->is(ttgir::Type::Kind::pointer);
    const bool scalar =
        type && type->is(ttgir::Type::Kind::scalar) && type->scalar == scalar_of(argument.dtype);
    if (argument.is_buffer ? !pointer : !scalar)
      return refuse(RefusalCode::abi_mismatch,
                    fmt::format("argument \"{}\" is {} in the launch, {} in the TTGIR",
                                argument.name,
                                argument.is_buffer ? "a buffer" : kernel::name_of(argument.dtype),
                                type ? type->text : "unknown"),
                    "the TTGIR must be the one that was compiled for this launch", launch.name);
  }
  if (auto missing = ttgir::not_interpretable(*module); !missing.empty())
    return std::unexpected(std::move(missing.front()));
  if (fusion == FpFusion::on) rewrite::pin_all_contractions(*module);
  return std::unique_ptr<SimEngine>(new SimEngine(launch, std::move(module)));
}

Status SimEngine::run(const std::vector<std::span<std::byte>>& buffers) {
  ttgir::Launch launch;
  launch.grid = launch_.grid;
  launch.threads = core_count();
  // The values as they lie in the launch buffer; a buffer's address is the interpreter's own.
  std::vector<std::uint64_t> no_addresses(buffers.size(), 0);
  HEBE_TRY(const auto packed, kernel::pack_parameters(launch_, no_addresses, 0, 0));
  std::size_t next = 0;
  for (std::size_t i = 0; i < launch_.arguments.size(); ++i) {
    const auto& argument = launch_.arguments[i];
    if (argument.is_buffer) {
      launch.arguments.emplace_back(
          ttgir::BufferArgument{buffers[next++], argument.role != kernel::Role::in, argument.name});
      continue;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, packed[i].value.data(), packed[i].size);
    launch.arguments.emplace_back(ttgir::ScalarArgument{scalar_of(argument.dtype), bits});
  }
  HEBE_TRY(auto outcome,
           ttgir::interpret(
               *module_, {}, launch,
               {.count = !counted_, .poison_undefined = true, .rereads = rereads_ && !counted_}));
  if (outcome.counts) {
    counted_ = priced(*outcome.counts);
    counts_ = std::move(outcome.counts);
  }
  return {};
}

} // namespace hebe::gpu
