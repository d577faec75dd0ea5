#include "qualify/launch_buffers.hpp"

#include "core/files.hpp"
#include "core/sha256.hpp"
#include "kernel/inputs.hpp"
#include "kernel/output_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace hebe::qualify {
namespace {

constexpr std::size_t kChunk = 4U << 20;

// Reads a file a piece at a time: an oracle's output may be large.
class FileReader {
public:
  static Result<FileReader> open(const std::filesystem::path& path) {
    FileReader r;
    r.fd_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    r.path_ = path;
    if (!r.fd_) return std::unexpected(io_refusal(errno, "open", path));
    return r;
  }
  Status exactly(std::span<std::byte> out) {
    while (!out.empty()) {
      const auto got = ::read(fd_.get(), out.data(), out.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return std::unexpected(io_refusal(errno, "read", path_));
      if (got == 0)
        return refuse(RefusalCode::case_failed, "the oracle's output is too short", {},
                      path_.string());
      out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }

private:
  FileDescriptor fd_;
  std::filesystem::path path_;
};

// Calls use(offset in elements, count) over `elements` in pieces.
template <class Use> Status in_chunks(std::size_t elements, std::size_t element_size, Use use) {
  const std::size_t step = std::max<std::size_t>(kChunk / element_size, 1);
  for (std::size_t at = 0; at < elements; at += step)
    HEBE_CHECK(use(at, std::min(step, elements - at)));
  return {};
}

} // namespace

gpu::KernelImage image_of(const kernel::CompiledCase& compiled, gpu::FunctionalModel functional) {
  return {&compiled.launch,      compiled.cubin,        compiled.ttgir,
          std::move(functional), compiled.library_call, compiled.fp_fusion()};
}

gpu::FunctionalModel
LaunchBuffers::functional_model(gpu::Device& device, const kernel::LaunchSpec& launch,
                                const ExpectedOutputs& expected,
                                const std::vector<gpu::DevicePointer>& pointers) {
  return [&device, &launch, &expected, pointers]() -> Status {
    std::size_t next = 0;
    for (const auto& a : launch.arguments) {
      if (!a.is_buffer) continue;
      const auto to = pointers[next++];
      if (a.role == kernel::Role::in) continue;
      const auto& made = expected.at(a.name);
      HEBE_TRY(auto file, FileReader::open(made.file));
      const auto from_size = kernel::size_of(made.dtype), to_size = kernel::size_of(a.dtype);
      HEBE_CHECK(
          in_chunks(a.elements(), from_size, [&](std::size_t at, std::size_t count) -> Status {
            std::vector<std::byte> from(count * from_size);
            HEBE_CHECK(file.exactly(from));
            if (made.dtype == a.dtype) return device.write(to + at * to_size, from);
            std::vector<std::byte> rounded(count * to_size);
            for (std::size_t i = 0; i < count; ++i)
              kernel::store(kernel::element(from, made.dtype, i), a.dtype,
                            rounded.data() + i * to_size);
            return device.write(to + at * to_size, rounded);
          }));
    }
    return {};
  };
}

Result<LaunchBuffers> LaunchBuffers::make(gpu::Device& device, const kernel::LaunchSpec& launch) {
  LaunchBuffers out(device, launch);
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer) continue;
    HEBE_TRY(auto buffer, gpu::GuardedBuffer::make(device, a.name, a.bytes()));
    out.buffers_.push_back(std::move(buffer));
  }
  HEBE_CHECK(out.fill_inputs(false));
  return out;
}

std::vector<gpu::DevicePointer> LaunchBuffers::pointers() const {
  std::vector<gpu::DevicePointer> out;
  for (const auto& buffer : buffers_) out.push_back(buffer.address());
  return out;
}

Status LaunchBuffers::each(const Use& use) const {
  std::size_t next = 0;
  for (const auto& a : launch_->arguments)
    if (a.is_buffer) HEBE_CHECK(use(a, buffers_[next++]));
  return {};
}

Status LaunchBuffers::fill_inputs(bool only_inout) {
  return each([&](const kernel::Argument& a, const gpu::GuardedBuffer& buffer) -> Status {
    if (a.role == kernel::Role::out || (only_inout && a.role == kernel::Role::in)) return {};
    return kernel::for_each_chunk(a, [&](std::size_t at, std::span<const std::byte> bytes) {
      return device_->write(buffer.address() + at, bytes);
    });
  });
}

