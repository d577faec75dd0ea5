#include "qualify/workload.hpp"

#include "qualify/kernel_check.hpp"

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
    const auto image = image_of(
        *arms[i], LaunchBuffers::functional_model(device, arms[i]->launch, *expected[i], own));
    HEBE_TRY(w.kernels_[i], device.load(image, own));
  }
  return w;
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
  for (const std::size_t arm : {0, 1}) {
    HEBE_TRY(auto found, check_kernel(*device_, buffers_, *kernels_[arm], arms_[arm]->launch,
                                      *expected_[arm], arm == 0 ? "arm A" : "arm B"));
    checked_outputs_[arm] = std::move(found.digests);
    out[arm == 0 ? "A" : "B"] = std::move(found.outputs);
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
