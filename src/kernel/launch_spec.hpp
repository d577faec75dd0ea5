// What to launch, completely (schema hebe.launch/1). In: JSON from the worker or a file; out: a
// typed value. Invariant: `arguments` are the cubin's own parameters, in order, without Triton's
// two scratch pointers; nothing about a launch lives anywhere else.
#pragma once

#include "core/json.hpp"
#include "core/units.hpp"
#include "kernel/dtype.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hebe::kernel {

enum class Role { in, out, inout };

/// How a buffer's bytes are made before the first launch.
struct Initialiser {
  enum class Kind { zeros, uniform, normal, constant } kind = Kind::zeros;
  double first = 0;  ///< low, mean, or the constant (which may be an infinity or NaN)
  double second = 0; ///< high (exclusive), or standard deviation
  std::uint64_t seed = 0;
};

struct Argument {
  std::string name;
  DType dtype = DType::i32;
  bool is_buffer = false;
  std::vector<std::int64_t> shape; ///< buffers, elements
  Role role = Role::in;            ///< buffers
  std::optional<Initialiser> init; ///< buffers that are read
  Json value;                      ///< scalars
  [[nodiscard]] std::size_t elements() const;
  [[nodiscard]] Bytes bytes() const { return {elements() * size_of(dtype)}; }
};

struct Scratch {
  std::uint64_t bytes = 0; ///< per program
  std::uint64_t align = 1;
};

/// The work one launch does by its author's declaration (until it is counted from the TTGIR).
struct DeclaredWork {
  Bytes read, written;
  std::map<std::string, double> operations;
};

struct LaunchSpec {
  std::string name, entry;
  int arch = 0; ///< compute capability x 10, e.g. 90
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::uint32_t num_warps = 4, num_ctas = 1, shared_bytes = 0;
  bool cooperative = false, pdl = false;
  Scratch global_scratch, profile_scratch;
  std::vector<Argument> arguments;
  double atol = 0, rtol = 0;
  bool has_reference = false;
  std::optional<DeclaredWork> work;
  Json json; ///< the text it came from, kept for records

  [[nodiscard]] static Result<LaunchSpec> from_json(const Json& json, std::string_view where);
  [[nodiscard]] std::uint64_t programs() const;
};

/// An operation of a library (a GEMM of cuBLASLt) in a kernel's place, bound to memory and to the
/// context that is current: it enqueues itself on a stream (a CUstream). It may be captured into a
/// graph: it neither allocates nor waits.
using LibraryOperation = std::function<Status(void* stream)>;
/// Makes it, with the context current. `buffers`: addresses of the launch's buffer arguments, in
/// order; `scratch`: global_scratch.bytes of device memory (0: none was asked for). What the
/// operation holds (handles) goes with it, before the context does.
using LibraryCall = std::function<Result<LibraryOperation>(std::span<const std::uint64_t> buffers,
                                                           std::uint64_t scratch)>;

/// One kernel parameter as it lies in the launch buffer.
struct PackedParameter {
  std::string name;
  std::size_t size = 0;
  std::array<std::byte, 8> value{};
};

/// The cubin's parameters in launch order: user arguments, then Triton's global and profile scratch
/// (always present in 3.6). `pointers` has one device address per buffer argument, in order.
[[nodiscard]] Result<std::vector<PackedParameter>>
pack_parameters(const LaunchSpec& spec, const std::vector<std::uint64_t>& pointers,
                std::uint64_t global_scratch, std::uint64_t profile_scratch);

} // namespace hebe::kernel
