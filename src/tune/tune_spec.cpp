#include "tune/tune_spec.hpp"

#include "core/schema.hpp"
#include "qualify/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hebe::tune {
namespace fs = std::filesystem;
namespace {

template <class E> Result<E> named(std::string_view text, std::initializer_list<E> all) {
  for (const auto e : all)
    if (name_of(e) == text) return e;
  return refuse(RefusalCode::bad_spec, "\"" + std::string(text) + "\" is none of those known");
}

class Reader {
public:
  Reader(const Json& json, const campaign::CaseResolver& resolve, const fs::path& file)
      : json_(json), resolve_(resolve), file_(file.string()) {
    out_.folder = fs::absolute(file).parent_path();
    out_.json = json;
  }

  Result<TuneSpec> read() {
    out_.name = json_.at("name");
    out_.description = json_.value("description", "");
    out_.operation = json_.at("operation");
    out_.dtype = json_.at("dtype");
    for (const auto& [key, text] :
         {std::pair("operation", &out_.operation), {"dtype", &out_.dtype}})
      if (!on_one_line(*text)) return wrong(key, "holds a control character");
    HEBE_CHECK(read_dimensions());
    HEBE_CHECK(read_objective());
    HEBE_CHECK(read_search());
    HEBE_CHECK(read_protocol());
    HEBE_CHECK(read_shape_names());
    for (std::size_t i = 0; i < json_.at("backends").size(); ++i) HEBE_CHECK(read_backend(i));
    for (std::size_t i = 0; i < json_.at("shapes").size(); ++i) HEBE_CHECK(read_shape(i));
    HEBE_CHECK(read_faults());
    return std::move(out_);
  }

private:
  std::unexpected<Refusal> wrong(const std::string& key, const std::string& what,
                                 std::string next = {}) const {
    return refuse(RefusalCode::bad_spec, key + ": " + what, std::move(next), file_);
  }

  Status read_dimensions() {
    for (const auto& d : json_.at("dimensions")) {
      const auto name = d.get<std::string>();
      if (std::ranges::find(dimensions_, name) != dimensions_.end())
        return wrong("dimensions", "\"" + name + "\" stands there twice");
      dimensions_.push_back(name);
    }
    for (const auto& b : json_.value("bucketed", Json::array())) {
      const auto name = b.get<std::string>();
      if (std::ranges::find(dimensions_, name) == dimensions_.end())
        return wrong("bucketed", "there is no dimension \"" + name + "\"");
      out_.bucketed.push_back(name);
    }
    return {};
  }

  Status read_objective() {
    HEBE_TRY(out_.objective,
             named(json_.value("objective", "energy"),
                   {Objective::energy, Objective::edp, Objective::energy_under_latency}));
    HEBE_TRY(out_.idle_power, named(json_.value("idle_power", "excluded"),
                                    {IdleCharge::excluded, IdleCharge::included}));
    const bool bounded = out_.objective == Objective::energy_under_latency;
    if (bounded != json_.contains("latency_bound"))
      return wrong(
          "latency_bound",
          bounded ? "energy_under_latency needs one" : "is of energy_under_latency only",
          "latency_bound = { ratio = 1.05 } is of the baseline's latency, { ns = … } a time");
    if (!bounded) return {};
    out_.latency_bound.emplace();
    const auto& bound = json_.at("latency_bound");
    if (bound.contains("ns")) out_.latency_bound->ns = bound.at("ns").get<double>();
    if (bound.contains("ratio")) out_.latency_bound->ratio = bound.at("ratio").get<double>();
    return {};
  }

  Status read_search() {
    HEBE_TRY(out_.method, named(json_.value("search", "halving"),
                                {Method::exhaustive, Method::random, Method::halving}));
    if ((out_.method == Method::random) != json_.contains("search_count"))
      return wrong("search_count", out_.method == Method::random
                                       ? "a random search needs how many candidates it draws"
                                       : "is of a random search only");
    out_.count = json_.value("search_count", std::size_t{0});
    out_.window = Seconds(json_.value("search_window_s", out_.window.value()));
    out_.longest_window =
        Seconds(json_.value("search_longest_window_s", std::max(4.0, out_.window.value())));
    out_.warm_up = Seconds(json_.value("search_warm_up_s", out_.warm_up.value()));
    out_.idle = Seconds(json_.value("idle_window_s", out_.idle.value()));
    if (out_.longest_window < out_.window)
      return wrong("search_longest_window_s", "is shorter than search_window_s");
    return {};
  }

