// hebe_validity: do the intervals, tests and verdicts keep what they promise? In: options; out:
// rates over many simulated studies with a known true effect, run through the real code, held
// against the protocol's demands. Exit code 0: every demand holds; 1: one does not; 2: wrong
// options.
#include "simulated_study.hpp"

#include "core/philox.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

namespace hebe::bench {
namespace {

constexpr double kErrors = 2.6; // standard errors a rate may lie outside a demand: 0.5 % one-sided

struct Options {
  int studies = 2000;
  std::vector<std::string> scenarios;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::uint64_t seed = 1;
  bool json = false;
};

/// Events among trials.
struct Rate {
  int hits = 0, trials = 0;
  void count(bool hit) { hits += hit ? 1 : 0, ++trials; }
  [[nodiscard]] double value() const { return trials > 0 ? double(hits) / trials : 0; }
  [[nodiscard]] double error() const { return error_at(value()); }
  /// Binomial standard error were the true rate p.
  [[nodiscard]] double error_at(double p) const {
    return trials > 0 ? std::sqrt(p * (1 - p) / trials) : 0;
  }
};

struct Moments {
  double n = 0, sum = 0, squares = 0;
  void add(double x) { n += 1, sum += x, squares += x * x; }
  [[nodiscard]] double mean() const { return n > 0 ? sum / n : 0; }
  [[nodiscard]] double sd() const {
    return n > 1 ? std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1))) : 0;
  }
};

/// A rate held against [low, high], with what the Monte Carlo error of that many trials allows
/// beyond.
struct Demand {
  std::string name;
  Rate rate;
  double low, high;
  [[nodiscard]] double lower() const { return std::max(0.0, low - kErrors * rate.error_at(low)); }
  [[nodiscard]] double upper() const { return std::min(1.0, high + kErrors * rate.error_at(high)); }
  [[nodiscard]] bool holds() const {
    return rate.trials > 0 && rate.value() >= lower() && rate.value() <= upper();
  }
};

/// Sums over the studies of one scenario.
struct Tally {
  Scenario scenario;
  Rate refused, bca, bca_plain, t;         // covers the truth
  Rate difference, excludes_0, equivalent; // verdict lower or higher; BCa; TOST
  Rate sign_flip, invalid_order, invalid_trend, retried;
  Moments retries, warm_up, effect, exact, meter_error, spread, width;
  std::map<std::string, int> refusals;

  void add(const Outcome& o) {
    refused.count(o.refusal.has_value());
    if (o.refusal) {
      ++refusals[std::string(name_of(o.refusal->code))];
      return;
    }
    const auto& e = o.analysis.energy;
    const auto covers = [&](const measure::Interval& i) {
      return i.low <= scenario.truth && scenario.truth <= i.high;
    };
    using measure::Verdict;
    const auto verdict = o.analysis.verdict; // of energy and latency together
    bca.count(covers(e.bca));
    bca_plain.count(covers(e.bca_plain));
    t.count(covers(e.t));
    difference.count(verdict == Verdict::lower || verdict == Verdict::higher);
    excludes_0.count(e.bca.low > 0 || e.bca.high < 0);
    equivalent.count(e.tost.equivalent);
    sign_flip.count(e.sign_flip.p < 0.05);
    invalid_order.count(!e.order_gate);
    invalid_trend.count(!e.trend_gate);
    retried.count(o.retries > 0);
    retries.add(o.retries);
    warm_up.add(o.warm_up.value());
    effect.add(e.effect);
    exact.add(o.exact_effect);
    meter_error.add(e.effect - o.exact_effect);
    spread.add(e.spread);
    width.add(e.bca.high - e.bca.low);
  }

  [[nodiscard]] std::vector<Demand> demands() const {
    std::vector<Demand> all = {{"BCa interval covers", bca, 0.94, 0.96},
                               {"t interval covers", t, 0.94, 0.96}};
    if (scenario.effect == 0) all.push_back({"A/A false difference", difference, 0, 0.05});
    if (scenario.effect_name == "margin")
      all.push_back({"TOST false equivalence", equivalent, 0, 0.05});
    return all;
  }
};

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  const double margin = measure::log_margin(measure::Margins{}.energy_percent);
  for (const auto& c : all_conditions()) {
    all.push_back({c, "aa", 0});
    all.push_back({c, "margin", margin});
    if (c.name != "plain") continue;
    all.push_back({c, "-0.1%", std::log1p(-0.001)});
    all.push_back({c, "+1%", std::log1p(0.01)});
  }
  return all;
}

/// Calls `task(i)` for i below `count` on some threads.
void in_parallel(int count, unsigned threads, const std::function<void(int)>& task) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      for (int k = next++; k < count; k = next++) task(k);
    });
}

