#include "measure/plan.hpp"

#include "core/philox.hpp"
#include "core/schema.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace hebe::measure {
namespace {
constexpr std::uint64_t kOrderStream = 1, kPhaseStream = 2;
constexpr int kMostPairs = 10'000;
constexpr Seconds kLongestWindow{600}, kLongestWarmUp{3600};

Status at_least(const Plan& plan, const char* what, double asked, double minimum,
                const char* option) {
  if (!std::isfinite(asked))
    return refuse(RefusalCode::bad_argument, fmt::format("{} {} is no finite number", asked, what),
                  fmt::format("give {} a number from {} on", option, minimum), option);
  if (asked >= minimum) return {};
  return refuse(RefusalCode::below_tier_minimum,
                fmt::format("{} needs at least {} {}, {} was asked for", plan.tier.name, minimum,
                            what, asked),
                fmt::format("raise {} to {} or more{}", option, minimum,
                            plan.tier.is_evidence // smoke-v1 is the one that is not
                                ? ", or use --protocol-tier smoke-v1 to check the plumbing"
                                : ""),
                option);
}
Status at_most(const char* what, double asked, double maximum, const char* option) {
  if (asked <= maximum) return {};
  return refuse(RefusalCode::bad_argument,
                fmt::format("{} {} is over the limit of {}", asked, what, maximum),
                fmt::format("lower {}", option), option);
}
} // namespace

bool is_kind(std::string_view kind) {
  return kind == "aa" || kind == "ab" || kind == "positive_control";
}

std::vector<PairOrder> random_order(int pairs, std::uint64_t seed) {
  std::vector<PairOrder> order;
  Philox random(seed, kOrderStream);
  const bool extra = random.below(2) == 1;
  for (int i = 0; i < pairs; ++i)
    order.push_back((i % 2 == 1) != extra ? PairOrder::ba : PairOrder::ab);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  return order;
}

Status complete_plan(Plan& plan) {
  const auto& t = plan.tier;
  HEBE_CHECK(at_least(plan, "pairs", plan.pairs, t.min_pairs, "--pairs"));
  HEBE_CHECK(
      at_least(plan, "s per window", plan.window.value(), t.min_window.value(), "--batch-seconds"));
  HEBE_CHECK(at_least(plan, "s of warm-up", plan.warm_up.value(), t.min_warm_up.value(),
                      "--warm-up-seconds"));
  HEBE_CHECK(at_most("pairs", plan.pairs, kMostPairs, "--pairs"));
  HEBE_CHECK(
      at_most("s per window", plan.window.value(), kLongestWindow.value(), "--batch-seconds"));
  HEBE_CHECK(
      at_most("s of warm-up", plan.warm_up.value(), kLongestWarmUp.value(), "--warm-up-seconds"));
  for (const double margin : {plan.margins.energy_percent, plan.margins.latency_percent})
    if (!(margin > 0 && margin <= 50))
      return refuse(RefusalCode::bad_argument,
                    fmt::format("a margin of {} % cannot be tested", margin),
                    "give a margin above 0 and up to 50 %", "--energy-margin, --latency-margin");
  plan.order = random_order(plan.pairs, plan.seed);
  return {};
}

double start_phase(const Plan& plan, std::int64_t window_index) {
  return Philox(plan.seed, kPhaseStream + (static_cast<std::uint64_t>(window_index) << 8))
      .uniform();
}

Json to_json(const Plan& p) {
  Json order = Json::array();
  for (const auto o : p.order) order.push_back(o == PairOrder::ab ? "AB" : "BA");
  Json out = {
      {"schema", "hebe.run.plan/1"},
      {"kind", p.kind},
      {"subject", p.subject},
      {"arms", {{"A", {{"cubin_sha256", p.cubins[0]}}}, {"B", {{"cubin_sha256", p.cubins[1]}}}}},
      {"inputs_sha256", p.inputs},
      {"device", p.device},
      {"tier", to_json(p.tier)},
      {"pairs", p.pairs},
      {"window_s", p.window.value()},
      {"warm_up_s", p.warm_up.value()},
      {"seed", std::to_string(p.seed)},
      {"order", order},
      {"margins",
       {{"energy_percent", p.margins.energy_percent},
        {"latency_percent", p.margins.latency_percent}}},
      {"analysis", {{"resamples", p.resamples}, {"level", p.level}, {"alpha", p.alpha}}}};
  if (p.counter_by_updates) out["analysis"]["counter_edges"] = "updates";
  if (!p.subject_b.is_null()) out["subject_b"] = p.subject_b;
  if (!p.qualification.is_null()) out["qualification"] = p.qualification;
  if (!p.prediction.is_null()) out["prediction"] = p.prediction;
  return out;
}

Result<Plan> plan_from(const Json& j, std::string_view where) {
  HEBE_CHECK(check_schema(j, "hebe.run.plan/1", where));
  Plan p;
  p.kind = j.at("kind");
  p.subject = j.at("subject");
  p.subject_b = j.value("subject_b", Json());
  p.qualification = j.value("qualification", Json());
  p.prediction = j.value("prediction", Json());
  p.cubins = {j.at("arms").at("A").at("cubin_sha256"), j.at("arms").at("B").at("cubin_sha256")};
  p.inputs = j.at("inputs_sha256");
  p.device = j.at("device");
  HEBE_TRY(p.tier, tier_from(j.at("tier")));
  p.pairs = j.at("pairs");
  p.window = Seconds(j.at("window_s"));
  p.warm_up = Seconds(j.at("warm_up_s"));
  const auto seed = j.at("seed").get<std::string>();
  if (std::from_chars(seed.data(), seed.data() + seed.size(), p.seed).ec != std::errc{})
    return refuse(RefusalCode::bad_schema, "seed " + seed + " is beyond 2^64 - 1", {},
                  std::string(where));
  for (const auto& o : j.at("order")) p.order.push_back(o == "AB" ? PairOrder::ab : PairOrder::ba);
  if (p.order.size() != static_cast<std::size_t>(p.pairs))
    return refuse(RefusalCode::bad_schema,
                  fmt::format("required an order of {} pairs, found {}", p.pairs, p.order.size()),
                  {}, std::string(where));
  if ((p.kind == "aa") != p.subject_b.is_null())
    return refuse(RefusalCode::bad_schema,
                  p.kind == "aa" ? "an A/A plan has one subject, found two"
                                 : "a plan of kind " + p.kind + " has two subjects, found one",
                  {}, std::string(where));
  if ((p.kind == "positive_control") == p.prediction.is_null())
    return refuse(RefusalCode::bad_schema,
                  "a positive control has a prediction, and no other plan has one", {},
                  std::string(where));
  p.margins = {j.at("margins").at("energy_percent"), j.at("margins").at("latency_percent")};
  p.resamples = j.at("analysis").at("resamples");
  p.level = j.at("analysis").at("level");
  p.alpha = j.at("analysis").at("alpha");
  p.counter_by_updates = j.at("analysis").contains("counter_edges");
  return p;
}

} // namespace hebe::measure
