#include "qualify/trial.hpp"

#include "core/sha256.hpp"
#include "gpu/sim_device.hpp"
#include "gpu/sim_engine.hpp"
#include "kernel/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace hebe::qualify {
namespace {

// What every trial says of a kernel, in this order. A trial that stops leaves the rest not_run.
constexpr std::array<std::string_view, 11> kOrder = {
    "inputs_are_numbers", "abi_matches", "runs",       "accesses_in_bounds", "outputs_written",
    "outputs_right",      "repeatable",  "idempotent", "inputs_intact",      "canaries_intact",
    "pointers_disjoint"};

// Two bytes that no kernel writes everywhere by accident; the first is NaN in every float type.
constexpr std::array<std::byte, 2> kPoison = {std::byte{0xFF}, std::byte{0x5A}};

/// The first NaN among the inputs: it would pass through both kernels and hide what they do.
Result<std::string> nan_in_inputs(const kernel::LaunchSpec& launch) {
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer && a.value == "nan") return fmt::format("the scalar \"{}\" is NaN", a.name);
    if (!a.is_buffer || !a.init || !kernel::is_float(a.dtype)) continue;
    std::optional<std::size_t> first;
    HEBE_CHECK(kernel::for_each_chunk(a, [&](std::size_t at, std::span<const std::byte> bytes) {
      const auto size = kernel::size_of(a.dtype);
      for (std::size_t i = 0; !first && i < bytes.size() / size; ++i)
        if (std::isnan(kernel::element(bytes, a.dtype, i))) first = at / size + i;
      return Status{};
    }));
    if (first) return fmt::format("element {} of \"{}\" is NaN", *first, a.name);
  }
  return std::string();
}

/// Elements that hold the poison after both of two launches on different poison: never written.
struct Unwritten {
  std::size_t elements = 0, first = 0;
};
Unwritten unwritten(const std::array<std::vector<std::byte>, 2>& rounds, std::size_t size) {
  Unwritten out;
  for (std::size_t e = 0; e < rounds[0].size() / size; ++e) {
    bool poison = true;
    for (std::size_t b = e * size; poison && b < (e + 1) * size; ++b)
      poison = rounds[0][b] == kPoison[0] && rounds[1][b] == kPoison[1];
    if (poison && out.elements++ == 0) out.first = e;
  }
  return out;
}

class Trier {
public:
  Trier(gpu::Device& device, const kernel::CompiledCase& compiled, const ExpectedOutputs& expected,
        int launches, std::string by, bool interpreted)
      : device_(device), compiled_(compiled), expected_(expected), launches_(std::max(launches, 2)),
        checks_(std::move(by)), interpreted_(interpreted) {}

  Trial result() {
    const auto stopped = stages();
    for (const auto& name : kOrder) {
      if (name == "accesses_in_bounds" && !interpreted_) continue;
      if (std::ranges::none_of(checks_.rows, [&](auto& row) { return row.name == name; }))
        checks_.not_run(std::string(name),
                        stopped ? "an earlier check failed" : to_text(stopped.error()));
    }
    std::ranges::stable_sort(checks_.rows, {}, [](const Check& row) {
      return std::ranges::find(kOrder, row.name) - kOrder.begin();
    });
    trial_.checks = std::move(checks_.rows);
    return std::move(trial_);
  }

private:
  // A refusal is something that kept the trial from going on and is no check's failure.
  Status stages() {
    HEBE_TRY(const auto nan, nan_in_inputs(compiled_.launch));
    checks_.add("inputs_are_numbers", nan.empty(),
                nan.empty() ? "no NaN in any input" : nan + ": it would hide what a kernel does");
    if (!nan.empty()) return {};
    HEBE_TRY(auto buffers, LaunchBuffers::make(device_, compiled_.launch));
    const auto pointers = buffers.pointers();
    disjoint(pointers);
    auto loaded = device_.load(image_of(compiled_, {}), pointers);
    if (!loaded) {
      const bool abi = loaded.error().code == RefusalCode::abi_mismatch;
      if (!abi) return std::unexpected(std::move(loaded).error());
      checks_.failed("abi_matches", to_text(loaded.error()));
      return {};
    }
    auto& kernel = **loaded;
    checks_.passed("abi_matches",
                   interpreted_
                       ? fmt::format("the TTGIR's function takes the launch's {} arguments",
                                     compiled_.launch.arguments.size())
                       : fmt::format("the cubin's parameters are the launch's {} and two "
                                     "scratch pointers",
                                     compiled_.launch.arguments.size()));
    occupancy(kernel);
    HEBE_TRY(const bool ran, launches(kernel, buffers));
    if (ran) HEBE_CHECK(memory(kernel, buffers));
    return {};
  }

