#include "ttgir/interpreter.hpp"

#include "core/parallel.hpp"
#include "ttgir/run_counts.hpp"
#include "ttgir/run_plan.hpp"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {

Result<const Operation*> find_function(const Module& module, std::string_view name) {
  const Operation* function = module.function(name);
  if (!function)
    return refuse(RefusalCode::not_found,
                  name.empty() ? std::string("the module has no public function")
                               : fmt::format("the module has no function '{}'", name));
  if (function->regions.empty() || function->regions[0]->blocks.empty())
    return refuse(RefusalCode::unsupported,
                  fmt::format("'{}' has no body", function->text_of("sym_name")));
  return function;
}

const BufferArgument* buffer_in(const LaunchArgument& argument) {
  if (const auto* buffer = std::get_if<BufferArgument>(&argument)) return buffer;
  if (const auto* descriptor = std::get_if<DescriptorArgument>(&argument))
    return &descriptor->buffer;
  return nullptr;
}

Result<GlobalMemory> memory_of(const Launch& launch, std::span<const Value> parameters) {
  std::vector<GlobalMemory::Buffer> buffers;
  const auto add = [&](const BufferArgument* buffer, std::string name) -> Status {
    if (!buffer) {
      buffers.emplace_back();
      return {};
    }
    if (!buffer->name.empty()) name = buffer->name;
    if (reinterpret_cast<std::uintptr_t>(buffer->bytes.data()) % 8 != 0)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("the bytes of '{}' are not aligned to 8", name));
    if (buffer->bytes.size() >= kBufferOrigin)
      return refuse(
          RefusalCode::bad_argument,
          fmt::format("'{}' has {} bytes; a buffer may have 512 GiB", name, buffer->bytes.size()));
    static std::byte nothing[8]; // an empty buffer is one too
    buffers.push_back({buffer->bytes.empty() ? nothing : buffer->bytes.data(), buffer->bytes.size(),
                       buffer->writable, std::move(name)});
    return {};
  };
  for (std::size_t i = 0; i < launch.arguments.size(); ++i)
    HEBE_CHECK(add(buffer_in(launch.arguments[i]), std::string(parameters[i].name)));
  for (std::size_t i = 0; i < launch.reachable.size(); ++i)
    HEBE_CHECK(add(&launch.reachable[i], fmt::format("reachable[{}]", i)));
  return GlobalMemory(std::move(buffers));
}

std::string_view kind_of(const LaunchArgument& argument) {
  constexpr std::string_view names[] = {"a buffer", "a scalar", "a descriptor"};
  return names[argument.index()];
}

/// What a parameter holds when a program begins. A descriptor's storage is `pool`'s.
Result<Lanes> value_of(const LaunchArgument& argument, std::size_t number, const Value& parameter,
                       Pool& pool) {
  const auto wrong = [&](std::string_view needs) {
    return refuse(RefusalCode::bad_argument,
                  fmt::format("argument {} ('{}', {}) needs {}, not {}", number, parameter.name,
                              parameter.type ? parameter.type->text : "?", needs,
                              kind_of(argument)));
  };
  const Type& type = *parameter.type;
  if (type.is(Type::Kind::pointer)) {
    // A null or any other address may be given as a number.
    if (const auto* scalar = std::get_if<ScalarArgument>(&argument);
        scalar && scalar->type == Scalar::i64)
      return Lanes::of(scalar->bits);
    if (!std::holds_alternative<BufferArgument>(argument)) return wrong("a buffer");
    return Lanes::of(address_of_buffer(number));
  }
  if (type.is(Type::Kind::tensordesc)) {
    const auto* given = std::get_if<DescriptorArgument>(&argument);
    if (!given) return wrong("a descriptor");
    const std::size_t rank = given->shape.size();
    if (rank == 0 || rank > Descriptor::kMaxRank || given->strides.size() != rank)
      return refuse(RefusalCode::bad_argument,
                    fmt::format("the descriptor of argument {} has {} sizes and {} strides", number,
                                rank, given->strides.size()));
    Descriptor descriptor;
    descriptor.base = address_of_buffer(number);
    descriptor.rank = static_cast<std::uint32_t>(rank);
    descriptor.nan_padding = given->nan_padding;
    std::ranges::copy(given->shape, descriptor.shape.begin());
    std::ranges::copy(given->strides, descriptor.strides.begin());
    Lanes lanes = Lanes::dense(pool, sizeof descriptor);
    std::memcpy(lanes.bytes(), &descriptor, sizeof descriptor);
    return lanes;
  }
  const auto* scalar = std::get_if<ScalarArgument>(&argument);
  if (!scalar) return wrong("a scalar");
  if (!type.is(Type::Kind::scalar) || !lane_of(type.scalar))
    return wrong("something that a launch cannot give");
  if (scalar->type != type.scalar)
    return refuse(RefusalCode::bad_argument,
                  fmt::format("argument {} ('{}') is {}, and a scalar of type {} is given", number,
                              parameter.name, type.text, spelling(scalar->type)));
  Lanes lanes;
  std::byte memory[8];
  std::memcpy(memory, &scalar->bits, sizeof memory);
  decoder(type.scalar)(memory, lanes.bytes(), 1);
  return lanes;
}

