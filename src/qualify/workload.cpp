#include "qualify/workload.hpp"

#include "core/files.hpp"
#include "core/sha256.hpp"
#include "kernel/inputs.hpp"
#include "kernel/output_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

// For each buffer argument of `b`, in its order, which one of `a` it is.
Result<std::vector<std::size_t>> same_buffers(const kernel::LaunchSpec& a,
                                              const kernel::LaunchSpec& b) {
  std::vector<const kernel::Argument*> first;
  for (const auto& x : a.arguments)
    if (x.is_buffer) first.push_back(&x);
  std::vector<std::size_t> places;
  for (const auto& y : b.arguments) {
    if (!y.is_buffer) continue;
    const auto hit =
        std::find_if(first.begin(), first.end(), [&](auto* x) { return x->name == y.name; });
    if (hit == first.end() || (*hit)->dtype != y.dtype || (*hit)->shape != y.shape ||
        (*hit)->role != y.role)
      return refuse(RefusalCode::bad_spec,
                    "the two arms do not take the same buffers: \"" + y.name + "\" of arm B " +
                        (hit == first.end() ? "is none of arm A's"
                                            : "has another type, shape or role in arm A"),
                    "a contrast needs arms that read the same inputs and write the same outputs");
    places.push_back(static_cast<std::size_t>(hit - first.begin()));
  }
  if (places.size() != first.size())
    return refuse(RefusalCode::bad_spec,
                  fmt::format("the two arms do not take the same buffers: arm A has {}, arm B {}",
                              first.size(), places.size()),
                  "a contrast needs arms that read the same inputs and write the same outputs");
  return places;
}

} // namespace

gpu::FunctionalModel Workload::functional_model(gpu::Device& device,
                                                const kernel::LaunchSpec& launch,
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

Result<Workload> Workload::make(gpu::Device& device,
                                std::array<const kernel::CompiledCase*, 2> arms,
                                std::array<const ExpectedOutputs*, 2> expected) {
  HEBE_TRY(const auto places, same_buffers(arms[0]->launch, arms[1]->launch));
  Workload w(device, arms, expected);
  std::vector<gpu::DevicePointer> pointers;
  for (const auto& a : w.launch().arguments) {
    if (!a.is_buffer) continue;
    HEBE_TRY(auto buffer, gpu::GuardedBuffer::make(device, a.name, a.bytes()));
    pointers.push_back(buffer.address());
    w.buffers_.push_back(std::move(buffer));
  }
  HEBE_CHECK(w.fill_inputs(false));
  std::vector<gpu::DevicePointer> in_b_order;
  for (const auto place : places) in_b_order.push_back(pointers[place]);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& own = i == 0 ? pointers : in_b_order;
    const gpu::KernelImage image{&arms[i]->launch, arms[i]->cubin, arms[i]->ttgir,
                                 functional_model(device, arms[i]->launch, *expected[i], own)};
    HEBE_TRY(w.kernels_[i], device.load(image, own));
  }
  return w;
}

Status Workload::fill_inputs(bool only_inout) {
  std::size_t next = 0;
  for (const auto& a : launch().arguments) {
    if (!a.is_buffer) continue;
    const auto& buffer = buffers_[next++];
    if (a.role == kernel::Role::out || (only_inout && a.role == kernel::Role::in)) continue;
    HEBE_CHECK(kernel::for_each_chunk(a, [&](std::size_t at, std::span<const std::byte> bytes) {
      return device_->write(buffer.address() + at, bytes);
    }));
  }
  return {};
}

Status Workload::poison(std::byte value) {
  std::size_t next = 0;
  for (const auto& a : launch().arguments) {
    if (!a.is_buffer) continue;
    const auto& buffer = buffers_[next++];
    if (a.role == kernel::Role::out)
      HEBE_CHECK(device_->fill(buffer.address(), value, buffer.size()));
  }
  return fill_inputs(true);
}

Status Workload::inputs_intact() const {
  std::size_t next = 0;
  for (const auto& a : launch().arguments) {
    if (!a.is_buffer) continue;
    const auto& buffer = buffers_[next++];
    HEBE_CHECK(buffer.intact());
    if (a.role != kernel::Role::in) continue;
    std::vector<std::byte> found;
    HEBE_CHECK(
        kernel::for_each_chunk(a, [&](std::size_t at, std::span<const std::byte> bytes) -> Status {
          found.resize(bytes.size());
          HEBE_CHECK(device_->read(found, buffer.address() + at));
          if (std::memcmp(found.data(), bytes.data(), bytes.size()) == 0) return {};
          return refuse(RefusalCode::wrong_output,
                        "the kernel changed its input \"" + a.name + "\"",
                        "declare the buffer inout, or correct the kernel");
        }));
  }
  return {};
}