Tally run_studies(const Scenario& scenario, const Options& options) {
  // A stream per scenario name, so that --scenario gives the figures of a full run.
  std::uint64_t stream = 0xcbf29ce484222325; // FNV-1a
  for (const char c : scenario.name()) stream = (stream ^ std::uint64_t(c)) * 0x100000001b3;
  Philox random(options.seed, stream);
  std::vector<std::uint64_t> seeds;
  for (int i = 0; i < options.studies; ++i)
    seeds.push_back(std::uint64_t{random.next_u32()} << 32 | random.next_u32());
  std::vector<Outcome> outcomes(seeds.size());
  in_parallel(options.studies, options.threads, [&](int i) {
    auto& o = outcomes[std::size_t(i)];
    o = simulate(scenario, seeds[std::size_t(i)]);
    o.analysis.json = nullptr; // not needed again, and large
    o.analysis.conditions.clear();
  });
  Tally tally;
  tally.scenario = scenario;
  for (const auto& o : outcomes) tally.add(o);
  return tally;
}

// --- report --------------------------------------------------------------------------------

std::string rate_text(const Rate& r) {
  return r.trials > 0 ? fmt::format("{:.2f} ± {:.2f}", 100 * r.value(), 100 * r.error()) : "-";
}

void print_header() {
  fmt::print("{:<21}{:>9}{:>14}{:>14}{:>14}{:>14}{:>12}{:>14}{:>14}{:>8}{:>8}{:>9}{:>8}\n",
             "scenario", "truth %", "BCa covers", "plain BCa", "t covers", "BCa excl. 0",
             "lower/hghr", "TOST equiv.", "sign-flip", "order", "trend", "retries", "refused");
}

void print_row(const Tally& y) {
  fmt::print(
      "{:<21}{:>9.4f}{:>14}{:>14}{:>14}{:>14}{:>12.2f}{:>14}{:>14}{:>8.2f}{:>8.2f}{:>9.3f}{:>8}\n",
      y.scenario.name(), measure::percent(y.scenario.truth), rate_text(y.bca),
      rate_text(y.bca_plain), rate_text(y.t), rate_text(y.excludes_0), 100 * y.difference.value(),
      rate_text(y.equivalent), rate_text(y.sign_flip), 100 * y.invalid_order.value(),
      100 * y.invalid_trend.value(), y.retries.mean(), y.refused.hits);
  std::fflush(stdout);
}

void print_second_table(const std::vector<Tally>& tallies) {
  fmt::print("\nAgainst the board's exact energy (percent of energy per launch):\n");
  fmt::print("{:<21}{:>10}{:>22}{:>22}{:>13}{:>13}{:>11}{:>10}\n", "scenario", "truth",
             "exact - truth", "meter error: mean, sd", "pair spread", "BCa width", "warm-up s",
             "retried %");
  for (const auto& y : tallies) {
    const double n = std::sqrt(std::max(1.0, y.exact.n));
    fmt::print("{:<21}{:>10.5f}{:>22}{:>22}{:>13.5f}{:>13.5f}{:>11.1f}{:>10.2f}\n",
               y.scenario.name(), 100 * y.scenario.truth,
               fmt::format("{:+.5f} ± {:.5f}", 100 * (y.exact.mean() - y.scenario.truth),
                           100 * y.exact.sd() / n),
               fmt::format("{:+.5f}, {:.5f}", 100 * y.meter_error.mean(), 100 * y.meter_error.sd()),
               100 * y.spread.mean(), 100 * y.width.mean(), y.warm_up.mean(),
               100 * y.retried.value());
  }
  for (const auto& y : tallies)
    for (const auto& [code, count] : y.refusals)
      fmt::print("{}: {} refused as {}\n", y.scenario.name(), count, code);
}

void print_demands(const std::vector<Tally>& tallies) {
  fmt::print("\nDemands (percent; allowed are {} binomial standard errors beyond):\n", kErrors);
  for (const auto& y : tallies)
    for (const auto& d : y.demands())
      fmt::print("{}  {:<21}{:<24}{:>14}  demanded {:g} to {:g}, allowed {:.2f} to {:.2f}\n",
                 d.holds() ? "holds" : "FAILS", y.scenario.name(), d.name, rate_text(d.rate),
                 100 * d.low, 100 * d.high, 100 * d.lower(), 100 * d.upper());
}

Json rate_json(const Rate& r) {
  return {
      {"ratio", r.value()}, {"standard_error", r.error()}, {"hits", r.hits}, {"trials", r.trials}};
}
Json moments_json(const Moments& m) { return {{"mean", m.mean()}, {"sd", m.sd()}}; }

