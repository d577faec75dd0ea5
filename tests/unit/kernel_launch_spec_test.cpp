// Facts about launch specs: what is refused, and how parameters lie in the launch buffer.
#include "kernel/launch_spec.hpp"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "../data/support/launch_json.hpp"

namespace hebe::kernel {
namespace {

LaunchSpec spec_with(Json arguments) {
  auto json = test::vector_launch();
  json["arguments"] = std::move(arguments);
  return LaunchSpec::from_json(json, "test").value();
}

Json scalar(const char* dtype, Json value) {
  return {{"name", "s"}, {"kind", "scalar"}, {"dtype", dtype}, {"value", std::move(value)}};
}

template <class T> T as(const PackedParameter& p) {
  T value;
  std::memcpy(&value, p.value.data(), sizeof value);
  return value;
}

TEST(LaunchSpec, is_read_completely) {
  const auto s = LaunchSpec::from_json(test::vector_launch(4096, 3e6), "test").value();
  EXPECT_EQ(s.name, "vector_add");
  EXPECT_EQ(s.entry, "add_kernel");
  EXPECT_EQ(s.arch, 90);
  EXPECT_EQ(s.grid, (std::array<std::uint32_t, 3>{4, 1, 1}));
  EXPECT_EQ(s.programs(), 4U);
  ASSERT_EQ(s.arguments.size(), 4U);
  EXPECT_EQ(s.arguments[0].role, Role::in);
  EXPECT_EQ(s.arguments[2].role, Role::out);
  EXPECT_FALSE(s.arguments[2].init);
  EXPECT_EQ(s.arguments[0].bytes().count, 4096U * 4);
  EXPECT_EQ(s.arguments[1].init->seed, 2U);
  EXPECT_TRUE(s.has_reference);
  EXPECT_EQ(s.work->read.count + s.work->written.count, 3'000'000U);
  EXPECT_EQ(s.json, test::vector_launch(4096, 3e6)); // kept for records
}

TEST(LaunchSpec, what_does_not_follow_the_schema_is_refused_where_it_is) {
  const std::tuple<const char*, Json, const char*> table[] = {
      {"/grid", {1, 1}, "[grid]"},
      {"/grid/0", -1, "[grid]"},
      {"/grid/0", 1.5, "[grid]"},
      {"/num_warps", 0, "[num_warps]"},
      {"/num_warps", 64, "[num_warps]"},
      {"/target/backend", "hip", "[backend]"},
      {"/target/warp_size", 64, "[warp_size]"},
      {"/entry", "", "[entry]"},
      {"/tolerance/atol", -1e-9, "[atol]"},
      {"/tolerance/rtol", "nan", "[rtol]"},
      {"/arguments/0/dtype", "float", "[arguments]"},
      {"/arguments/0/shape", Json::array(), "[arguments]"},
      {"/arguments/0/shape/0", 0, "[arguments]"},
      {"/arguments/0/role", "output", "[arguments]"},
      {"/arguments/0/init", {{"kind", "random"}}, "[arguments]"},
      {"/arguments/0/init", {{"kind", "uniform"}, {"low", 0}, {"high", 1}}, "[arguments]"},
      {"/work/bytes_read", -1, "[work]"},
      {"/work/operations/fp32_add", "many", "[work]"},
      {"/global_scratch/align", 0, "[align]"},
  };
  for (const auto& [pointer, value, name] : table) {
    auto json = test::vector_launch();
    json[Json::json_pointer(pointer)] = value;
    const auto s = LaunchSpec::from_json(json, "launch.json");
    ASSERT_FALSE(s) << pointer << " = " << value;
    EXPECT_EQ(s.error().code, RefusalCode::bad_schema) << pointer;
    EXPECT_EQ(s.error().where, "launch.json");
    EXPECT_NE(s.error().what.find(name), std::string::npos) << s.error().what;
  }
}

TEST(LaunchSpec, another_version_is_refused_by_both_names) {
  auto json = test::vector_launch();
  json["schema"] = "hebe.launch/2";
  EXPECT_EQ(LaunchSpec::from_json(json, "x").error().what,
            "required schema \"hebe.launch/1\", found \"hebe.launch/2\"");
}

TEST(LaunchSpec, a_grid_with_a_zero_is_refused_in_words) {
  for (int axis = 0; axis < 3; ++axis) {
    auto json = test::vector_launch();
    json["grid"][static_cast<std::size_t>(axis)] = 0;
    const auto s = LaunchSpec::from_json(json, "launch.json");
    ASSERT_FALSE(s);
    EXPECT_EQ(s.error().code, RefusalCode::bad_spec);
    EXPECT_EQ(s.error().what, "the grid has a zero dimension: nothing would be launched");
  }
}

TEST(LaunchSpec, a_buffer_that_is_read_needs_an_initialiser) {
  for (const char* role : {"in", "inout"}) {
    auto json = test::vector_launch();
    json["arguments"][0]["init"] = nullptr;
    json["arguments"][0]["role"] = role;
    const auto s = LaunchSpec::from_json(json, "launch.json");
    ASSERT_FALSE(s);
    EXPECT_EQ(s.error().what, "buffer \"x_ptr\" is read but has no initialiser");
    EXPECT_FALSE(s.error().next.empty());
  }
}

TEST(LaunchSpec, seeds_take_all_64_bits) {
  for (const char* seed :
       {"9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615"}) {
    auto json = test::vector_launch();
    json["arguments"][0]["init"]["seed"] = seed;
    const auto s = LaunchSpec::from_json(json, "launch.json");
    ASSERT_TRUE(s) << seed << ": " << s.error().what;
    EXPECT_EQ(std::to_string(s->arguments[0].init->seed), seed);
  }
  for (const Json& seed :
       {Json(-1), Json("-1"), Json(0.5), Json("18446744073709551616"), Json(nullptr)}) {
    auto json = test::vector_launch();
    json["arguments"][0]["init"]["seed"] = seed;
    EXPECT_FALSE(LaunchSpec::from_json(json, "launch.json")) << seed;
  }
}

TEST(LaunchSpec, declared_work_may_be_absent) {
  auto json = test::vector_launch();
  json["work"] = nullptr;
  EXPECT_FALSE(LaunchSpec::from_json(json, "x").value().work);
}

TEST(PackParameters, are_the_arguments_in_order_and_then_two_scratch_pointers) {
  const auto s = LaunchSpec::from_json(test::vector_launch(1000), "x").value();
  const auto p = pack_parameters(s, {0x1000, 0x2000, 0x3000}, 0x4000, 0x5000).value();
  ASSERT_EQ(p.size(), 6U);
  const std::tuple<const char*, std::size_t, std::uint64_t> table[] = {
      {"x_ptr", 8, 0x1000}, {"y_ptr", 8, 0x2000},          {"out_ptr", 8, 0x3000},
      {"n", 4, 1000},       {"global_scratch", 8, 0x4000}, {"profile_scratch", 8, 0x5000},
  };
  for (std::size_t i = 0; i < p.size(); ++i) {
    const auto& [name, size, value] = table[i];
    EXPECT_EQ(p[i].name, name);
    EXPECT_EQ(p[i].size, size) << name;
    EXPECT_EQ(as<std::uint64_t>(p[i]), value) << name; // and zero behind a short one
  }
}

TEST(PackParameters, scratch_pointers_are_there_also_when_null) {
  const auto p = pack_parameters(spec_with(Json::array()), {}, 0, 0).value();
  ASSERT_EQ(p.size(), 2U);
  EXPECT_EQ(as<std::uint64_t>(p[0]), 0U);
}

TEST(PackParameters, scalars_have_their_types_bytes) {
  const std::tuple<const char*, Json, std::size_t, std::uint64_t> table[] = {
      {"i1", true, 1, 1},
      {"i1", false, 1, 0},
      {"i1", 1, 1, 1},
      {"i8", -1, 1, 0xff},
      {"u8", 255, 1, 0xff},
      {"i16", -2, 2, 0xfffe},
      {"i32", -2147483648LL, 4, 0x80000000},
      {"u32", 4294967295LL, 4, 0xffffffff},
      {"i64", "-9223372036854775808", 8, 0x8000000000000000},
      {"i64", -1, 8, 0xffffffffffffffff},
      {"u64", "18446744073709551615", 8, 0xffffffffffffffff},
      {"u64", "9223372036854775808", 8, 0x8000000000000000},
      {"fp16", 1.0, 2, 0x3c00},
      {"bf16", -2, 2, 0xc000},
      {"fp32", 0.1, 4, 0x3dcccccd},
      {"fp32", "inf", 4, 0x7f800000},
      {"fp32", "-inf", 4, 0xff800000},
      {"fp64", "inf", 8, 0x7ff0000000000000},
      {"bf16", "-inf", 2, 0xff80},
  };
  for (const auto& [dtype, value, size, bits] : table) {
    const auto p = pack_parameters(spec_with(Json::array({scalar(dtype, value)})), {}, 0, 0);
    ASSERT_TRUE(p) << dtype << " " << value << ": " << p.error().what;
    EXPECT_EQ(p->front().size, size) << dtype;
    EXPECT_EQ(as<std::uint64_t>(p->front()), bits) << dtype << " " << value;
  }
  const auto nan =
      pack_parameters(spec_with(Json::array({scalar("fp64", "nan")})), {}, 0, 0).value();
  EXPECT_TRUE(std::isnan(as<double>(nan.front())));
}

TEST(PackParameters, a_scalar_that_is_no_number_is_refused_by_name) {
  for (const char* dtype : {"i32", "u64", "fp32", "fp64"})
    for (const Json& value : {Json("many"), Json(nullptr), Json::array()}) {
      const auto spec = spec_with(Json::array({scalar(dtype, value)}));
      Result<std::vector<PackedParameter>> packed;
      ASSERT_NO_THROW(packed = pack_parameters(spec, {}, 0, 0)) << dtype << " " << value;
      ASSERT_FALSE(packed) << dtype << " " << value;
      EXPECT_EQ(packed.error().where, "argument s");
    }
}

TEST(PackParameters, too_few_buffers_are_refused) {
  const auto s = LaunchSpec::from_json(test::vector_launch(), "x").value();
  EXPECT_EQ(pack_parameters(s, {1, 2}, 0, 0).error().code, RefusalCode::internal);
}

} // namespace
} // namespace hebe::kernel
