// Result<T> and Refusal: how Hebe says no. In: a failure in the field; out: one code of one
// documented list (docs/refusals.md), the numbers, where, and what to do next. The library never
// prints or exits.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hebe {

/// Exit codes of the command line; each refusal code maps to exactly one.
enum class ExitCode : int {
  done = 0,
  claim_fails = 1,
  usage = 2,
  unfit_environment = 3,
  inconclusive = 4,
  bad_data = 5,
  bug = 70,
  interrupted = 130,
};

// The one list. name, exit code, meaning. docs/refusals.md is tested against it.
#define HEBE_REFUSALS(X)                                                                           \
  X(bad_argument, usage, "an argument or option is wrong")                                         \
  X(bad_spec, usage, "a specification file or value is wrong")                                     \
  X(below_tier_minimum, usage, "less evidence was asked for than the tier needs")                  \
  X(case_not_found, usage, "no such kernel case")                                                  \
  X(case_failed, usage, "the case's own code is wrong or raised an exception")                     \
  X(compile_failed, usage, "Triton or ptxas could not compile the kernel")                         \
  X(bad_ir, usage, "TTIR or TTGIR text is not as Triton prints it")                                \
  X(worker_failed, unfit_environment, "the compile worker died, hung or answered garbage")         \
  X(toolchain_unavailable, unfit_environment, "Python, Triton or ptxas is missing or unusable")    \
  X(no_device, unfit_environment, "no GPU matches the request")                                    \
  X(driver_unavailable, unfit_environment, "the CUDA driver or NVML could not be loaded")          \
  X(driver_call_failed, unfit_environment, "a CUDA or NVML call failed")                           \
  X(abi_mismatch, unfit_environment, "the cubin's parameters are not those of the launch spec")    \
  X(wrong_output, claim_fails, "the kernel's output, inputs or canaries are not as they must be")  \
  X(unsupported, usage, "the kernel does something that Hebe cannot interpret")                    \
  X(out_of_bounds, claim_fails, "the kernel accesses memory outside its arguments")                \
  X(kernel_failed, claim_fails, "an assertion of the kernel failed, or it does not end")           \
  X(gpu_busy, unfit_environment, "another process uses the GPU")                                   \
  X(lease_held, unfit_environment, "another Hebe run holds the GPU's lease")                       \
  X(lease_lost, unfit_environment, "the GPU's lease was removed while it was held")                \
  X(mig_enabled, unfit_environment, "MIG is on: board power is not a slice's power")               \
  X(meter_unsupported, unfit_environment, "the board or driver does not offer a needed source")    \
  X(meter_failed, unfit_environment, "a meter call failed")                                        \
  X(meter_frozen, unfit_environment, "a meter's value does not advance")                           \
  X(meter_backwards, unfit_environment, "a cumulative counter went backwards or was reset")        \
  X(meter_empty, unfit_environment, "the meter returned no samples")                               \
  X(meter_gap, unfit_environment, "the samples have a gap over the tier's limit")                  \
  X(meter_implausible, unfit_environment, "a reading cannot be true of this board")                \
  X(meter_not_qualified, unfit_environment, "the board's meter has no qualification that holds")   \
  X(meter_disagreement, unfit_environment, "two sources disagree beyond their stated error")       \
  X(clock_jump, unfit_environment, "the host's wall clock jumped against its monotonic clock")     \
  X(throttled, unfit_environment, "the GPU throttled for a reason that voids the measurement")     \
  X(not_stable, unfit_environment, "temperature or power did not settle in the allowed warm-up")   \
  X(device_error, unfit_environment, "an ECC or Xid error appeared")                               \
  X(gate_failed, unfit_environment, "a window failed its gates in every allowed attempt")          \
  X(slurm_failed, unfit_environment, "Slurm is missing, does not answer, or said no")              \
  X(io_failed, unfit_environment, "a file could not be written or read")                           \
  X(no_space, unfit_environment, "the disk is full")                                               \
  X(no_permission, unfit_environment, "a path may not be written or read")                         \
  X(not_qualified, usage, "these kernels are not proved fit to be measured")                       \
  X(already_exists, usage, "the target exists and is immutable")                                   \
  X(already_submitted, usage, "the campaign was submitted before, or another process works on it") \
  X(session_changed, unfit_environment,                                                            \
    "driver, board, boot or binary is not the one the campaign was begun with")                    \
  X(unsafe_path, bad_data, "a path leaves the data root or is a symbolic link in it")              \
  X(not_found, usage, "a named record does not exist")                                             \
  X(bad_schema, bad_data, "stored data does not follow its schema")                                \
  X(digest_mismatch, bad_data, "a stored file is not the one that was sealed")                     \
  X(analysis_mismatch, bad_data, "the analysis does not follow from the stored samples")           \
  X(half_written, bad_data, "a directory was never sealed: the process that wrote it died")        \
  X(interrupted, interrupted, "interrupted by the user")                                           \
  X(internal, bug, "a bug in Hebe")                                                                \
  X(wrong_key, bad_data, "a receipt is signed by another key than the one that was given")         \
  X(receipt_expired, bad_data, "a receipt was valid until a time that has passed")

enum class RefusalCode {
#define X(name, exit, meaning) name,
  HEBE_REFUSALS(X)
#undef X
};

[[nodiscard]] std::string_view name_of(RefusalCode code);
/// The code of that name; none: another version's.
[[nodiscard]] std::optional<RefusalCode> refusal_named(std::string_view name);
[[nodiscard]] std::string_view meaning_of(RefusalCode code);
[[nodiscard]] ExitCode exit_code_of(RefusalCode code);

/// Why something was not done. `what` has the numbers, `where` the file, line, field or call,
/// `next` what the user can do, `not_written` the file that therefore does not exist (empty: none
/// was due).
struct Refusal {
  RefusalCode code = RefusalCode::internal;
  std::string what;
  std::string where;
  std::string next;
  std::string not_written;
};

/// One paragraph for people, first line self-contained.
[[nodiscard]] std::string to_text(const Refusal& refusal);

template <class T> using Result = std::expected<T, Refusal>;
using Status = std::expected<void, Refusal>;

[[nodiscard]] inline std::unexpected<Refusal>
refuse(RefusalCode code, std::string what, std::string next = {}, std::string where = {}) {
  return std::unexpected(Refusal{code, std::move(what), std::move(where), std::move(next), {}});
}

} // namespace hebe

#define HEBE_CONCAT_(a, b) a##b
#define HEBE_CONCAT(a, b) HEBE_CONCAT_(a, b)
#define HEBE_TRY_IMPL(tmp, decl, expr)                                                             \
  auto tmp = (expr);                                                                               \
  if (!tmp) return std::unexpected(std::move(tmp).error());                                        \
  decl = *std::move(tmp)
/// `HEBE_TRY(auto x, f());` binds the value or returns the refusal.
#define HEBE_TRY(decl, ...) HEBE_TRY_IMPL(HEBE_CONCAT(hebe_try_, __COUNTER__), decl, (__VA_ARGS__))
/// `HEBE_CHECK(f());` returns the refusal of a Status, if any.
#define HEBE_CHECK(...) HEBE_CHECK_IMPL(HEBE_CONCAT(hebe_status_, __COUNTER__), (__VA_ARGS__))
#define HEBE_CHECK_IMPL(tmp, expr)                                                                 \
  if (auto tmp = (expr); !tmp) return std::unexpected(std::move(tmp).error())
