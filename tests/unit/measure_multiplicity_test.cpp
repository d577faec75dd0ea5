// Facts about Holm's adjustment, against statsmodels.
#include "measure/multiplicity.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "../data/stats/reference.hpp"

namespace hebe::measure {
namespace {

TEST(holm, agrees_with_statsmodels_in_input_order) {
  for (const auto& expected : test::reference().at("holm")) {
    SCOPED_TRACE(expected.dump());
    const auto adjusted = expected.at("adjusted").get<std::vector<double>>();
    const auto got = holm(expected.at("p").get<std::vector<double>>()).value();
    ASSERT_EQ(got.size(), adjusted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], adjusted[i], 1e-15);
  }
}

TEST(holm, of_one_contrast_changes_nothing_and_of_none_is_none) {
  EXPECT_EQ(holm(std::vector{0.03}).value(), std::vector{0.03});
  EXPECT_TRUE(holm({}).value().empty());
}

TEST(holm, keeps_the_order_of_p_values_and_stays_at_most_one) {
  const auto got = holm(std::vector{0.02, 0.021, 0.9, 0.8}).value();
  EXPECT_EQ(got, (std::vector{0.08, 0.08, 1.0, 1.0}));
}

TEST(holm, refuses_what_is_no_probability) {
  for (const double bad : {-0.01, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    const auto got = holm(std::vector{0.5, bad});
    ASSERT_FALSE(got) << bad;
    EXPECT_EQ(got.error().code, RefusalCode::bad_argument);
    EXPECT_NE(got.error().what.find("p value 1"), std::string::npos);
  }
}

} // namespace
} // namespace hebe::measure
