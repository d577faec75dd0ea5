#include "tune/stored_host.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hebe::tune {
namespace {

std::unexpected<Refusal> host_differs(std::string what, std::string where) {
  return refuse(RefusalCode::analysis_mismatch, std::move(what), "restore the record from a copy",
                std::move(where));
}

// From a cost's readings alone.
Result<HostContender> host_again(std::size_t candidate, const Json& cost, const HostWindows& due,
                                 const StoredTune& tune, const std::string& where) {
  if (cost.is_null() || !cost.contains("readings"))
    return host_differs("host code that was ready has no readings of the host's meter", where);
  auto readings = host_readings_from(cost.at("readings"));
  HEBE_CHECK(check_host_readings(readings, due, where + ".readings"));
  auto meter = host_identity(readings.counters, tune.place.provenance);
  HEBE_TRY(auto seen, host_cost(std::move(readings), meter, tune.spec.objective, {}));
  return host_contender(candidate, std::move(seen), std::move(meter));
}

} // namespace

bool is_host_code(const Json& candidate, const TuneSpec& spec) {
  const auto hit = std::ranges::find_if(spec.backends,
                                        [&](auto& b) { return candidate.at("backend") == b.name; });
  return hit != spec.backends.end() && runs_on_the_host(*hit);
}

Result<std::vector<HostContender>> hosts_again(const Json& shape, const StoredTune& tune) {
  std::vector<HostContender> out;
  const auto& all = shape.at("candidates");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_host_code(all[i], tune.spec) || !was_ready(all[i])) continue;
    HEBE_TRY(auto one, host_again(i, all[i].at("cost"), searching_windows(tune.spec), tune,
                                  fmt::format("{}: candidates[{}].cost",
                                              shape.at("name").get<std::string>(), i)));
    out.push_back(std::move(one));
  }
  return out;
}

Status weigh_again(Confirmed& confirmed, const Json& shape, const SearchedShape& searched,
                   const StoredTune& tune) {
  const auto where = shape.at("name").get<std::string>() + ": finalists.host";
  const auto& finalists = shape.at("finalists");
  const auto measure = [&](std::size_t candidate) -> Result<HostContender> {
    if (!finalists.contains("host"))
      return host_differs(fmt::format("not recorded; the choice needs candidate {}, which is host "
                                      "code, measured again",
                                      candidate),
                          where);
    const auto& host = finalists.at("host");
    if (host.at("candidate") != candidate)
      return host_differs(fmt::format("recorded candidate {}; the choice needs candidate {} "
                                      "measured again",
                                      host.at("candidate").dump(), candidate),
                          where);
    return host_again(candidate, host.at("cost"), confirming_windows(tune.spec), tune,
                      where + ".cost");
  };
  HEBE_CHECK(weigh_best_host(confirmed, searched, tune.spec.objective, measure, {}));
  if (finalists.contains("host") && !confirmed.weighed)
    return host_differs("recorded host code measured again; the choice needs none", where);
  return {};
}

} // namespace hebe::tune
