// Facts about the buckets of shapes.
#include "tune/shape_bucket.hpp"

#include <random>

#include <gtest/gtest.h>

namespace hebe::tune {
namespace {

const std::vector<std::string> kM = {"m"};

std::vector<NamedSize> shape(std::int64_t m, std::int64_t n = 4096) { return {{"m", m}, {"n", n}}; }

TEST(ShapeBucket, ends_at_the_power_of_two_that_holds_the_size) {
  EXPECT_EQ(text_of(bucket_of(shape(200), kM).value()), "m<=256,n=4096");
  EXPECT_EQ(text_of(bucket_of(shape(256), kM).value()), "m<=256,n=4096");
  EXPECT_EQ(text_of(bucket_of(shape(257), kM).value()), "m<=512,n=4096");
  EXPECT_EQ(text_of(bucket_of(shape(1), kM).value()), "m<=1,n=4096");
  EXPECT_EQ(text_of(bucket_of(shape(200), {}).value()), "m=200,n=4096");
}

TEST(ShapeBucket, every_size_lies_in_its_own_bucket_and_in_no_other) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto m = std::uniform_int_distribution<std::int64_t>(
        1, std::int64_t{1} << std::uniform_int_distribution(0, 62)(random))(random);
    int in = 0;
    for (int power = 0; power <= 62; ++power)
      in += holds({{"m", std::int64_t{1} << power, true}, {"n", 4096, false}}, shape(m)) ? 1 : 0;
    ASSERT_EQ(in, 1) << m;
    ASSERT_TRUE(holds(bucket_of(shape(m), kM).value(), shape(m))) << m;
  }
}

TEST(ShapeBucket, names_and_their_order_and_exact_sizes_must_be_the_same) {
  const auto bucket = bucket_of(shape(200), kM).value();
  EXPECT_TRUE(holds(bucket, shape(129)));
  EXPECT_FALSE(holds(bucket, shape(128)));
  EXPECT_FALSE(holds(bucket, shape(257)));
  EXPECT_FALSE(holds(bucket, shape(0)));
  EXPECT_FALSE(holds(bucket, shape(200, 4095)));
  EXPECT_FALSE(holds(bucket, std::vector<NamedSize>{{"n", 4096}, {"m", 200}}));
  EXPECT_FALSE(holds(bucket, std::vector<NamedSize>{{"m", 200}}));
}

TEST(ShapeBucket, text_comes_back_and_other_texts_are_refused) {
  for (const char* text : {"m<=256,n=4096,k=4096", "m<=1", "rows_2=7"})
    EXPECT_EQ(text_of(bucket_from(text, "here").value()), text);
  for (const char* text :
       {"", "m", "m<=", "m<=255", "m=0", "m=-1", "m=01", "m=1,", ",m=1", "m=1,m=2", "M=1", "m= 1",
        "m=1 ", "m<1", "m==1", "2m=1", "m=99999999999999999999", "m<=9223372036854775808"}) {
    const auto got = bucket_from(text, "here");
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, RefusalCode::bad_schema);
    EXPECT_EQ(got.error().where, "here");
  }
}

TEST(ShapeBucket, a_shape_that_is_none_is_refused) {
  EXPECT_FALSE(bucket_of({}, {}));
  EXPECT_FALSE(bucket_of(shape(0), kM));
  EXPECT_FALSE(bucket_of(shape(5), std::vector<std::string>{"k"}));
  EXPECT_FALSE(bucket_of(std::vector<NamedSize>{{"m", 1}, {"m", 2}}, {}));
}

} // namespace
} // namespace hebe::tune