  void disjoint(const std::vector<gpu::DevicePointer>& pointers) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    std::size_t next = 0;
    for (const auto& a : compiled_.launch.arguments)
      if (a.is_buffer) {
        const auto begin = pointers[next++];
        ranges.emplace_back(begin, begin + a.bytes().count);
      }
    std::ranges::sort(ranges);
    bool apart = true;
    for (std::size_t i = 1; i < ranges.size(); ++i)
      apart = apart && ranges[i - 1].second <= ranges[i].first;
    checks_.add("pointers_disjoint", apart,
                fmt::format("{} buffers at {} addresses", ranges.size(),
                            apart ? "disjoint" : "overlapping"));
  }

  void occupancy(gpu::Kernel& kernel) {
    if (interpreted_) return;
    const auto o = device_.occupancy(kernel);
    trial_.occupancy =
        o ? Json{{"registers", o->registers},
                 {"local_bytes", o->local_bytes},
                 {"static_shared_bytes", o->static_shared_bytes},
                 {"blocks_per_multiprocessor", o->blocks_per_multiprocessor},
                 {"warps_per_multiprocessor",
                  o->blocks_per_multiprocessor * static_cast<int>(compiled_.launch.num_warps)},
                 {"source", "the CUDA driver"}}
          : Json{{"unavailable", o.error().what}};
  }

  // From poisoned outputs, again and again. False where there is nothing further to look at.
  Result<bool> launches(gpu::Kernel& kernel, LaunchBuffers& buffers) {
    std::map<std::string, std::array<std::vector<std::byte>, 2>> rounds;
    std::vector<std::string> digests;
    bool same = true;
    std::string right;
    for (int round = 0; round < launches_; ++round) {
      HEBE_CHECK(buffers.poison(kPoison[static_cast<std::size_t>(round) % 2]));
      if (const auto launched = device_.launch_once(kernel); !launched) {
        const auto& why = launched.error();
        const bool outside = why.code == RefusalCode::out_of_bounds;
        if (outside) {
          checks_.passed("runs", "the interpreter followed it to the access");
          checks_.failed("accesses_in_bounds", to_text(why));
          return false;
        }
        checks_.failed("runs", to_text(why));
        return false;
      }
      if (round < 2)
        for (const auto& a : compiled_.launch.arguments) {
          if (!a.is_buffer || a.role == kernel::Role::in) continue;
          HEBE_TRY(rounds[a.name][static_cast<std::size_t>(round)], buffers.output_bytes(a.name));
        }
      if (round == 0) {
        auto found = buffers.check_outputs(compiled_.launch, expected_, "the kernel");
        if (found)
          trial_.outputs = *std::move(found);
        else if (found.error().code == RefusalCode::wrong_output)
          right = found.error().what;
        else
          return std::unexpected(std::move(found).error());
      }
      HEBE_TRY(auto now, buffers.output_digests());
      same = same && (digests.empty() || now == digests);
      if (digests.empty()) digests = std::move(now);
    }
    checks_.passed("runs", fmt::format("{} launches ended", launches_));
    if (interpreted_)
      checks_.passed("accesses_in_bounds", "every load and store lies in its argument's memory");
    written(rounds);
    checks_.add("outputs_right", right.empty(),
                right.empty() ? fmt::format("within atol {:g}, rtol {:g} of the case's reference",
                                            compiled_.launch.atol, compiled_.launch.rtol)
                              : right);
    checks_.add("repeatable", same,
                same
                    ? fmt::format("{} launches from poisoned outputs gave the same bits", launches_)
                    : "launches on the same inputs gave different outputs: a race, or elements "
                      "that are not written");
    std::size_t next = 0;
    for (const auto& a : compiled_.launch.arguments) {
      if (!a.is_buffer || a.role == kernel::Role::in) continue;
      trial_.outputs[a.name]["sha256"] = digests[next++];
      trial_.bytes[a.name] = std::move(rounds[a.name][0]);
    }
    return true;
  }

  void written(const std::map<std::string, std::array<std::vector<std::byte>, 2>>& rounds) {
    std::string missing;
    for (const auto& a : compiled_.launch.arguments) {
      if (!a.is_buffer || a.role != kernel::Role::out) continue;
      const auto found = unwritten(rounds.at(a.name), kernel::size_of(a.dtype));
      if (found.elements > 0)
        missing += fmt::format("{}{} of {} elements of \"{}\" are not written, the first is {}",
                               missing.empty() ? "" : "; ", found.elements, a.elements(), a.name,
                               found.first);
    }
    checks_.add("outputs_written", missing.empty(),
                missing.empty() ? "no element keeps the poison of two launches" : missing);
  }

  Status memory(gpu::Kernel& kernel, LaunchBuffers& buffers) {
    // Replays run on what the launch before left.
    HEBE_TRY(const auto before, buffers.output_digests());
    if (const auto again = device_.launch_once(kernel); !again) {
      checks_.failed("idempotent", "a launch on its own outputs: " + to_text(again.error()));
      return {};
    }
    HEBE_TRY(const auto after, buffers.output_digests());
    checks_.add("idempotent", before == after,
                before == after
                    ? "a launch on its own outputs changes no bit"
                    : "a launch on its own outputs changes them: replayed, it would be timed on "
                      "other data than recorded");
    const auto inputs = buffers.inputs_intact(), canaries = buffers.canaries_intact();
    checks_.add("inputs_intact", inputs.has_value(),
                inputs ? "every input has the bytes it was given" : inputs.error().what);
    checks_.add("canaries_intact", canaries.has_value(),
                canaries ? fmt::format("{} bytes on either side of every buffer",
                                       gpu::GuardedBuffer::kCanary)
                         : canaries.error().what);
    return {};
  }

  gpu::Device& device_;
  const kernel::CompiledCase& compiled_;
  const ExpectedOutputs& expected_;
  int launches_;
  Checks checks_;
  bool interpreted_;
  Trial trial_;
};

