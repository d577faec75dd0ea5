#include "qualify/kernel_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hebe::qualify {

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

namespace {

// A kernel that works in place is replayed on its own output: unless that is a fixed point, the
// windows would time other data than the recorded inputs, and data alone can halve a kernel's
// power.
Status repeats_in_place(gpu::Device& device, const LaunchBuffers& buffers, gpu::Kernel& kernel,
                        const kernel::LaunchSpec& own) {
  const bool in_place = std::any_of(own.arguments.begin(), own.arguments.end(), [](auto& a) {
    return a.is_buffer && a.role == kernel::Role::inout;
  });
  if (!in_place) return {};
  HEBE_TRY(const auto before, buffers.output_digests());
  HEBE_CHECK(device.launch_once(kernel));
  HEBE_TRY(const auto after, buffers.output_digests());
  if (before == after) return {};
  return refuse(
      RefusalCode::bad_spec,
      "the kernel changes its own input: replayed, it would be timed on other data than recorded",
      "write to a separate output, or use data that the kernel leaves as it is");
}

} // namespace

Result<CheckedOutputs> check_kernel(gpu::Device& device, LaunchBuffers& buffers,
                                    gpu::Kernel& kernel, const kernel::LaunchSpec& own,
                                    const ExpectedOutputs& expected, const std::string& who) {
  CheckedOutputs out;
  std::array<std::vector<std::string>, 2> digests;
  for (std::size_t round = 0; round < 2; ++round) {
    // 0xFF is NaN in every float type; the second pattern shows elements that were not written at
    // all.
    HEBE_CHECK(buffers.poison(round == 0 ? std::byte{0xFF} : std::byte{0x5A}));
    HEBE_CHECK(device.launch_once(kernel));
    if (round == 0) {
      HEBE_TRY(out.outputs, buffers.check_outputs(own, expected, who));
    }
    HEBE_TRY(digests[round], buffers.output_digests());
  }
  if (digests[0] != digests[1])
    return refuse(RefusalCode::wrong_output,
                  who + ": two launches on the same inputs gave different outputs",
                  "the kernel leaves elements unwritten or has a race; a kernel must be "
                  "repeatable to be timed");
  HEBE_CHECK(buffers.canaries_intact());
  HEBE_CHECK(buffers.inputs_intact());
  for (std::size_t next = 0; const auto& name : buffers.output_names())
    out.outputs[name]["sha256"] = digests[0][next++];
  out.digests = std::move(digests[0]);
  HEBE_CHECK(repeats_in_place(device, buffers, kernel, own));
  return out;
}

} // namespace hebe::qualify