  Status read_protocol() {
    auto& p = out_.protocol;
    const auto tier = measure::tier_named(json_.value("tier", "confirmation-v1"));
    if (!tier) return wrong("tier", tier.error().what, tier.error().next);
    p.tier = *tier;
    p.pairs = json_.value("pairs", p.tier.min_pairs);
    p.window = Seconds(json_.value("window_s", p.tier.min_window.value()));
    p.warm_up = Seconds(json_.value("warm_up_s", p.tier.min_warm_up.value()));
    p.margins.energy_percent = json_.value("energy_margin_percent", p.margins.energy_percent);
    p.margins.latency_percent = json_.value("latency_margin_percent", p.margins.latency_percent);
    if (json_.contains("seed")) p.seed = json_.at("seed").get<std::uint64_t>();
    return {};
  }

  Status read_shape_names() {
    for (const auto& s : json_.at("shapes")) {
      const auto name = s.at("name").get<std::string>();
      if (!shape_names_.insert(name).second)
        return wrong("shapes", "\"" + name + "\" stands there twice");
    }
    return {};
  }

  Status read_backend(std::size_t index) {
    const auto& j = json_.at("backends").at(index);
    BackendSpec b;
    b.where = fmt::format("backends[{}]", index);
    b.name = j.at("name");
    b.kind = j.value("kind", b.name);
    if (std::ranges::any_of(out_.backends, [&](auto& other) { return other.name == b.name; }))
      return wrong(b.where + ".name", "\"" + b.name + "\" stands there twice");
    for (const auto& s : j.value("shapes", Json::array())) {
      b.shapes.push_back(s);
      if (!shape_names_.contains(b.shapes.back()))
        return wrong(b.where + ".shapes", "there is no shape \"" + b.shapes.back() + "\"");
    }
    if (b.kind == "triton") {
      HEBE_CHECK(read_triton(j, b));
    } else if (b.kind == "launch") {
      HEBE_CHECK(read_launches(j, b));
    } else if (b.kind == "cublaslt") {
      HEBE_CHECK(only(j, b, {"sizes", "library", "heuristics", "workspace_bytes"}));
      HEBE_CHECK(read_product(j, b));
    } else if (b.kind == "openblas") {
      HEBE_CHECK(only(j, b, {"sizes", "library"}));
      HEBE_CHECK(read_product(j, b));
    } else {
      return wrong(b.where + ".kind", "there is no backend of kind \"" + b.kind + "\"",
                   "kinds: triton, launch, cublaslt, openblas");
    }
    if (out_.idle_power == IdleCharge::included && runs_on_the_host(b))
      return wrong("idle_power", "\"included\" is of boards: a host idles for all that runs on it",
                   "leave it out, or the backend \"" + b.name + "\"");
    out_.backends.push_back(std::move(b));
    return {};
  }

  // Keys of another kind's backend would be ignored in silence.
  Status only(const Json& j, const BackendSpec& b, std::set<std::string> keys) const {
    for (const char* key : {"name", "kind", "shapes"}) keys.insert(key);
    for (const auto& [key, value] : j.items())
      if (!keys.contains(key))
        return wrong(b.where + "." + key, "is not of a backend of kind \"" + b.kind + "\"");
    return {};
  }