/// One launch of the text as it is: a mechanism's operations are those that were written. Nothing
/// where it cannot be run.
std::optional<ttgir::Counts> counted(const kernel::CompiledCase& compiled) {
  auto engine = gpu::SimEngine::make(compiled.launch, compiled.ttgir, gpu::FpFusion::off);
  if (!engine) return std::nullopt;
  (*engine)->count_rereads();
  std::vector<std::vector<std::byte>> memory;
  for (const auto& a : compiled.launch.arguments) {
    if (!a.is_buffer) continue;
    auto& bytes = memory.emplace_back(a.bytes().count);
    if (a.role == kernel::Role::out) continue;
    const auto filled =
        kernel::for_each_chunk(a, [&](std::size_t at, std::span<const std::byte> chunk) {
          std::ranges::copy(chunk, bytes.begin() + static_cast<std::ptrdiff_t>(at));
          return Status{};
        });
    if (!filled) return std::nullopt;
  }
  const std::vector<std::span<std::byte>> spans(memory.begin(), memory.end());
  if (!(*engine)->run(spans)) return std::nullopt;
  return (*engine)->counts();
}

} // namespace

bool Trial::passed() const {
  return std::ranges::all_of(checks, [](auto& c) { return c.outcome == Check::Outcome::passed; });
}

Trial try_on_gpu(gpu::Device& device, const kernel::CompiledCase& compiled,
                 const ExpectedOutputs& expected, int launches) {
  return Trier(device, compiled, expected, launches, device.info().name, false).result();
}

Trial try_in_interpreter(const kernel::CompiledCase& compiled, const ExpectedOutputs& expected,
                         int launches) {
  VirtualClock clock;
  gpu::SimBoard board(clock, gpu::BoardModel{}, 0);
  gpu::SimDevice device(board, gpu::sim_device_info());
  auto trial = Trier(device, compiled, expected, launches, "interpreter", true).result();
  trial.counts = counted(compiled);
  return trial;
}

std::vector<Check> no_gpu_trial(const std::string& why) {
  Checks out("GPU");
  for (const auto& name : kOrder)
    if (name != "accesses_in_bounds" && name != "inputs_are_numbers")
      out.not_run(std::string(name), why);
  out.not_run("bits_equal", why);
  return out.rows;
}

Check compare_bits(const kernel::LaunchSpec& launch, const Trial& baseline, const Trial& candidate,
                   const std::string& by) {
  Check out{"bits_equal", Check::Outcome::passed, by, {}};
  if (baseline.bytes.empty() || candidate.bytes.empty()) {
    out.outcome = Check::Outcome::not_run;
    out.evidence = baseline.bytes.empty() ? "the baseline gave no outputs" : "it gave no outputs";
    return out;
  }
  for (const auto& a : launch.arguments) {
    if (!a.is_buffer || a.role == kernel::Role::in) continue;
    const auto of_a = baseline.bytes.find(a.name), of_b = candidate.bytes.find(a.name);
    if (!out.evidence.empty()) out.evidence += "; ";
    if (of_a == baseline.bytes.end() || of_b == candidate.bytes.end() ||
        of_a->second.size() != of_b->second.size()) {
      out.outcome = Check::Outcome::failed;
      out.evidence += a.name + ": the two have outputs of other names or sizes";
      continue;
    }
    const auto &x = of_a->second, &y = of_b->second;
    const auto size = kernel::size_of(a.dtype);
    std::size_t different = 0, first = 0;
    double worst = 0;
    for (std::size_t e = 0; e < x.size() / size; ++e) {
      if (std::memcmp(x.data() + e * size, y.data() + e * size, size) == 0) continue;
      if (different++ == 0) first = e;
      const double gap = std::abs(kernel::element(x, a.dtype, e) - kernel::element(y, a.dtype, e));
      worst = std::max(worst, gap);
    }
    if (different == 0) {
      out.evidence += fmt::format("{}: {} elements equal", a.name, x.size() / size);
    } else {
      out.outcome = Check::Outcome::failed;
      out.evidence += fmt::format("{}: {} of {} elements differ, the first is {}, by at most {:g}",
                                  a.name, different, x.size() / size, first, worst);
    }
  }
  return out;
}

} // namespace hebe::qualify