Result<std::vector<Lanes>> values_of(const Launch& launch, std::span<const Value> parameters,
                                     Pool& pool) {
  std::vector<Lanes> values;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    HEBE_TRY(Lanes lanes, value_of(launch.arguments[i], i, parameters[i], pool));
    values.push_back(std::move(lanes));
  }
  return values;
}

/// A thread's programs, one after the other.
struct Worker {
  Worker(const Plan& plan, const GlobalMemory& memory, const Launch& launch,
         const InterpretOptions& options, TouchedBytes* touched)
      : program(plan, memory, launch, options, nullptr) {
    if (!touched) return;
    traffic.emplace(*touched, plan.instructions.size(), memory.buffers().size(), options.rereads);
    program.traffic = &*traffic;
    sums.emplace(plan);
  }
  Program program;
  std::optional<Traffic> traffic;
  std::optional<ProgramSums> sums;
  std::vector<Lanes> arguments; // last: its lanes lie in the program's pool
};

} // namespace

Result<Outcome> interpret(const Module& module, std::string_view function_name,
                          const Launch& launch, const InterpretOptions& options) {
  HEBE_TRY(const Operation* function, find_function(module, function_name));
  const std::span<const Value> parameters = function->regions[0]->front().arguments;
  if (parameters.size() != launch.arguments.size())
    return refuse(RefusalCode::bad_argument,
                  fmt::format("'{}' has {} arguments, and {} are given",
                              function->text_of("sym_name"), parameters.size(),
                              launch.arguments.size()));
  Compiler compiler(module);
  const std::unique_ptr<Plan> plan = compiler.compile(*function);
  if (!plan) {
    Refusal first = compiler.refusals.front();
    if (compiler.refusals.size() > 1)
      first.what += fmt::format(" (and {} more operations)", compiler.refusals.size() - 1);
    return std::unexpected(std::move(first));
  }
  HEBE_TRY(const GlobalMemory memory, memory_of(launch, parameters));
  std::optional<TouchedBytes> touched;
  if (options.count) touched.emplace(memory);

  const auto [x, y, z] = launch.grid;
  const std::uint64_t programs = std::uint64_t{x} * y * z;
  std::mutex guard;
  std::vector<std::unique_ptr<Worker>> all;
  std::vector<Worker*> free;
  // A thread takes a worker for one program at a time; as many exist as threads ever ran at once.
  const auto take = [&]() -> Result<Worker*> {
    const std::lock_guard lock(guard);
    if (!free.empty()) {
      Worker* worker = free.back();
      free.pop_back();
      return worker;
    }
    auto made =
        std::make_unique<Worker>(*plan, memory, launch, options, touched ? &*touched : nullptr);
    HEBE_TRY(made->arguments, values_of(launch, parameters, made->program.pool));
    all.push_back(std::move(made));
    return all.back().get();
  };
  if (programs == 0) { // wrong arguments are wrong all the same
    HEBE_TRY(Worker * worker, take());
    free.push_back(worker);
  }
  HEBE_CHECK(for_each_index(programs, launch.threads, [&](std::size_t number) -> Status {
    HEBE_TRY(Worker * worker, take());
    const Status status = worker->program.run_number(number, worker->arguments);
    if (worker->sums) worker->sums->add(worker->program);
    std::ranges::fill(worker->program.executions, 0);
    const std::lock_guard lock(guard);
    free.push_back(worker);
    return status;
  }));

  Outcome outcome;
  outcome.programs = programs;
  std::vector<std::pair<std::uint64_t, std::string>> printed;
  for (const auto& worker : all) {
    outcome.lane_bytes += worker->program.pool.held();
    std::ranges::move(worker->program.printed, std::back_inserter(printed));
  }
  std::ranges::stable_sort(printed, {}, &std::pair<std::uint64_t, std::string>::first);
  for (const auto& [number, text] : printed) outcome.printed += text;
  if (options.count) {
    std::vector<const ProgramSums*> sums;
    std::vector<const Traffic*> traffic;
    for (const auto& worker : all)
      sums.push_back(&*worker->sums), traffic.push_back(&*worker->traffic);
    outcome.counts = joined(*plan, memory, *touched, sums, traffic);
    outcome.counts->programs = programs;
  }
  return outcome;
}

std::vector<Refusal> not_interpretable(const Module& module, std::string_view name) {
  const auto function = find_function(module, name);
  if (!function) return {function.error()};
  Compiler compiler(module);
  static_cast<void>(compiler.compile(**function));
  return std::move(compiler.refusals);
}

} // namespace hebe::ttgir