Result<std::string> Workload::digest(const gpu::GuardedBuffer& buffer) const {
  Sha256 sha;
  std::vector<std::byte> bytes;
  HEBE_CHECK(in_chunks(buffer.size().count, 1, [&](std::size_t at, std::size_t count) -> Status {
    bytes.resize(count);
    HEBE_CHECK(device_->read(bytes, buffer.address() + at));
    sha.update(bytes);
    return {};
  }));
  return sha.hex();
}

Result<Json> Workload::check_outputs(int arm) {
  Json out = Json::object();
  std::size_t next = 0;
  for (const auto& a : launch().arguments) {
    if (!a.is_buffer) continue;
    const auto& buffer = buffers_[next++];
    if (a.role == kernel::Role::in) continue;
    kernel::OutputCheck total;
    const auto& own = arms_[static_cast<std::size_t>(arm)]->launch;
    const auto& made = expected_[static_cast<std::size_t>(arm)]->at(a.name);
    HEBE_TRY(auto file, FileReader::open(made.file));
    HEBE_CHECK(in_chunks(
        a.elements(), std::max(kernel::size_of(made.dtype), kernel::size_of(a.dtype)),
        [&](std::size_t at, std::size_t count) -> Status {
          std::vector<std::byte> found(count * kernel::size_of(a.dtype)),
              expected(count * kernel::size_of(made.dtype));
          HEBE_CHECK(device_->read(found, buffer.address() + at * kernel::size_of(a.dtype)));
          HEBE_CHECK(file.exactly(expected));
          total = joined(total, kernel::check_output(found, a.dtype, expected, made.dtype, own.atol,
                                                     own.rtol));
          return {};
        }));
    if (!total.passed())
      return refuse(RefusalCode::wrong_output,
                    fmt::format("arm {}: output \"{}\": {}", arm == 0 ? "A" : "B", a.name,
                                kernel::describe(total)),
                    "a wrong kernel is not measured: correct it, or its tolerance");
    out[a.name] = {{"elements", total.elements},
                   {"worst_absolute_error", total.worst_abs},
                   {"worst_relative_error", total.worst_rel}};
  }
  return out;
}

Result<std::vector<std::string>> Workload::output_digests() const {
  std::vector<std::string> out;
  std::size_t next = 0;
  for (const auto& a : launch().arguments) {
    if (!a.is_buffer) continue;
    const auto& buffer = buffers_[next++];
    if (a.role == kernel::Role::in) continue;
    HEBE_TRY(auto d, digest(buffer));
    out.push_back(std::move(d));
  }
  return out;
}

// A kernel that works in place is replayed on its own output: unless that is a fixed point, the
// windows would time other data than the recorded inputs, and data alone can halve a kernel's
// power.
Status Workload::repeats_in_place(int arm) {
  const bool in_place =
      std::any_of(launch().arguments.begin(), launch().arguments.end(),
                  [](auto& a) { return a.is_buffer && a.role == kernel::Role::inout; });
  if (!in_place) return {};
  HEBE_TRY(const auto before, output_digests());
  HEBE_CHECK(device_->launch_once(*kernels_[static_cast<std::size_t>(arm)]));
  HEBE_TRY(const auto after, output_digests());
  if (before == after) return {};
  return refuse(
      RefusalCode::bad_spec,
      "the kernel changes its own input: replayed, it would be timed on other data than recorded",
      "write to a separate output, or use data that the kernel leaves as it is");
}

Status Workload::still_right() {
  HEBE_CHECK(inputs_intact());
  HEBE_TRY(const auto found, output_digests());
  if (found == checked_outputs_[0] || found == checked_outputs_[1]) return {};
  return refuse(RefusalCode::wrong_output,
                "after the windows the outputs are not those of the check",
                "the kernel is not repeatable, or the board computed wrongly");
}

