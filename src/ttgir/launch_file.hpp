// A launch of a kernel as a file. In: launch.json and the buffers that it names; out: arguments for
// interpret(), and what the kernel wrote, beside each buffer. Invariant: a buffer's file is never
// changed; its ".out" is written only after the whole launch succeeded.
//
//   {"grid": [x, y, z], "function": "name",          (optional: the first public function)
//    "args": [{"buffer": "x.bin", "out": true, "name": "X"},    paths from the file's folder
//             {"scalar": "i32", "value": 5},          i1 … i64, u8 … u64, f16 or fp16, bf16, f32,
//             f64
//             {"descriptor": "q.bin", "shape": [64, 32], "strides": [32, 1], "padding": "nan"}],
//    "reachable": [{"buffer": …}]}
// A descriptor's sizes and strides, which the function has as arguments behind it, may be left out.
#pragma once

#include "core/result.hpp"
#include "ttgir/interpreter.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace hebe::ttgir {

class LaunchFile {
public:
  [[nodiscard]] static Result<LaunchFile> read(const std::filesystem::path& path);

  [[nodiscard]] const std::string& function() const { return function_; }
  /// The launch of that module's function; its spans point into this object.
  [[nodiscard]] Result<Launch> launch(const Module& module);
  /// Every buffer with "out" to its name with ".out"; returns the paths.
  [[nodiscard]] Result<std::vector<std::filesystem::path>> write_outputs() const;

private:
  struct Buffer {
    std::filesystem::path path;
    std::string name;
    std::vector<std::byte> bytes;
    bool out = false;
  };
  struct Argument {
    enum class Kind : std::uint8_t { buffer, scalar, descriptor } kind = Kind::buffer;
    std::size_t buffer = 0; ///< number in buffers_
    ScalarArgument scalar{};
    std::vector<std::int64_t> shape, strides;
    bool nan_padding = false;
  };
  [[nodiscard]] Result<std::size_t> add_buffer(const std::filesystem::path& folder,
                                               const std::string& file, const Json& entry,
                                               const std::string& where);
  [[nodiscard]] BufferArgument argument_of(Buffer& buffer) const;

  std::string function_;
  std::array<std::uint32_t, 3> grid_{1, 1, 1};
  std::vector<Buffer> buffers_;
  std::vector<Argument> arguments_;
  std::vector<std::size_t> reachable_;
};

} // namespace hebe::ttgir
