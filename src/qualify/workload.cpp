#include "qualify/workload.hpp"

#include "core/files.hpp"
#include "core/sha256.hpp"
#include "kernel/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace hebe::qualify {
namespace {

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

Result<Workload> Workload::make(gpu::Device& device,
                                std::array<const kernel::CompiledCase*, 2> arms,
                                std::array<const ExpectedOutputs*, 2> expected) {
  HEBE_TRY(const auto places, same_buffers(arms[0]->launch, arms[1]->launch));
  HEBE_TRY(auto buffers, LaunchBuffers::make(device, arms[0]->launch));
  Workload w(device, arms, expected, std::move(buffers));
  const auto pointers = w.buffers_.pointers();
  std::vector<gpu::DevicePointer> in_b_order;
  for (const auto place : places) in_b_order.push_back(pointers[place]);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& own = i == 0 ? pointers : in_b_order;
    const gpu::KernelImage image{
        &arms[i]->launch, arms[i]->cubin, arms[i]->ttgir,
        LaunchBuffers::functional_model(device, arms[i]->launch, *expected[i], own)};
    HEBE_TRY(w.kernels_[i], device.load(image, own));
  }
  return w;
}

// A kernel that works in place is replayed on its own output: unless that is a fixed point, the
// windows would time other data than the recorded inputs, and data alone can halve a kernel's
// power.
Status Workload::repeats_in_place(int arm) {
  const bool in_place =
      std::any_of(launch().arguments.begin(), launch().arguments.end(),
                  [](auto& a) { return a.is_buffer && a.role == kernel::Role::inout; });
  if (!in_place) return {};
  HEBE_TRY(const auto before, buffers_.output_digests());
  HEBE_CHECK(device_->launch_once(*kernels_[static_cast<std::size_t>(arm)]));
  HEBE_TRY(const auto after, buffers_.output_digests());
  if (before == after) return {};
  return refuse(
      RefusalCode::bad_spec,
      "the kernel changes its own input: replayed, it would be timed on other data than recorded",
      "write to a separate output, or use data that the kernel leaves as it is");
}

Status Workload::still_right() {
  HEBE_CHECK(buffers_.canaries_intact());
  HEBE_CHECK(buffers_.inputs_intact());
  HEBE_TRY(const auto found, buffers_.output_digests());
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
      HEBE_CHECK(buffers_.poison(round == 0 ? std::byte{0xFF} : std::byte{0x5A}));
      HEBE_CHECK(device_->launch_once(*kernels_[static_cast<std::size_t>(arm)]));
      if (round == 0) {
        const auto i = static_cast<std::size_t>(arm);
        HEBE_TRY(outputs, buffers_.check_outputs(arms_[i]->launch, *expected_[i],
                                                 arm == 0 ? "arm A" : "arm B"));
      }
      HEBE_TRY(digests[round], buffers_.output_digests());
    }
    if (digests[0] != digests[1])
      return refuse(RefusalCode::wrong_output,
                    fmt::format("arm {}: two launches on the same inputs gave different outputs",
                                arm == 0 ? "A" : "B"),
                    "the kernel leaves elements unwritten or has a race; a kernel must be "
                    "repeatable to be timed");
    HEBE_CHECK(buffers_.canaries_intact());
    HEBE_CHECK(buffers_.inputs_intact());
    std::size_t next = 0;
    for (const auto& a : launch().arguments)
      if (a.is_buffer && a.role != kernel::Role::in) outputs[a.name]["sha256"] = digests[0][next++];
    checked_outputs_[static_cast<std::size_t>(arm)] = digests[0];
    HEBE_CHECK(repeats_in_place(arm));
    out[arm == 0 ? "A" : "B"] = outputs;
  }
  if (arms_[0] != arms_[1]) {
    HEBE_TRY(out["B_against_A"], arms_agree(equal_arms));
  }
  out["launches_per_arm"] = 2;
  out["inputs"] = "intact";
  out["canaries"] = "intact";
  out["oracle"] = device_->info().simulated
                      ? "the case's reference (numpy); what the simulated GPU's "
                        "outputs come from: device.engine of the plan"
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
