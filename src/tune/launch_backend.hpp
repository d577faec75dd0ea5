// Kernels that somebody else compiled: launch specs (hebe.launch/1) with their cubins. In: a
// backend of a specification; out: candidates. Invariant: the bytes that are measured are those
// that were named, stored by their digest; a cubin for another architecture is unavailable.
#pragma once

#include "tune/tune_spec.hpp"

namespace hebe::tune {

class LaunchBackend final : public Backend {
public:
  LaunchBackend(BackendSpec spec, std::filesystem::path folder)
      : spec_(std::move(spec)), folder_(std::move(folder)) {}
  [[nodiscard]] const std::string& name() const override { return spec_.name; }
  [[nodiscard]] Result<Offer> offer(const Shape& shape, const Bench& bench) override;
  /// {"launch": its name}
  [[nodiscard]] Result<Candidate> named(const Json& configuration) const override;
  [[nodiscard]] Result<Prepared> prepare(const Candidate& candidate, const Shape& shape,
                                         const Bench& bench) override;

private:
  [[nodiscard]] Result<std::string> bytes_of(const std::string& text, const Bench& bench) const;
  BackendSpec spec_;
  std::filesystem::path folder_;
};

} // namespace hebe::tune
