// What to tune, as its author wrote it. In: a TOML or JSON file (schema hebe.tune.spec/1); out:
// shapes, backends, objective, search, the finalists' protocol. Invariant: every name that refers
// to another is known and every space can be searched, before anything is compiled; what is wrong
// is bad_spec with the key's name.
#pragma once

#include "campaign/campaign_spec.hpp"
#include "tune/backend.hpp"
#include "tune/configuration_space.hpp"

#include <map>
#include <optional>

namespace hebe::tune {

enum class Objective { energy, edp, energy_under_latency };
[[nodiscard]] std::string_view name_of(Objective objective);
/// Whether a search ranks launches by what they take beyond the idle board, or by all that the
/// board takes meanwhile, as pairs do.
enum class IdleCharge { excluded, included };
[[nodiscard]] std::string_view name_of(IdleCharge charge);
enum class Method { exhaustive, random, halving };
[[nodiscard]] std::string_view name_of(Method method);

struct BaselineSpec {
  std::string backend;
  Json configuration = Json::object();
};

struct ShapeSpec {
  Shape shape;
  BaselineSpec baseline;
};

/// A hebe.launch/1 spec with its cubin: files, or the artifact store's digests.
struct LaunchFiles {
  std::string name;
  std::string launch, cubin,
      ttgir; ///< paths are relative to the specification; ttgir: may be empty
};

struct BackendSpec {
  std::string name, kind;
  std::vector<std::string> shapes;          ///< that it is tried at; empty: all
  kernel::CaseRequest subject;              ///< triton: the case, its fixed parameters and options
  std::map<std::string, std::string> sizes; ///< triton: dimension to the case's parameter
  ConfigurationSpace space, option_space;   ///< triton: parameters and compile options
  std::vector<LaunchFiles> launches;        ///< launch
  std::filesystem::path library;            ///< cublaslt, openblas: its file; empty: looked for
  int heuristics = 8;                       ///< cublaslt: how many of its choices are tried
  std::uint64_t workspace_bytes = 32 << 20; ///< cublaslt: at most
  std::string where;                        ///< "backends[1]", for refusals
};

/// Whether its candidates are host code, which the host's own meter reads.
[[nodiscard]] bool runs_on_the_host(const BackendSpec& backend);

struct LatencyBound {
  std::optional<double> ns, ratio; ///< one of them; ratio: of the baseline's latency
};

struct TuneSpec {
  std::string name, description, operation, dtype;
  std::vector<std::string> bucketed;
  Objective objective = Objective::energy;
  IdleCharge idle_power = IdleCharge::excluded;
  std::optional<LatencyBound> latency_bound;
  Method method = Method::halving;
  std::size_t count = 0; ///< random: how many candidates are drawn
  Seconds window{0.5}, longest_window{4}, warm_up{5}, idle{2}; ///< of the search
  campaign::JobSpec protocol;                                  ///< of finalists
  std::vector<ShapeSpec> shapes;
  bool all_shapes = true; ///< else those that were asked for by name
  std::vector<BackendSpec> backends;
  /// Of one shape's simulated board, by its name, or by "NAME.finalists".
  std::map<std::string, std::vector<gpu::Fault>> faults;
  /// Where packages may have put libraries (site-packages): told by whoever has the specification.
  std::vector<std::filesystem::path> packages;
  std::filesystem::path folder; ///< what relative names in it are relative to
  Json json;                    ///< as it was read
};

[[nodiscard]] Result<TuneSpec> read_tune_spec(const std::filesystem::path& file,
                                              const campaign::CaseResolver& resolve);
/// As a record keeps it. No case is looked for: what ran is in the sealed runs. `where` is named in
/// refusals: bad_schema, bad_spec.
[[nodiscard]] Result<TuneSpec> stored_tune_spec(const Json& json, const std::string& where);
/// Leaves only these shapes, in the specification's order; no name: all stay. One shape after
/// another is tuned where the board is not had for long. bad_argument: there is no such shape.
[[nodiscard]] Status keep_shapes(TuneSpec& spec, const std::vector<std::string>& names);
/// The sizes as an object, for constraints.
[[nodiscard]] Json sizes_json(const Shape& shape);

} // namespace hebe::tune
