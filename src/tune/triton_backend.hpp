// A case of Triton with a space of configurations. In: a backend of a specification; out:
// candidates, compiled through the worker and its cache. Invariant: a shape's sizes are the case's
// parameters by name; a configuration that does not compile is unavailable.
#pragma once

#include "tune/tune_spec.hpp"

namespace hebe::tune {

class TritonBackend final : public Backend {
public:
  explicit TritonBackend(BackendSpec spec) : spec_(std::move(spec)) {}
  [[nodiscard]] const std::string& name() const override { return spec_.name; }
  [[nodiscard]] Result<Offer> offer(const Shape& shape, const Bench& bench) override;
  [[nodiscard]] Result<Candidate> named(const Json& configuration) const override;
  [[nodiscard]] Result<Prepared> prepare(const Candidate& candidate, const Shape& shape,
                                         const Bench& bench) override;

private:
  [[nodiscard]] kernel::CaseRequest request(const Candidate& candidate, const Shape& shape,
                                            int arch) const;
  BackendSpec spec_;
};

} // namespace hebe::tune
