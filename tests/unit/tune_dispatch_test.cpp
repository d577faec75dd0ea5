// Facts about dispatch: the right row, the fall back that is told once, and threads.
#include "tune_rows.hpp"

#include <hebe/dispatch.hpp>
#include <hebe/hebe.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include <unistd.h>

namespace hebe::tune {
namespace {
using test::profile_of;
using test::sound_row;

ProfileRow row_of(const char* name, const char* shape, const char* dtype = "bf16") {
  auto row = sound_row(shape);
  row.implementation.name = name;
  row.key.dtype = dtype;
  return row;
}

class Dispatch : public testing::Test {
protected:
  ~Dispatch() override {
    dispatch::unload();
    dispatch::on_missing(nullptr, nullptr);
    std::filesystem::remove(file_);
  }
  dispatch::Loaded load(const Profile& profile, const char* board = "NVIDIA H200") {
    EXPECT_TRUE(write_profile(file_, profile));
    return dispatch::load(file_, board);
  }
  static std::string found(std::initializer_list<std::int64_t> sizes, const char* dtype = "bf16") {
    const auto* c = dispatch::find("matmul", std::vector(sizes), dtype);
    return c == nullptr ? "none" : c->name;
  }
  std::string file_ =
      (std::filesystem::temp_directory_path() / ("hebe_dispatch_" + std::to_string(::getpid())))
          .string();
};

TEST_F(Dispatch, finds_the_bucket_and_the_more_exact_row_first) {
  ASSERT_TRUE(
      load(profile_of({row_of("decode", "m<=1,n=64"), row_of("prefill", "m<=256,n=64"),
                       row_of("exact", "m=200,n=64"), row_of("half", "m<=256,n=64", "fp16")}))
          .ok);
  EXPECT_EQ(found({1, 64}), "decode");
  EXPECT_EQ(found({129, 64}), "prefill");
  EXPECT_EQ(found({256, 64}), "prefill");
  EXPECT_EQ(found({200, 64}), "exact");
  EXPECT_EQ(found({200, 64}, "fp16"), "half");
  for (const auto& none : {std::initializer_list<std::int64_t>{128, 64},
                           {257, 64},
                           {256, 63},
                           {256},
                           {256, 64, 1},
                           {0, 64},
                           {-1, 64},
                           {INT64_MAX, 64},
                           {}})
    EXPECT_EQ(found(none), "none");
  EXPECT_EQ(found({1, 64}, "int8"), "none");
  EXPECT_EQ(dispatch::names(), (std::vector<std::string>{"decode", "exact", "half", "prefill"}));
  EXPECT_EQ(dispatch::dimensions("matmul", "bf16"), (std::vector<std::string>{"m", "n"}));
  const auto* c = dispatch::find("matmul", std::vector<std::int64_t>{1, 64}, "bf16");
  EXPECT_EQ(c->index, 0);
  EXPECT_EQ(c->configuration, R"({"BLOCK_M":128,"num_warps":8})");
  EXPECT_EQ(c->energy_nj, 12'655'000);
  EXPECT_EQ(c->provenance, "measured");
}

TEST_F(Dispatch, a_number_of_sizes_that_no_row_has_is_a_bad_argument_and_no_missing_row) {
  static int told = 0;
  told = 0;
  dispatch::on_missing([](const char*, const char*, void*) { ++told; }, nullptr);
  ASSERT_TRUE(load(profile_of({row_of("a", "m<=1,n=64")})).ok);
  const auto why = [](std::vector<std::int64_t> sizes, const char* dtype) {
    auto miss = dispatch::Miss::no_row;
    EXPECT_EQ(dispatch::find("matmul", sizes, dtype, &miss), nullptr);
    const int found = hebe_dispatch_find("matmul", sizes.data(), sizes.size(), dtype, nullptr);
    EXPECT_EQ(found, miss == dispatch::Miss::bad_argument ? -2 : 0);
    return miss;
  };
  for (int i = 0; i < 2; ++i) { // not once
    EXPECT_EQ(why({1}, "bf16"), dispatch::Miss::bad_argument);
    EXPECT_EQ(why({1, 64, 64}, "bf16"), dispatch::Miss::bad_argument);
    EXPECT_EQ(why({}, "bf16"), dispatch::Miss::bad_argument);
  }
  EXPECT_EQ(told, 0);
  EXPECT_EQ(why({2, 64}, "bf16"), dispatch::Miss::no_row);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(why({1}, "fp8"), dispatch::Miss::no_row); // no row has that dtype
  dispatch::unload();
  EXPECT_EQ(why({1}, "bf16"), dispatch::Miss::no_row);
}

TEST_F(Dispatch, tells_of_a_missing_row_once_and_of_nothing_while_it_is_off) {
  static int told = 0;
  told = 0;
  dispatch::on_missing(
      [](const char* operation, const char* dtype, void* user) {
        EXPECT_STREQ(operation, "matmul");
        EXPECT_STREQ(dtype, "bf16");
        ++*static_cast<int*>(user);
      },
      &told);
  EXPECT_EQ(found({3, 3}), "none");
  EXPECT_EQ(told, 0);
  ASSERT_TRUE(load(profile_of({row_of("a", "m<=1,n=64")})).ok);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(found({3, 3}), "none");
  EXPECT_EQ(told, 1);
}

TEST_F(Dispatch, a_load_that_fails_leaves_what_was_there) {
  ASSERT_TRUE(load(profile_of({row_of("a", "m<=1,n=64")})).ok);
  const auto other = dispatch::load(file_, "NVIDIA H100");
  EXPECT_FALSE(other.ok);
  EXPECT_NE(other.why.find("no row of NVIDIA H100"), std::string::npos);
  EXPECT_EQ(dispatch::load("/none", "NVIDIA H200").exit_code, 2);
  auto json = json_of(profile_of({row_of("a", "m<=1,n=64")}));
  json["rows"].push_back(json_of(row_of("b", "n=64,m=3")));
  std::ofstream(file_) << json.dump();
  const auto mixed = dispatch::load(file_, "NVIDIA H200");
  EXPECT_FALSE(mixed.ok);
  EXPECT_NE(mixed.why.find("dimensions"), std::string::npos);
  EXPECT_EQ(found({1, 64}), "a");
}

TEST_F(Dispatch, takes_no_null_for_a_name) {
  char why[200];
  EXPECT_EQ(hebe_dispatch_load(nullptr, "b", why, sizeof why), 2);
  EXPECT_NE(std::string(why).find("no profile was named"), std::string::npos) << why;
  EXPECT_EQ(hebe_dispatch_load("/none", nullptr, why, sizeof why), 2);
  EXPECT_NE(std::string(why).find("no board was named"), std::string::npos) << why;
  EXPECT_EQ(hebe_dispatch_load(nullptr, nullptr, nullptr, 0), 2);
  ASSERT_TRUE(load(profile_of({row_of("a", "m<=4,n=64")})).ok);
  const std::int64_t sizes[] = {3, 64};
  EXPECT_EQ(hebe_dispatch_find(nullptr, sizes, 2, "bf16", nullptr), 0);
  EXPECT_EQ(hebe_dispatch_find("matmul", nullptr, 2, "bf16", nullptr), 0);
  EXPECT_EQ(hebe_dispatch_find("matmul", sizes, 2, nullptr, nullptr), 0);
  EXPECT_EQ(hebe_dispatch_find("matmul", nullptr, 0, "bf16", nullptr), -2);
  EXPECT_EQ(hebe_dispatch_dimensions(nullptr, "bf16", nullptr, 0), 0U);
  EXPECT_EQ(hebe_dispatch_dimensions("matmul", nullptr, nullptr, 0), 0U);
  EXPECT_EQ(hebe_dispatch_find("matmul", sizes, 2, "bf16", nullptr), 1);
}

TEST_F(Dispatch, speaks_c) {
  char why[16];
  EXPECT_EQ(hebe_dispatch_load("/none", "b", why, sizeof why), 2);
  EXPECT_EQ(std::string(why).size(), 15);
  ASSERT_TRUE(load(profile_of({row_of("a", "m<=4,n=64")})).ok);
  const std::int64_t sizes[] = {3, 64};
  hebe_choice choice;
  ASSERT_EQ(hebe_dispatch_find("matmul", sizes, 2, "bf16", &choice), 1);
  EXPECT_STREQ(choice.name, "a");
  EXPECT_STREQ(choice.shape, "m<=4,n=64");
  EXPECT_EQ(hebe_dispatch_find("matmul", sizes, 1, "bf16", &choice), -2);
  hebe_dispatch_unload();
  EXPECT_EQ(hebe_dispatch_find("matmul", sizes, 2, "bf16", nullptr), 0);
}

TEST_F(Dispatch, is_looked_up_while_it_is_loaded) {
  const auto one = profile_of({row_of("one", "m<=4,n=64")});
  ASSERT_TRUE(load(one).ok);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop)
        if (const auto name = found({3, 64}); name != "one" && name != "two") ++wrong;
    });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(load(profile_of({row_of("two", "m<=4,n=64")})).ok);
    ASSERT_TRUE(load(one).ok);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
} // namespace hebe::tune