  Status read_triton(const Json& j, BackendSpec& b) {
    HEBE_CHECK(only(
        j, b, {"case", "parameters", "options", "sizes", "space", "option_space", "constraints"}));
    if (!j.contains("case")) return wrong(b.where + ".case", "a triton backend needs a case");
    auto subject = resolve_(j.at("case"), out_.folder);
    if (!subject) {
      auto r = std::move(subject).error();
      r.what = b.where + ".case: " + r.what;
      return std::unexpected(std::move(r));
    }
    b.subject = std::move(*subject);
    b.subject.parameters = j.value("parameters", Json::object());
    b.subject.options = j.value("options", Json::object());
    HEBE_CHECK(read_sizes(j, b));
    b.space.values = j.value("space", Json::object());
    b.option_space.values = j.value("option_space", Json::object());
    for (const auto& [name, list] : b.option_space.values.items())
      if (b.space.values.contains(name))
        return wrong(b.where + ".option_space." + name, "is in the space too", "keep one of them");
    for (const auto& c : j.value("constraints", Json::array())) {
      ProductConstraint k;
      k.names = c.at("product").get<std::vector<std::string>>();
      if (c.contains("at_least")) k.at_least = c.at("at_least").get<double>();
      if (c.contains("at_most")) k.at_most = c.at("at_most").get<double>();
      b.space.constraints.push_back(std::move(k));
    }
    return {};
  }

  Status read_sizes(const Json& j, BackendSpec& b) const {
    for (const auto& d : dimensions_) b.sizes[d] = d;
    const auto renamed = j.value("sizes", Json::object());
    for (const auto& [dimension, parameter] : renamed.items()) {
      if (!b.sizes.contains(dimension))
        return wrong(b.where + ".sizes", "there is no dimension \"" + dimension + "\"");
      b.sizes[dimension] = parameter;
    }
    return {};
  }

  // A library's matrix product: which dimensions are its m, n and k, and where the library lies.
  Status read_product(const Json& j, BackendSpec& b) const {
    HEBE_CHECK(read_sizes(j, b));
    for (const char* name : {"m", "n", "k"})
      if (std::ranges::count(b.sizes, std::string(name), [](auto& s) { return s.second; }) != 1)
        return wrong(b.where + ".sizes",
                     fmt::format("no one dimension is the product's \"{}\"", name),
                     "c[m,n] = a[m,k] b[k,n]; say sizes = { YOUR_NAME = \"m\", … }");
    if (j.contains("library")) b.library = out_.folder / j.at("library").get<std::string>();
    b.heuristics = j.value("heuristics", b.heuristics);
    b.workspace_bytes = j.value("workspace_bytes", b.workspace_bytes);
    return {};
  }

  Status read_launches(const Json& j, BackendSpec& b) {
    HEBE_CHECK(only(j, b, {"launches"}));
    if (!j.contains("launches"))
      return wrong(b.where + ".launches", "a launch backend needs its launches");
    for (const auto& l : j.at("launches"))
      b.launches.push_back({l.at("name"), l.at("launch"), l.at("cubin"), l.value("ttgir", "")});
    return {};
  }

  Status read_shape(std::size_t index) {
    const auto& j = json_.at("shapes").at(index);
    const auto where = fmt::format("shapes[{}]", index);
    ShapeSpec s;
    s.shape.name = j.at("name");
    const auto& sizes = j.at("sizes");
    for (const auto& d : dimensions_) {
      if (!sizes.contains(d)) return wrong(where + ".sizes", "\"" + d + "\" is missing");
      s.shape.sizes.push_back({d, sizes.at(d).get<std::int64_t>()});
    }
    if (sizes.size() != dimensions_.size())
      return wrong(where + ".sizes", "has a size that is no dimension");
    const auto bucket = bucket_of(s.shape.sizes, out_.bucketed);
    if (!bucket) return wrong(where + ".sizes", bucket.error().what, bucket.error().next);
    if (!buckets_.insert(text_of(*bucket)).second)
      return wrong(where + ".sizes",
                   "another shape lies in the bucket " + text_of(*bucket) + ", which has one row",
                   "leave one of them out, or do not bucket that dimension");
    const auto given = j.contains("baseline") ? j.at("baseline") : json_.value("baseline", Json());
    if (given.is_null())
      return wrong(where + ".baseline", "there is no baseline to compare with",
                   "say baseline = { backend = …, configuration = { … } }, here or for all shapes");
    s.baseline = {given.at("backend"), given.at("configuration")};
    const auto hit =
        std::ranges::find_if(out_.backends, [&](auto& b) { return b.name == s.baseline.backend; });
    if (hit == out_.backends.end())
      return wrong(where + ".baseline", "there is no backend \"" + s.baseline.backend + "\"");
    for (const auto& b : out_.backends) HEBE_CHECK(check_space(b, s.shape));
    out_.shapes.push_back(std::move(s));
    return {};
  }

