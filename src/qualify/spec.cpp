#include "qualify/spec.hpp"

#include "core/schema.hpp"
#include "core/spec_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::qualify {
namespace fs = std::filesystem;
namespace {

class Reader {
public:
  Reader(const Json& json, const CaseResolver& resolve, const fs::path& file)
      : json_(json), resolve_(resolve), base_(fs::absolute(file).parent_path()),
        where_(file.string()) {}

  Result<QualificationSpec> read() {
    QualificationSpec out;
    out.json = json_;
    out.name = json_.at("name");
    out.description = json_.value("description", "");
    out.launches = json_.value("launches", out.launches);
    const auto& subject = json_.at("subject");
    HEBE_TRY(subject_, resolve_(subject.at("case"), base_));
    subject_.parameters = subject.value("parameters", Json::object());
    subject_.options = subject.value("options", Json::object());
    for (const auto& j : json_.at("points")) {
      HEBE_TRY(auto point, point_from(j));
      out.points.push_back(std::move(point));
    }
    if (std::ranges::count(out.points, true, &Point::primary) == 0)
      out.points.front().primary = true;
    if (std::ranges::count(out.points, true, &Point::primary) > 1)
      return wrong("more than one point is primary", "the contrast is decided at one point");
    for (const auto& j : json_.at("candidates")) {
      HEBE_TRY(auto candidate, candidate_from(j));
      out.candidates.push_back(std::move(candidate));
    }
    if (json_.contains("contrast") && json_.contains("contrasts"))
      return wrong("both contrast and contrasts are there", "list all of them in contrasts");
    if (json_.contains("contrast")) HEBE_CHECK(add_contrast(json_.at("contrast"), out));
    for (const auto& j : json_.value("contrasts", Json::array())) HEBE_CHECK(add_contrast(j, out));
    return out;
  }

private:
  std::unexpected<Refusal> wrong(std::string what, std::string next = {}) const {
    return refuse(RefusalCode::bad_spec, std::move(what), std::move(next), where_);
  }

  Status add_contrast(const Json& j, QualificationSpec& out) const {
    const ContrastNames names{j.at("a"), j.at("b")};
    for (const auto& name : {names.a, names.b})
      if (name != "baseline" && !candidates_.contains(name))
        return wrong("contrast: there is no candidate \"" + name + "\"",
                     "name a candidate, or \"baseline\"");
    if (names.a == names.b)
      return wrong("contrast: both arms are \"" + names.a + "\"", "a contrast is of two kernels");
    out.contrasts.push_back(names);
    return {};
  }

  Result<Point> point_from(const Json& j) {
    Point point;
    point.name = j.at("name");
    if (!points_.insert(point.name).second)
      return wrong("the point \"" + point.name + "\" is there twice");
    point.primary = j.value("primary", false);
    point.subject = subject_;
    point.subject.parameters.update(j.value("parameters", Json::object()));
    point.subject.options.update(j.value("options", Json::object()));
    if (j.contains("interpreter_parameters")) {
      point.interpreted = point.subject;
      point.interpreted->parameters.update(j.at("interpreter_parameters"));
    }
    return point;
  }

  Result<Candidate> candidate_from(const Json& j) {
    Candidate out;
    out.name = j.at("name");
    const auto at = fmt::format("{}: candidate \"{}\"", where_, out.name);
    if (out.name == "baseline")
      return wrong("a candidate is named \"baseline\", which is the case as it is");
    if (!candidates_.insert(out.name).second)
      return wrong("the candidate \"" + out.name + "\" is there twice");
    if (j.contains("passes") + j.contains("ttgir") + j.contains("case") != 1)
      return wrong("candidate \"" + out.name + "\" needs passes, or ttgir, or case: one of them");
    out.why = j.value("why", "");
    if (j.contains("passes")) {
      HEBE_TRY(out.passes, rewrite::requests_from(j.at("passes"), at));
    } else if (j.contains("ttgir")) {
      out.ttgir = (base_ / j.at("ttgir").get<std::string>()).lexically_normal();
      std::error_code ec;
      if (!fs::is_regular_file(*out.ttgir, ec))
        return wrong("candidate \"" + out.name + "\": there is no file " + out.ttgir->string());
    } else {
      HEBE_TRY(out.other_case, resolve_(j.at("case"), base_));
      out.other_case->parameters = j.value("parameters", Json::object());
      out.other_case->options = j.value("options", Json::object());
    }
    if (!out.other_case && (j.contains("parameters") || j.contains("options")))
      return wrong("candidate \"" + out.name + "\": parameters and options are another case's",
                   "a rewritten kernel is launched as the baseline is");
    out.equal_bits = j.value("outputs", out.other_case ? "within tolerance" : "equal bits") ==
                     std::string("equal bits");
    out.fewer_loads_of = j.value("fewer_loads_of", std::vector<std::string>{});
    out.max_local_bytes = j.value("max_local_bytes", std::uint64_t{0});
    out.distinct =
        j.value("distinct", std::vector<std::string>{"ttgir", "llir", "ptx", "sass", "cubin"});
    for (const auto& name : j.value("points", std::vector<std::string>{})) {
      if (!points_.contains(name))
        return wrong(fmt::format("candidate \"{}\": there is no point \"{}\"", out.name, name));
      out.points.insert(name);
    }
    return out;
  }

  const Json& json_;
  const CaseResolver& resolve_;
  fs::path base_;
  std::string where_;
  kernel::CaseRequest subject_;
  std::set<std::string> points_, candidates_;
};

} // namespace

Result<Json> read_checked_spec(const fs::path& file, std::string_view schema) {
  HEBE_TRY(const auto json, read_spec_file(file));
  if (auto ok = check_schema(json, schema, file.string()); !ok) {
    ok.error().code = RefusalCode::bad_spec; // somebody wrote it, no Hebe did
    ok.error().next = std::string(schema.find("tune") != std::string_view::npos
                                      ? "docs/tuning.md says"
                                      : "docs/qualification.md and docs/studies.md say") +
                      " what a specification has; studies/ has examples";
    return std::unexpected(std::move(ok).error());
  }
  if (auto storable = canonical_json(json); !storable) { // it stands in the record
    storable.error().code = RefusalCode::bad_spec;
    storable.error().where = file.string();
    return std::unexpected(std::move(storable).error());
  }
  return json;
}

Result<QualificationSpec> read_qualification_spec(const fs::path& file,
                                                  const CaseResolver& resolve) {
  HEBE_TRY(const auto json, read_checked_spec(file, "hebe.qualification.spec/1"));
  return Reader(json, resolve, file).read();
}

} // namespace hebe::qualify