// Output name to whether both arms gave the same bits.
Result<Json> Workload::arms_agree(bool required) const {
  Json out = Json::object();
  std::size_t next = 0;
  for (const auto& a : launch().arguments) {
    if (!a.is_buffer || a.role == kernel::Role::in) continue;
    const bool same = checked_outputs_[0][next] == checked_outputs_[1][next];
    ++next;
    if (!same && required)
      return refuse(RefusalCode::wrong_output,
                    "the arms' outputs \"" + a.name + "\" differ in their bits",
                    "these arms must compute the same: correct the kernel");
    out[a.name] = same ? "equal bits" : "different bits";
  }
  return out;
}

Result<Json> Workload::check(bool equal_arms) {
  Json out = Json::object();
  for (int arm = 0; arm < 2; ++arm) {
    std::array<std::vector<std::string>, 2> digests;
    Json outputs;
    for (std::size_t round = 0; round < 2; ++round) {
      // 0xFF is NaN in every float type; the second pattern shows elements that were not written at
      // all.
      HEBE_CHECK(poison(round == 0 ? std::byte{0xFF} : std::byte{0x5A}));
      HEBE_CHECK(device_->launch_once(*kernels_[static_cast<std::size_t>(arm)]));
      if (round == 0) {
        HEBE_TRY(outputs, check_outputs(arm));
      }
      HEBE_TRY(digests[round], output_digests());
    }
    if (digests[0] != digests[1])
      return refuse(RefusalCode::wrong_output,
                    fmt::format("arm {}: two launches on the same inputs gave different outputs",
                                arm == 0 ? "A" : "B"),
                    "the kernel leaves elements unwritten or has a race; a kernel must be "
                    "repeatable to be timed");
    HEBE_CHECK(inputs_intact());
    std::size_t next = 0;
    for (const auto& a : launch().arguments)
      if (a.is_buffer && a.role != kernel::Role::in) outputs[a.name]["sha256"] = digests[0][next++];
    checked_outputs_[static_cast<std::size_t>(arm)] = digests[0];
    HEBE_CHECK(repeats_in_place(arm));
    out[arm == 0 ? "A" : "B"] = outputs;
  }
  if (arms_[0]->launch.json != arms_[1]->launch.json) {
    HEBE_TRY(out["B_against_A"], arms_agree(equal_arms));
  }
  out["launches_per_arm"] = 2;
  out["inputs"] = "intact";
  out["canaries"] = "intact";
  out["oracle"] = device_->info().simulated ? "none: the simulated GPU takes its outputs from the "
                                              "case's reference, so this checks the plumbing only"
                                            : "the case's reference (numpy)";
  return out;
}

Json Workload::occupancy() {
  Json out = Json::object();
  for (std::size_t i = 0; i < 2; ++i) {
    const auto o = device_->occupancy(*kernels_[i]);
    out[i == 0 ? "A" : "B"] = o ? Json{{"registers", o->registers},
                                       {"local_bytes", o->local_bytes},
                                       {"static_shared_bytes", o->static_shared_bytes},
                                       {"blocks_per_multiprocessor", o->blocks_per_multiprocessor}}
                                : Json{{"unavailable", o.error().what}};
  }
  return out;
}

Result<Json> input_digests(const kernel::LaunchSpec& launch) {
  Json out = Json::object();
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer || a.role == kernel::Role::out) continue;
    Sha256 sha;
    HEBE_CHECK(kernel::for_each_chunk(a, [&](std::size_t, std::span<const std::byte> bytes) {
      sha.update(bytes);
      return Status{};
    }));
    out[a.name] = sha.hex();
  }
  return out;
}

Result<InputFiles> write_inputs(const kernel::LaunchSpec& launch,
                                const std::filesystem::path& folder) {
  InputFiles out;
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer || a.role == kernel::Role::out) continue;
    const auto path = folder / ("input-" + a.name);
    const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return std::unexpected(io_refusal(errno, "create", path));
    Sha256 sha;
    HEBE_CHECK(
        kernel::for_each_chunk(a, [&](std::size_t, std::span<const std::byte> bytes) -> Status {
          sha.update(bytes);
          while (!bytes.empty()) {
            const auto put = ::write(fd.get(), bytes.data(), bytes.size());
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) return std::unexpected(io_refusal(errno, "write", path));
            bytes = bytes.subspan(static_cast<std::size_t>(put));
          }
          return {};
        }));
    out.paths[a.name] = path;
    out.digests[a.name] = sha.hex();
  }
  return out;
}

} // namespace hebe::qualify