Status LaunchBuffers::poison(std::byte value) {
  HEBE_CHECK(each([&](const kernel::Argument& a, const gpu::GuardedBuffer& buffer) -> Status {
    if (a.role != kernel::Role::out) return {};
    return device_->fill(buffer.address(), value, buffer.size());
  }));
  return fill_inputs(true);
}

Status LaunchBuffers::canaries_intact() const {
  for (const auto& buffer : buffers_) HEBE_CHECK(buffer.intact());
  return {};
}

Status LaunchBuffers::inputs_intact() const {
  std::vector<std::byte> found;
  return each([&](const kernel::Argument& a, const gpu::GuardedBuffer& buffer) -> Status {
    if (a.role != kernel::Role::in) return {};
    return kernel::for_each_chunk(
        a, [&](std::size_t at, std::span<const std::byte> bytes) -> Status {
          found.resize(bytes.size());
          HEBE_CHECK(device_->read(found, buffer.address() + at));
          if (std::memcmp(found.data(), bytes.data(), bytes.size()) == 0) return {};
          return refuse(RefusalCode::wrong_output,
                        "the kernel changed its input \"" + a.name + "\"",
                        "declare the buffer inout, or correct the kernel");
        });
  });
}

std::vector<std::string> LaunchBuffers::output_names() const {
  std::vector<std::string> out;
  for (const auto& a : launch_->arguments)
    if (a.is_buffer && a.role != kernel::Role::in) out.push_back(a.name);
  return out;
}

Result<std::vector<std::string>> LaunchBuffers::output_digests() const {
  std::vector<std::string> out;
  HEBE_CHECK(each([&](const kernel::Argument& a, const gpu::GuardedBuffer& buffer) -> Status {
    if (a.role == kernel::Role::in) return {};
    Sha256 sha;
    std::vector<std::byte> bytes;
    HEBE_CHECK(in_chunks(buffer.size().count, 1, [&](std::size_t at, std::size_t count) -> Status {
      bytes.resize(count);
      HEBE_CHECK(device_->read(bytes, buffer.address() + at));
      sha.update(bytes);
      return {};
    }));
    out.push_back(sha.hex());
    return {};
  }));
  return out;
}

Result<std::vector<std::byte>> LaunchBuffers::output_bytes(const std::string& name) const {
  std::vector<std::byte> out;
  HEBE_CHECK(each([&](const kernel::Argument& a, const gpu::GuardedBuffer& buffer) -> Status {
    if (a.name != name) return {};
    out.resize(buffer.size().count);
    return device_->read(out, buffer.address());
  }));
  return out;
}

Result<Json> LaunchBuffers::check_outputs(const kernel::LaunchSpec& own,
                                          const ExpectedOutputs& expected,
                                          const std::string& arm) const {
  Json out = Json::object();
  HEBE_CHECK(each([&](const kernel::Argument& a, const gpu::GuardedBuffer& buffer) -> Status {
    if (a.role == kernel::Role::in) return {};
    kernel::OutputCheck total;
    const auto& made = expected.at(a.name);
    const auto size = kernel::size_of(a.dtype), expected_size = kernel::size_of(made.dtype);
    HEBE_TRY(auto file, FileReader::open(made.file));
    HEBE_CHECK(in_chunks(a.elements(), std::max(size, expected_size),
                         [&](std::size_t at, std::size_t count) -> Status {
                           std::vector<std::byte> found(count * size),
                               oracle(count * expected_size);
                           HEBE_CHECK(device_->read(found, buffer.address() + at * size));
                           HEBE_CHECK(file.exactly(oracle));
                           total =
                               joined(total, kernel::check_output(found, a.dtype, oracle,
                                                                  made.dtype, own.atol, own.rtol));
                           return {};
                         }));
    if (!total.passed())
      return refuse(RefusalCode::wrong_output,
                    fmt::format("{}: output \"{}\": {}", arm, a.name, kernel::describe(total)),
                    "a wrong kernel is not measured: correct it, or its tolerance");
    out[a.name] = {{"elements", total.elements},
                   {"worst_absolute_error", total.worst_abs},
                   {"worst_relative_error", total.worst_rel}};
    return {};
  }));
  return out;
}

} // namespace hebe::qualify