Json tally_json(const Tally& y) {
  Json demands = Json::array();
  for (const auto& d : y.demands())
    demands.push_back({{"name", d.name},
                       {"rate", rate_json(d.rate)},
                       {"demanded", {d.low, d.high}},
                       {"allowed", {d.lower(), d.upper()}},
                       {"holds", d.holds()}});
  return {{"scenario", y.scenario.name()},
          {"condition", y.scenario.condition.text},
          {"true_log_ratio", y.scenario.truth},
          {"extra_operations", y.scenario.extra_operations},
          {"refused", rate_json(y.refused)},
          {"refusals", y.refusals},
          {"covers",
           {{"bca", rate_json(y.bca)},
            {"bca_uncorrected", rate_json(y.bca_plain)},
            {"t", rate_json(y.t)}}},
          {"verdict_lower_or_higher", rate_json(y.difference)},
          {"bca_excludes_0", rate_json(y.excludes_0)},
          {"tost_equivalent", rate_json(y.equivalent)},
          {"sign_flip_p_below_0.05", rate_json(y.sign_flip)},
          {"invalid_by_order", rate_json(y.invalid_order)},
          {"invalid_by_trend", rate_json(y.invalid_trend)},
          {"retries", moments_json(y.retries)},
          {"warm_up_s", moments_json(y.warm_up)},
          {"estimated_log_ratio", moments_json(y.effect)},
          {"exact_log_ratio", moments_json(y.exact)},
          {"estimated_minus_exact_log_ratio", moments_json(y.meter_error)},
          {"pair_spread_log_ratio", moments_json(y.spread)},
          {"demands", demands}};
}

// --- the program ---------------------------------------------------------------------------

bool is_named(const Scenario& s, const std::string& name) {
  return name == s.name() || name == s.condition.name;
}

/// Those asked for, in the order of the list; empty if a name is unknown.
std::vector<Scenario> chosen_scenarios(const std::vector<std::string>& names) {
  const auto all = all_scenarios();
  for (const auto& n : names)
    if (std::ranges::none_of(all, [&](const Scenario& s) { return is_named(s, n); })) {
      fmt::print(stderr, "hebe_validity: no scenario \"{}\"; see --help\n", n);
      return {};
    }
  if (names.empty()) return all;
  std::vector<Scenario> chosen;
  for (const auto& s : all)
    if (std::ranges::any_of(names, [&](const std::string& n) { return is_named(s, n); }))
      chosen.push_back(s);
  return chosen;
}

int run(const Options& options) {
  const auto began = std::chrono::steady_clock::now();
  const auto scenarios = chosen_scenarios(options.scenarios);
  if (scenarios.empty()) return 2;
  std::vector<Result<Scenario>> prepared(scenarios.size());
  in_parallel(int(scenarios.size()), options.threads, [&](int i) {
    prepared[std::size_t(i)] = with_operations(scenarios[std::size_t(i)]);
  });

  if (!options.json) {
    fmt::print("{} simulated studies per scenario, seed {}, {} threads; confirmation-v1, 12 pairs "
               "of 5 s windows\n\n",
               options.studies, options.seed, options.threads);
    print_header();
  }
  std::vector<Tally> tallies;
  bool hold = true;
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    const auto& s = prepared[i];
    if (!s) {
      fmt::print(stderr, "{}: no truth: {}\n", scenarios[i].name(), to_text(s.error()));
      hold = false;
      continue;
    }
    tallies.push_back(run_studies(*s, options));
    if (!options.json) print_row(tallies.back());
  }
  for (const auto& y : tallies)
    for (const auto& d : y.demands()) hold = hold && d.holds();
  if (options.json) {
    Json list = Json::array();
    for (const auto& y : tallies) list.push_back(tally_json(y));
    fmt::print("{}\n", Json{{"studies", options.studies},
                            {"seed", std::to_string(options.seed)},
                            {"standard_errors_allowed", kErrors},
                            {"scenarios", list},
                            {"demands_hold", hold}}
                           .dump(1));
  } else {
    print_second_table(tallies);
    print_demands(tallies);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    fmt::print("\n{} in {:.1f} s\n", hold ? "every demand holds" : "A DEMAND FAILS", seconds);
  }
  return hold ? 0 : 1;
}

} // namespace
} // namespace hebe::bench

int main(int argc, char** argv) {
  hebe::bench::Options o;
  CLI::App app{"Runs simulated studies with known effects through Hebe's own code and checks "
               "coverage and error rates"};
  app.add_option("--studies", o.studies, "per scenario")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  std::string names;
  for (const auto& s : hebe::bench::all_scenarios())
    names += (names.empty() ? "" : ", ") + s.name();
  app.add_option("--scenario", o.scenarios,
                 "only these (repeatable): " + names + "; or a whole condition, e.g. plain");
  app.add_option("--threads", o.threads, "the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1024U));
  app.add_option("--seed", o.seed, "equal seeds give equal figures")->capture_default_str();
  app.add_flag("--json", o.json, "one JSON document instead of tables");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return hebe::bench::run(o);
}
