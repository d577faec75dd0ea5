// Facts about schemas: what was required, what was found, and where.
#include "core/schema.hpp"

#include <gtest/gtest.h>

namespace hebe {
namespace {

const Json kManifest = {
    {"schema", "hebe.run.manifest/1"},
    {"plan_id", std::string(64, 'a')},
    {"provenance", "simulated"},
    {"files", {{{"path", "plan.json"}, {"bytes", 3}, {"sha256", std::string(64, 'b')}}}}};

TEST(Schema, a_value_that_follows_passes) {
  EXPECT_TRUE(check_schema(kManifest, "hebe.run.manifest/1", "manifest.json"));
}

TEST(Schema, another_version_or_none_is_named_beside_the_required_one) {
  const std::pair<Json, const char*> table[] = {
      {{{"schema", "hebe.run.manifest/2"}},
       "required schema \"hebe.run.manifest/1\", found \"hebe.run.manifest/2\""},
      {{{"schema", "hebe.run.plan/1"}},
       "required schema \"hebe.run.manifest/1\", found \"hebe.run.plan/1\""},
      {{{"schema", 1}}, "required schema \"hebe.run.manifest/1\", found none"},
      {Json::object(), "required schema \"hebe.run.manifest/1\", found none"},
      {Json::array(), "required an object, found array"},
      {nullptr, "required an object, found null"},
  };
  for (const auto& [value, what] : table) {
    const auto status = check_schema(value, "hebe.run.manifest/1", "manifest.json");
    ASSERT_FALSE(status) << value;
    EXPECT_EQ(status.error().code, RefusalCode::bad_schema);
    EXPECT_EQ(status.error().what, what);
    EXPECT_EQ(status.error().where, "manifest.json");
  }
}

TEST(Schema, the_member_that_does_not_follow_is_named) {
  const std::tuple<const char*, Json, const char*> table[] = {
      {"/plan_id", "short", "[plan_id]"},   {"/provenance", "guessed", "[provenance]"},
      {"/files", Json::array(), "[files]"}, {"/files/0/path", "../../etc/passwd", "[path]"},
      {"/files/0/bytes", -1, "[bytes]"},    {"/files/0/sha256", nullptr, "[sha256]"},
  };
  for (const auto& [pointer, value, name] : table) {
    auto changed = kManifest;
    changed[Json::json_pointer(pointer)] = value;
    const auto status = check_schema(changed, "hebe.run.manifest/1", "manifest.json");
    ASSERT_FALSE(status) << pointer;
    EXPECT_NE(status.error().what.find(name), std::string::npos) << status.error().what;
  }
}

TEST(Schema, a_missing_member_is_named) {
  for (const char* member : {"plan_id", "provenance", "files"}) {
    auto changed = kManifest;
    changed.erase(member);
    const auto status = check_schema(changed, "hebe.run.manifest/1", "manifest.json");
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().what.find(member), std::string::npos) << status.error().what;
  }
}

TEST(Schema, a_schema_that_is_not_embedded_is_a_bug_of_ours) {
  EXPECT_EQ(check_schema({{"schema", "hebe.none/1"}}, "hebe.none/1", "x").error().code,
            RefusalCode::internal);
}

} // namespace
} // namespace hebe
