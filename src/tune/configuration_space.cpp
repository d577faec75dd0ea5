#include "tune/configuration_space.hpp"

#include <fmt/format.h>

#include <set>

namespace hebe::tune {
namespace {

std::unexpected<Refusal> wrong(std::string what, std::string next, const std::string& where) {
  return refuse(RefusalCode::bad_spec, std::move(what), std::move(next), where);
}

bool allowed(const ProductConstraint& constraint, const Json& configuration, const Json& also) {
  double product = 1;
  for (const auto& name : constraint.names)
    product *=
        (configuration.contains(name) ? configuration.at(name) : also.at(name)).get<double>();
  return (!constraint.at_least || product >= *constraint.at_least) &&
         (!constraint.at_most || product <= *constraint.at_most);
}

} // namespace

Status ConfigurationSpace::check(const Json& also, const std::string& where) const {
  std::size_t product = 1;
  for (const auto& [name, list] : values.items()) {
    const auto place = where + "." + name;
    if (list.empty()) return wrong("an empty list allows no configuration", {}, place);
    for (std::set<std::string> seen; const auto& value : list)
      if (!seen.insert(value.dump()).second)
        return wrong(fmt::format("{} stands there twice", value.dump()), "say it once", place);
    if (also.contains(name))
      return wrong(fmt::format("\"{}\" is set elsewhere", name), "say it in one place", place);
    if (list.size() > kMostConfigurations / product)
      return wrong(fmt::format("more than {} configurations are more than can be searched",
                               kMostConfigurations),
                   "shorten the lists", where);
    product *= list.size();
  }
  for (const auto& constraint : constraints)
    for (const auto& name : constraint.names) {
      const bool in_space = values.contains(name);
      if (!in_space && !also.contains(name))
        return wrong(fmt::format("a constraint names \"{}\", which is in no list", name),
                     "name a list of the space, or a dimension", where);
      const auto number = [](const Json& v) { return v.is_number(); };
      if (in_space ? !std::ranges::all_of(values.at(name), number) : !number(also.at(name)))
        return wrong(fmt::format("a constraint multiplies \"{}\", which is no number", name), {},
                     where);
    }
  return {};
}

Result<std::vector<Json>> ConfigurationSpace::configurations(const Json& also,
                                                             const std::string& where) const {
  HEBE_CHECK(check(also, where));
  std::vector<Json> all = {Json::object()};
  for (const auto& [name, list] : values.items()) {
    std::vector<Json> longer;
    longer.reserve(all.size() * list.size());
    for (const auto& one : all)
      for (const auto& value : list) {
        longer.push_back(one);
        longer.back()[name] = value;
      }
    all = std::move(longer);
  }
  std::erase_if(all, [&](const Json& c) {
    return !std::ranges::all_of(constraints, [&](auto& k) { return allowed(k, c, also); });
  });
  if (all.empty())
    return wrong("no configuration of the space is allowed by its constraints", "loosen them",
                 where);
  return all;
}

} // namespace hebe::tune
