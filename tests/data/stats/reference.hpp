// Reads reference.json for the tests of hebe::measure. In: HEBE_TEST_DATA; out: scipy's answers.
// Invariant: a missing or broken file ends the test program, it does not skip a test.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hebe::test {

inline const nlohmann::json& reference() {
  static const nlohmann::json json = [] {
    std::ifstream file(std::string(HEBE_TEST_DATA) + "/stats/reference.json");
    return nlohmann::json::parse(file);
  }();
  return json;
}

inline std::vector<double> values_of(const nlohmann::json& sample) {
  return sample.at("x").get<std::vector<double>>();
}

} // namespace hebe::test
