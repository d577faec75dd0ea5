#include "tune/configuration_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hebe::tune {
namespace {

using testing::HasSubstr;

TEST(ConfigurationSpace, is_the_product_of_its_lists_in_a_fixed_order) {
  ConfigurationSpace s;
  s.values = {{"b", {1, 2}}, {"a", {"x", "y"}}};
  const auto all = s.configurations(Json::object(), "space");
  ASSERT_TRUE(all) << to_text(all.error());
  ASSERT_EQ(all->size(), 4U);
  EXPECT_EQ(all->front(), (Json{{"a", "x"}, {"b", 1}}));
  EXPECT_EQ((*all)[1], (Json{{"a", "x"}, {"b", 2}}));
}

TEST(ConfigurationSpace, without_lists_has_one_configuration) {
  const auto all = ConfigurationSpace{}.configurations(Json::object(), "space");
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, std::vector<Json>{Json::object()});
}

TEST(ConfigurationSpace, constraints_bound_products_also_with_sizes) {
  ConfigurationSpace s;
  s.values = {{"m", {16, 32, 64}}, {"n", {16, 32, 64}}};
  s.constraints = {{{"m", "n"}, 512.0, 1024.0}};
  EXPECT_EQ(s.configurations(Json::object(), "space")->size(), 5U);
  s.constraints = {{{"m", "rows"}, {}, 64.0}};
  EXPECT_EQ(s.configurations(Json{{"rows", 4}}, "space")->size(), 3U);
}

TEST(ConfigurationSpace, a_billion_is_refused_before_it_is_made) {
  ConfigurationSpace s;
  Json list = Json::array();
  for (int i = 0; i < 1000; ++i) list.push_back(i);
  s.values = {{"a", list}, {"b", list}, {"c", list}};
  const auto all = s.configurations(Json::object(), "backends[0].space");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, RefusalCode::bad_spec);
  EXPECT_EQ(all.error().where, "backends[0].space");
  EXPECT_THAT(all.error().what, HasSubstr("100000"));
}

TEST(ConfigurationSpace, a_product_that_overflows_is_refused) {
  ConfigurationSpace s;
  Json list = Json::array();
  for (int i = 0; i < 1000; ++i) list.push_back(i);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) s.values[name] = list;
  EXPECT_FALSE(s.check(Json::object(), "space"));
}

TEST(ConfigurationSpace, what_cannot_be_meant_is_refused_by_name) {
  const auto refused = [](Json values, std::vector<ProductConstraint> constraints, Json also) {
    ConfigurationSpace s{std::move(values), std::move(constraints)};
    const auto all = s.configurations(also, "space");
    return all ? std::string("accepted") : all.error().what + " " + all.error().where;
  };
  const Json none = Json::object();
  EXPECT_THAT(refused({{"a", {1, 1}}}, {}, none), HasSubstr("twice space.a"));
  EXPECT_THAT(refused({{"a", Json::array()}}, {}, none), HasSubstr("space.a"));
  EXPECT_THAT(refused({{"a", {1}}}, {}, Json{{"a", 2}}), HasSubstr("set elsewhere"));
  EXPECT_THAT(refused({{"a", {1}}}, {{{"z"}, 1.0, {}}}, none), HasSubstr("\"z\""));
  EXPECT_THAT(refused({{"a", {"x"}}}, {{{"a"}, 1.0, {}}}, none), HasSubstr("no number"));
  EXPECT_THAT(refused({{"a", {1, 2}}}, {{{"a"}, 100.0, {}}}, none), HasSubstr("no configuration"));
}

} // namespace
} // namespace hebe::tune
