// A way to compute an operation: what it offers at a shape, and one of its offers made ready to
// run. In: a shape, the bench that it is to run on; out: candidates, or why there are none; a
// prepared candidate: kernel or library call of a GPU, or host code. Invariant: what this platform
// cannot run is unavailable, with the reason: it is no error and never wins; nothing here measures.
#pragma once

#include "campaign/frozen_job.hpp"
#include "gpu/device.hpp"
#include "tune/shape_bucket.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace hebe::tune {

/// "decode": m = 1, n = 4096, k = 4096, in the order of the profile's dimensions.
struct Shape {
  std::string name;
  std::vector<NamedSize> sizes;
};

/// One way to compute the operation at a shape, before anything is compiled or loaded.
struct Candidate {
  std::string backend;                 ///< its name in the specification
  std::string name;                    ///< of the implementation, as a profile has it
  Json configuration = Json::object(); ///< with the name it says which it is
  bool operator==(const Candidate&) const = default;
};
/// "triton:matmul {"block_m":16}"
[[nodiscard]] std::string text_of(const Candidate& candidate);

/// Something that a backend has, and that cannot run here.
struct Unavailable {
  Candidate candidate;
  Refusal why;
};

struct Offer {
  std::vector<Candidate> candidates;
  std::vector<Unavailable> unavailable; ///< with an empty configuration: the whole backend
};

/// A kernel or a library's operation on a GPU. Its buffers are the baseline's by name, type, shape
/// and role, and so are its inputs and the outputs that it must have: all candidates of a shape are
/// checked against the same values, within the baseline's tolerance. A library's operation has
/// compiled.library_call and artifacts["library"] (the sha256 of its file) in a cubin's place, and
/// the launch's `work` where the simulated GPU is to price it.
using DeviceCode = std::shared_ptr<const campaign::PreparedCase>;

/// Code that runs on the host: metered by another meter than the board's, under the host's clock.
struct HostCode {
  /// Does the operation so many times, from inputs that it holds.
  std::function<Status(std::int64_t times)> run;
  /// The bytes of an output of the last run, by the buffer's name, row by row in its dtype.
  std::function<Result<std::vector<std::byte>>(const std::string& output)> output;
};

struct Prepared {
  Candidate candidate;
  std::variant<DeviceCode, HostCode> code;
  std::optional<std::string> artifact_sha256; ///< of the cubin, or the library's file
  std::optional<std::string> version;         ///< of the library, where there is one
  std::optional<std::string> triton;          ///< that made it; none: it was not made by Triton
};

/// What a backend may use to see what it can offer, and to make it ready.
struct Bench {
  gpu::Device& device; ///< its context is open and current
  campaign::CasePreparer& preparer;
  std::filesystem::path data_root;
  std::string dtype;
  /// The shape's baseline, made ready: buffers, inputs, expected outputs. Null while it is the
  /// baseline itself that is made.
  const campaign::PreparedCase* baseline = nullptr;
};

class Backend {
public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Everything that it has for this shape; nothing is compiled yet. A refusal ends the tune: it is
  /// the specification that is wrong. A library, driver or board that is not there is unavailable.
  [[nodiscard]] virtual Result<Offer> offer(const Shape& shape, const Bench& bench) = 0;
  /// The candidate of this configuration, which need not be one of the offer: the baseline.
  [[nodiscard]] virtual Result<Candidate> named(const Json& configuration) const = 0;
  /// Ready to run. A refusal for which cannot_run() holds makes it unavailable.
  [[nodiscard]] virtual Result<Prepared> prepare(const Candidate& candidate, const Shape& shape,
                                                 const Bench& bench) = 0;
};

/// Whether a refusal says that this platform cannot run the candidate (it does not compile, the
/// case does not take it, a block is too large, a library is missing), rather than that nothing can
/// be measured now.
[[nodiscard]] bool cannot_run(RefusalCode code);

/// bad_spec: the candidate's buffers or initialisers are not the baseline's.
[[nodiscard]] Status same_operation(const kernel::LaunchSpec& baseline,
                                    const kernel::LaunchSpec& candidate);

/// A candidate's compiled code as it is measured: with the baseline's inputs, expected outputs and
/// tolerance.
[[nodiscard]] Result<DeviceCode> in_place_of(const campaign::PreparedCase& baseline,
                                             kernel::CompiledCase compiled);

} // namespace hebe::tune
