#include "qualify/recon_spec.hpp"

namespace hebe::qualify {

Result<ReconSpec> read_recon_spec(const std::filesystem::path& file, const CaseResolver& resolve) {
  HEBE_TRY(const auto json, read_checked_spec(file, "hebe.recon.spec/1"));
  ReconSpec out;
  out.json = json;
  out.name = json.at("name");
  out.candidates = json.value("candidates", out.candidates);
  out.launches = json.value("launches", out.launches);
  const auto base = std::filesystem::absolute(file).parent_path();
  std::set<std::string> names;
  for (const auto& j : json.at("cases")) {
    ReconCase row;
    row.group = j.value("group", "own");
    row.point.name = j.at("name");
    if (!names.insert(row.point.name).second)
      return refuse(RefusalCode::bad_spec, "the case \"" + row.point.name + "\" is there twice", {},
                    file.string());
    HEBE_TRY(row.point.subject, resolve(j.at("case"), base));
    row.point.subject.parameters = j.value("parameters", Json::object());
    row.point.subject.options = j.value("options", Json::object());
    if (j.contains("interpreter_parameters")) {
      row.point.interpreted = row.point.subject;
      row.point.interpreted->parameters.update(j.at("interpreter_parameters"));
    }
    out.cases.push_back(std::move(row));
  }
  return out;
}

} // namespace hebe::qualify
