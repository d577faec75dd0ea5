// A source that is one call. In: its description, the clock, the call; out: readings with the host
// time around it. Invariant: a value that cannot be of its quantity is a refusal, never a reading.
#pragma once

#include "meter/discovered.hpp"

#include <functional>

namespace hebe::meter {

class CalledSource final : public Source {
public:
  using Call = std::function<Result<std::int64_t>()>;
  /// `clock` must outlive it.
  CalledSource(SourceDescription description, Clock& clock, Call call)
      : description_(std::move(description)), clock_(clock), call_(std::move(call)) {}
  [[nodiscard]] const SourceDescription& description() const override { return description_; }
  [[nodiscard]] Result<SourceReading> read() override {
    SourceReading r;
    r.before = clock_.now();
    const auto raw = call_();
    r.after = clock_.now();
    if (!raw) return std::unexpected(raw.error());
    r.raw = *raw;
    HEBE_CHECK(can_be_true(description_.quantity,
                           static_cast<double>(r.raw) * description_.si_per_unit,
                           description_.identity.field));
    return r;
  }

private:
  SourceDescription description_;
  Clock& clock_;
  Call call_;
};

} // namespace hebe::meter