  Status check_space(const BackendSpec& b, const Shape& shape) const {
    if (b.kind != "triton") return {};
    const auto checked = space_of(b).check(sizes_json(shape), b.where + ".space");
    if (!checked) return wrong(checked.error().where, checked.error().what, checked.error().next);
    return {};
  }

  static ConfigurationSpace space_of(const BackendSpec& b) {
    auto both = b.space;
    both.values.update(b.option_space.values);
    return both;
  }

  Status read_faults() {
    const auto simulated = json_.value("simulated", Json::object());
    const auto faults = simulated.value("faults", Json::object());
    for (const auto& [name, list] : faults.items()) {
      auto shape = name;
      if (const auto dot = shape.rfind(".finalists"); dot != std::string::npos) shape.resize(dot);
      if (!shape_names_.contains(shape))
        return wrong("simulated.faults", "there is no shape \"" + shape + "\"",
                     "name a shape, or a shape with .finalists");
      for (const auto& text : list) {
        const auto fault = gpu::fault_from(text.get<std::string>());
        if (!fault) return wrong("simulated.faults." + name, fault.error().what);
        out_.faults[name].push_back(*fault);
      }
    }
    return {};
  }

  const Json& json_;
  const campaign::CaseResolver& resolve_;
  std::string file_;
  TuneSpec out_;
  std::vector<std::string> dimensions_;
  std::set<std::string> shape_names_, buckets_;
};

} // namespace

bool runs_on_the_host(const BackendSpec& backend) { return backend.kind == "openblas"; }

std::string_view name_of(Objective o) {
  switch (o) {
  case Objective::energy:
    return "energy";
  case Objective::edp:
    return "edp";
  case Objective::energy_under_latency:
    return "energy_under_latency";
  }
  return "energy";
}

std::string_view name_of(IdleCharge c) {
  return c == IdleCharge::included ? "included" : "excluded";
}

std::string_view name_of(Method m) {
  switch (m) {
  case Method::exhaustive:
    return "exhaustive";
  case Method::random:
    return "random";
  case Method::halving:
    return "halving";
  }
  return "halving";
}

namespace {
std::string names_of(const std::vector<ShapeSpec>& shapes) {
  std::string out;
  for (const auto& s : shapes) out += (out.empty() ? "" : ", ") + s.shape.name;
  return out;
}
} // namespace

Status keep_shapes(TuneSpec& spec, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  for (const auto& name : names)
    if (std::ranges::none_of(spec.shapes, [&](auto& s) { return s.shape.name == name; }))
      return refuse(RefusalCode::bad_argument, "--shape: there is no shape \"" + name + "\"",
                    "name one of the specification: " + names_of(spec.shapes), spec.name);
  std::erase_if(spec.shapes,
                [&](auto& s) { return std::ranges::find(names, s.shape.name) == names.end(); });
  spec.all_shapes = false;
  return {};
}

Json sizes_json(const Shape& shape) {
  Json out = Json::object();
  for (const auto& s : shape.sizes) out[s.name] = s.size;
  return out;
}

Result<TuneSpec> stored_tune_spec(const Json& json, const std::string& where) {
  HEBE_CHECK(check_schema(json, "hebe.tune.spec/1", where));
  const campaign::CaseResolver unresolved = [](const std::string& name,
                                               const fs::path&) -> Result<kernel::CaseRequest> {
    kernel::CaseRequest request;
    request.file = name;
    return request;
  };
  return Reader(json, unresolved, where).read();
}

Result<TuneSpec> read_tune_spec(const fs::path& file, const campaign::CaseResolver& resolve) {
  HEBE_TRY(const auto json, qualify::read_checked_spec(file, "hebe.tune.spec/1"));
  return Reader(json, resolve, file).read();
}

} // namespace hebe::tune
