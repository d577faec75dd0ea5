// Facts about the C interface: callables as arms, what it answers, what it refuses, and that
// nothing of a caller is called after it returned.
#include "core/json.hpp"

#include <hebe/hebe.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <unistd.h>

namespace hebe {
namespace {

struct Told {
  int exit = 0;
  Json json;
  [[nodiscard]] std::string code() const {
    return json.contains("refused") ? json.at("refused").at("code").get<std::string>() : "";
  }
};

// An arm's seconds, watts and host seconds; how often it was called; when it fails.
struct Caller {
  double seconds[2] = {1e-3, 1e-3}, watts[2] = {200, 200}, host = 0;
  uint32_t times = 1;
  int calls = 0, fail_at = -1, interrupt_after = -1, asked = 0;
  std::function<void()> inside;
  void* stream = nullptr;
};

extern "C" int enqueue_some(void* user, void* stream, int arm) {
  auto& c = *static_cast<Caller*>(user);
  c.stream = stream;
  if (c.inside) c.inside();
  if (++c.calls == c.fail_at) return 7;
  return hebe_sim_enqueue(stream, &c.seconds[arm], &c.watts[arm], 1, c.times, c.host);
}
extern "C" int asked_to_stop(void* user) {
  auto& c = *static_cast<Caller*>(user);
  return c.interrupt_after >= 0 && ++c.asked > c.interrupt_after ? 1 : 0;
}

std::filesystem::path untouched() {
  return std::filesystem::temp_directory_path() / ("hebe_capi_" + std::to_string(::getpid()));
}

Told call(decltype(&hebe_measure) which, Caller& caller, Json more = Json::object()) {
  Json request{{"data_root", untouched().string()},
               {"device", "sim"},
               {"pairs", 2},
               {"window_s", 0.5},
               {"warm_up_s", 1.0}};
  request.update(more);
  char* text = nullptr;
  Told told;
  told.exit = which(request.dump().c_str(), enqueue_some, asked_to_stop, &caller, &text);
  told.json = Json::parse(text);
  hebe_free(text);
  EXPECT_FALSE(std::filesystem::exists(untouched())) << "something was written";
  return told;
}

TEST(CapiCallables, a_measurement_finds_what_the_simulated_work_costs) {
  Caller caller;
  const auto told = call(hebe_measure, caller, {{"idle_s", 2.0}, {"pairs", 4}});
  ASSERT_EQ(told.exit, 0) << told.json;
  EXPECT_NEAR(told.json.at("time_per_call_s").at("value").get<double>(), 1e-3, 2e-6);
  const auto& marginal = told.json.at("marginal_j");
  ASSERT_TRUE(marginal.contains("value")) << marginal;
  EXPECT_NEAR(marginal.at("value").get<double>(), 0.2, 0.006);
  EXPECT_GE(marginal.at("cost_nj").get<std::int64_t>(), 1);
  EXPECT_EQ(told.json.at("provenance"), "simulated");
  EXPECT_EQ(told.json.at("meter").at("status"), "usable");
  EXPECT_EQ(told.json.at("analysis").at("qualified"), false);
}

TEST(CapiCallables, calls_of_one_enqueue_are_counted_as_so_many) {
  Caller caller;
  const auto told = call(hebe_measure, caller, {{"calls_per_enqueue", {10, 10}}});
  ASSERT_EQ(told.exit, 0);
  EXPECT_NEAR(told.json.at("time_per_call_s").at("value").get<double>(), 1e-4, 1e-6);
  EXPECT_TRUE(told.json.at("marginal_j").is_null()); // no idle window was asked for, and none is 0
}

TEST(CapiCallables, a_comparison_knows_its_arms) {
  Caller caller;
  caller.watts[1] = 260;
  const auto told = call(hebe_compare, caller, {{"pairs", 6}});
  ASSERT_EQ(told.exit, 0) << told.json;
  EXPECT_EQ(told.json.at("analysis").at("kind"), "ab");
  EXPECT_EQ(told.json.at("analysis").at("verdict"), "higher");
  EXPECT_NEAR(told.json.at("analysis").at("energy").at("effect_percent").get<double>(),
              100.0 * 60 / 325, 0.6);
}

TEST(CapiCallables, work_that_cannot_be_told_from_idle_has_no_marginal_cost) {
  Caller caller;
  caller.watts[0] = 0;
  const auto told = call(hebe_measure, caller, {{"idle_s", 2.0}});
  ASSERT_EQ(told.exit, 0) << told.json; // what the board drew meanwhile is known
  const auto& marginal = told.json.at("marginal_j");
  ASSERT_TRUE(marginal.contains("refused")) << marginal;
  EXPECT_EQ(marginal.at("refused").at("code"), "gate_failed");
  EXPECT_NE(marginal.at("refused").at("what").get<std::string>().find("sim.samples"),
            std::string::npos);
}

TEST(CapiCallables, a_counter_that_is_frozen_is_refused_and_gives_no_cost) {
  Caller caller;
  const auto told = call(hebe_measure, caller, {{"idle_s", 2.0}, {"faults", {"counter_frozen@0"}}});
  EXPECT_EQ(told.exit, 3);
  EXPECT_EQ(told.code(), "meter_frozen");
}

TEST(CapiCallables, a_callable_that_fails_ends_it_and_is_not_called_again) {
  for (const int at : {1, 5, 2000}) {
    Caller caller;
    caller.fail_at = at;
    const auto told = call(hebe_measure, caller);
    EXPECT_EQ(told.exit, 2);
    EXPECT_EQ(told.code(), "case_failed");
    EXPECT_NE(told.json.dump().find("ended with 7"), std::string::npos);
    EXPECT_EQ(caller.calls, at);
  }
}

TEST(CapiCallables, an_interruption_stops_before_the_next_window) {
  Caller caller;
  caller.interrupt_after = 2;
  const auto told = call(hebe_measure, caller);
  EXPECT_EQ(told.exit, 130);
  EXPECT_EQ(told.code(), "interrupted");
}

TEST(CapiCallables, a_host_that_lets_the_gpu_wait_is_refused) {
  Caller caller;
  caller.host = 3e-3;
  const auto told = call(hebe_measure, caller);
  EXPECT_EQ(told.code(), "gate_failed");
  EXPECT_NE(told.json.dump().find("found the GPU waiting"), std::string::npos) << told.json;
}

TEST(CapiCallables, one_measurement_at_a_time) {
  Caller outer, inner;
  std::string refused;
  outer.inside = [&] {
    if (!refused.empty()) return;
    std::thread([&] { refused = call(hebe_measure, inner).code(); }).join();
    refused += " " + call(hebe_compare, inner).code(); // on the thread that measures
  };
  EXPECT_EQ(call(hebe_measure, outer).exit, 0);
  EXPECT_EQ(refused, "lease_held lease_held");
  EXPECT_EQ(inner.calls, 0);
}

TEST(CapiCallables, a_stream_is_good_for_nothing_after_its_measurement) {
  Caller caller;
  ASSERT_EQ(call(hebe_measure, caller).exit, 0);
  const double seconds = 1e-3, watts = 100;
  EXPECT_EQ(hebe_sim_enqueue(caller.stream, &seconds, &watts, 1, 1, 0), 2);
  EXPECT_EQ(hebe_sim_enqueue(nullptr, &seconds, &watts, 1, 1, 0), 2);
  EXPECT_EQ(hebe_sim_enqueue(nullptr, nullptr, nullptr, 1, 1, 0), 2);
}

TEST(CapiCallables, a_number_is_taken_as_it_is_or_refused_by_its_name) {
  Caller caller;
  const std::pair<const char*, Json> wrong[] = {{"pairs", 2.5},
                                                {"pairs", 4294967300},
                                                {"pairs", 2147483648},
                                                {"pairs", -4294967290},
                                                {"pairs", 1e30},
                                                {"pairs", Json::array({4})},
                                                {"window_s", "0.5"},
                                                {"device", 0},
                                                {"faults", "counter_frozen"},
                                                {"faults", Json::array({3})},
                                                {"energy_margin_percent", true},
                                                {"calls_per_enqueue", Json::array({-3, -3})},
                                                {"calls_per_enqueue", Json::array({1.5, 2})},
                                                {"calls_per_enqueue", Json::array({4294967297, 1})},
                                                {"calls_per_enqueue", Json::array({"1", 1})},
                                                {"calls_per_enqueue", 3}};
  for (const auto& [name, value] : wrong) {
    const auto told = call(hebe_measure, caller, {{name, value}});
    EXPECT_EQ(told.code(), "bad_argument") << name << " " << value;
    const auto text = told.json.dump();
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_EQ(text.find("json.exception"), std::string::npos) << text;
  }
  EXPECT_EQ(caller.calls, 0);
}

Told asked(decltype(&hebe_check) which, const Json& request) {
  char* text = nullptr;
  Told told;
  told.exit = which(request.dump().c_str(), &text);
  told.json = Json::parse(text);
  hebe_free(text);
  return told;
}

TEST(CapiCallables, a_request_is_checked_by_the_rules_that_measure_has_and_no_board_is_opened) {
  const Json sound{{"data_root", untouched().string()}, {"device", "auto"}};
  EXPECT_EQ(asked(hebe_check, sound).exit, 0); // with a GPU and without
  for (const Json& wrong :
       {Json{{"pairs", 1}}, Json{{"window_s", 0.1}}, Json{{"warm_up_s", -1}}, Json{{"pears", 3}},
        Json{{"faults", {"nope"}}}, Json{{"faults", {"mig"}}}, Json{{"seed", "-1"}}}) {
    Json request = sound;
    request.update(wrong);
    EXPECT_EQ(asked(hebe_check, request).exit, 2) << wrong;
    request["device"] = "sim";
    Caller caller;
    if (!wrong.contains("faults") || wrong.at("faults").at(0) == "nope") {
      EXPECT_EQ(asked(hebe_check, request).json, call(hebe_measure, caller, request).json) << wrong;
    }
  }
}

TEST(CapiCallables, a_placement_that_cannot_be_loaded_is_refused) {
  EXPECT_EQ(asked(hebe_load_placement, {{"file", "/none"}}).code(), "not_found");
  for (const Json& wrong :
       {Json::object(), Json{{"file", ""}}, Json{{"file", "/none"}, {"driver", 3}},
        Json{{"file", "/none"}, {"meters", {"nvml.power"}}}})
    EXPECT_EQ(asked(hebe_load_placement, wrong).code(), "bad_argument") << wrong;
}

TEST(CapiCallables, what_is_no_request_is_refused_by_what_is_wrong_with_it) {
  Caller caller;
  EXPECT_NE(call(hebe_measure, caller, {{"pears", 3}}).json.dump().find("pears"),
            std::string::npos);
  for (const Json& wrong :
       {Json{{"pairs", "two"}}, Json{{"window_s", true}}, Json{{"seed", "-1"}}, Json{{"tier", 3}},
        Json{{"calls_per_enqueue", {0, 1}}}, Json{{"idle_s", -1}}, Json{{"device", "sim:x"}}}) {
    const auto told = call(hebe_measure, caller, wrong);
    EXPECT_NE(told.exit, 0) << wrong;
    EXPECT_FALSE(told.code().empty()) << wrong;
  }
  for (const char* text : {"", "[]", "{", "3"}) {
    char* answer = nullptr;
    EXPECT_NE(hebe_status(text, &answer), 0);
    EXPECT_TRUE(Json::parse(answer).contains("refused"));
    hebe_free(answer);
  }
  EXPECT_EQ(hebe_status("{}", nullptr), 2); // nobody wants the answer
  EXPECT_EQ(caller.calls, 0);
}

} // namespace
} // namespace hebe
