#include "tune/prepared_shape.hpp"

#include "core/philox.hpp"
#include "tune/cublaslt_backend.hpp"
#include "tune/launch_backend.hpp"
#include "tune/openblas_backend.hpp"
#include "tune/triton_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace hebe::tune {
namespace {

constexpr std::uint64_t kDrawStream = 0xd0a4;

Backend* backend_named(const Backends& all, const std::string& name) {
  const auto hit = std::ranges::find_if(all, [&](auto& b) { return b->name() == name; });
  return hit == all.end() ? nullptr : hit->get();
}

// Random: as many of the candidates beside the baseline as were asked for.
void draw(std::vector<TriedCandidate>& all, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].state == TriedCandidate::State::ready) order.push_back(i);
  Philox random(seed, kDrawStream);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  for (std::size_t i = count; i < order.size(); ++i)
    all[order[i]].state = TriedCandidate::State::not_drawn;
}

Status has_dtype(const kernel::LaunchSpec& launch, const std::string& dtype) {
  if (std::ranges::any_of(launch.arguments, [&](auto& a) {
        return a.is_buffer && kernel::name_of(a.dtype) == dtype;
      }))
    return {};
  return refuse(RefusalCode::bad_spec,
                fmt::format("dtype: no buffer of \"{}\" is {}", launch.name, dtype),
                "say the type that the baseline's case computes in", launch.name);
}

LibrarySearch cublaslt_search(const BackendSpec& b,
                              std::span<const std::filesystem::path> packages) {
  LibrarySearch out{b.library, CublasLt::names(), {}};
  for (const auto& folder : packages)
    for (auto& below : CublasLt::folders_in(folder)) out.folders.push_back(std::move(below));
  return out;
}

// One value that a case does not take is a candidate less. Where no candidate of a backend is left
// for that reason, it is the specification's fault: a misspelt name of a parameter, say.
Status some_value_was_taken(const PreparedShape& shape) {
  for (const auto& refused : shape.candidates) {
    if (!refused.why || refused.why->code != RefusalCode::bad_argument) continue;
    const std::span all(shape.candidates);
    const bool taken =
        std::ranges::any_of(all.subspan(shape.baseline_is_offered ? 0 : 1), [&](const auto& c) {
          return c.candidate.backend == refused.candidate.backend &&
                 c.state != TriedCandidate::State::unavailable;
        });
    if (taken) continue;
    auto r = *refused.why;
    r.what = fmt::format("no candidate of backend \"{}\" is taken, as {}: {}",
                         refused.candidate.backend, text_of(refused.candidate), r.what);
    if (r.next.empty()) r.next = "see the backend's space and option_space in the specification";
    return std::unexpected(std::move(r));
  }
  return {};
}

} // namespace

Result<Backends> backends_of(const TuneSpec& spec, const HostMetering& host) {
  const auto metered = [host]() -> Status {
    HEBE_CHECK(host.open({}));
    return {};
  };
  Backends out;
  for (const auto& b : spec.backends) {
    if (b.kind == "triton")
      out.push_back(std::make_unique<TritonBackend>(b));
    else if (b.kind == "launch")
      out.push_back(std::make_unique<LaunchBackend>(b, spec.folder));
    else if (b.kind == "cublaslt")
      out.push_back(std::make_unique<CublasLtBackend>(b, cublaslt_search(b, spec.packages)));
    else if (b.kind == "openblas")
      out.push_back(std::make_unique<OpenBlasBackend>(
          b, LibrarySearch{b.library, OpenBlas::names(), {}}, metered, host.provenance));
    else
      return refuse(RefusalCode::bad_spec, b.where + ".kind: there is no \"" + b.kind + "\"");
  }
  return out;
}

Result<PreparedShape> offered(const TuneSpec& spec, const ShapeSpec& shape,
                              const Backends& backends, const Bench& bench, std::uint64_t seed) {
  PreparedShape out;
  out.spec = &shape;
  HEBE_TRY(auto baseline,
           backend_named(backends, shape.baseline.backend)->named(shape.baseline.configuration));
  out.candidates.push_back({TriedCandidate::State::ready, std::move(baseline), {}, {}});
  const auto add = [&](Candidate candidate, std::optional<Refusal> why) {
    out.baseline_is_offered = out.baseline_is_offered || candidate == out.candidates[0].candidate;
    if (std::ranges::any_of(out.candidates,
                            [&](auto& c) { return !c.why && c.candidate == candidate; }))
      return;
    const auto state = why ? TriedCandidate::State::unavailable : TriedCandidate::State::ready;
    out.candidates.push_back({state, std::move(candidate), std::move(why), {}});
  };
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const auto& only = spec.backends[i].shapes;
    if (!only.empty() && std::ranges::find(only, shape.shape.name) == only.end()) continue;
    HEBE_TRY(auto offer, backends[i]->offer(shape.shape, bench));
    for (auto& candidate : offer.candidates) add(std::move(candidate), {});
    for (auto& u : offer.unavailable) add(std::move(u.candidate), std::move(u.why));
  }
  if (spec.method == Method::random) draw(out.candidates, spec.count, seed);
  return out;
}

Status prepare(PreparedShape& shape, const TuneSpec& spec, const Backends& backends,
               const Bench& bench, const std::function<Status()>& go_on) {
  auto own = bench;
  own.baseline = nullptr;
  for (auto& tried : shape.candidates) {
    if (tried.state != TriedCandidate::State::ready) continue;
    HEBE_CHECK(go_on());
    auto* backend = backend_named(backends, tried.candidate.backend);
    auto made = backend->prepare(tried.candidate, shape.spec->shape, own);
    const bool is_baseline = own.baseline == nullptr;
    if (!made && (is_baseline || !cannot_run(made.error().code))) {
      auto r = std::move(made).error();
      if (is_baseline)
        r.what = "the baseline of shape \"" + shape.spec->shape.name + "\": " + r.what;
      return std::unexpected(std::move(r));
    }
    if (!made) {
      tried.state = TriedCandidate::State::unavailable;
      tried.why = std::move(made).error();
      continue;
    }
    tried.prepared = std::move(*made);
    if (!is_baseline) continue;
    if (!std::holds_alternative<DeviceCode>(tried.prepared->code))
      return refuse(RefusalCode::bad_spec, "the baseline must be a kernel of the GPU",
                    "name a case of Triton as the baseline");
    HEBE_CHECK(has_dtype(shape.baseline().compiled.launch, spec.dtype));
    own.baseline = &shape.baseline();
  }
  return some_value_was_taken(shape);
}

} // namespace hebe::tune
