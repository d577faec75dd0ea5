// Facts about JSON in and out: RFC 8785's own vectors, those of the rfc8785 package, and what must
// not pass.
#include "core/json.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"

namespace hebe {
namespace {

std::string canonical(const std::string& text) {
  const auto value = parse_json(text, "test");
  if (!value) return "refused: " + value.error().what;
  const auto out = canonical_json(*value);
  return out ? *out : "refused: " + out.error().what;
}

double double_of(const std::string& hex) {
  return std::bit_cast<double>(std::stoull(hex, nullptr, 16));
}

const Json& package_vectors() {
  static const Json vectors = Json::parse(test::bytes_of(HEBE_TEST_DATA "/jcs/vectors.json"));
  return vectors;
}

TEST(CanonicalJson, numbers_are_those_of_rfc_8785_appendix_b) {
  const std::pair<const char*, const char*> table[] = {
      {"0000000000000000", "0"},
      {"8000000000000000", "0"},
      {"0000000000000001", "5e-324"},
      {"8000000000000001", "-5e-324"},
      {"7fefffffffffffff", "1.7976931348623157e+308"},
      {"ffefffffffffffff", "-1.7976931348623157e+308"},
      {"4340000000000000", "9007199254740992"},
      {"c340000000000000", "-9007199254740992"},
      {"4430000000000000", "295147905179352830000"},
      {"44b52d02c7e14af5", "9.999999999999997e+22"},
      {"44b52d02c7e14af6", "1e+23"},
      {"44b52d02c7e14af7", "1.0000000000000001e+23"},
      {"444b1ae4d6e2ef4e", "999999999999999700000"},
      {"444b1ae4d6e2ef4f", "999999999999999900000"},
      {"444b1ae4d6e2ef50", "1e+21"},
      {"3eb0c6f7a0b5ed8c", "9.999999999999997e-7"},
      {"3eb0c6f7a0b5ed8d", "0.000001"},
      {"41b3de4355555553", "333333333.3333332"},
      {"41b3de4355555554", "333333333.33333325"},
      {"41b3de4355555555", "333333333.3333333"},
      {"41b3de4355555556", "333333333.3333334"},
      {"41b3de4355555557", "333333333.33333343"},
      {"becbf647612f3696", "-0.0000033333333333333333"},
      {"43143ff3c1cb0959", "1424953923781206.2"},
  };
  for (const auto& [hex, text] : table) {
    EXPECT_EQ(ecmascript_number(double_of(hex)), text) << hex;
    EXPECT_EQ(canonical_json(Json(double_of(hex))).value(), text) << hex;
  }
}

TEST(CanonicalJson, numbers_agree_with_the_rfc8785_package) {
  ASSERT_GT(package_vectors().at("numbers").size(), 1000U);
  for (const auto& pair : package_vectors().at("numbers"))
    EXPECT_EQ(ecmascript_number(double_of(pair.at(0))), pair.at(1).get<std::string>())
        << pair.at(0);
}

TEST(CanonicalJson, documents_agree_with_the_rfc8785_package) {
  ASSERT_GE(package_vectors().at("documents").size(), 100U);
  for (const auto& pair : package_vectors().at("documents"))
    EXPECT_EQ(canonical(pair.at(0)), pair.at(1).get<std::string>());
}

TEST(CanonicalJson, the_example_of_the_rfc_comes_out_as_printed) {
  EXPECT_EQ(canonical(R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  })"),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
            "\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

TEST(CanonicalJson, members_sort_by_utf16_code_units) {
  // The emoji is a surrogate pair (d83d…) and so comes before U+FB33; by code point it would be
  // last.
  EXPECT_EQ(canonical(R"({
    "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis"
  })"),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\","
            "\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\","
            "\"😀\":\"Emoji: Grinning Face\",\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST(CanonicalJson, strings_escape_only_what_they_must) {
  const std::pair<std::string, const char*> table[] = {
      {"\b\t\n\f\r", R"("\b\t\n\f\r")"}, {std::string(1, '\0'), R"("\u0000")"},
      {"\x1f", R"("\u001f")"},           {"\x7f", "\"\x7f\""},
      {"\"\\/", R"("\"\\/")"},           {"é€😀", "\"é€😀\""},
  };
  for (const auto& [text, expected] : table)
    EXPECT_EQ(canonical_json(Json(text)).value(), expected);
}

TEST(CanonicalJson, equal_values_have_one_text_whatever_their_order_and_spacing) {
  EXPECT_EQ(canonical(R"({"b": 1.0, "a": [1e0, {}]})"), canonical(R"({ "a":[1,{}],"b":1 })"));
  EXPECT_EQ(canonical(R"({"b": 1.0, "a": [1e0, {}]})"), R"({"a":[1,{}],"b":1})");
}

TEST(CanonicalJson, nan_and_infinities_are_refused) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    const auto out = canonical_json(Json{{"energy_j", bad}});
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, RefusalCode::bad_schema);
    EXPECT_NE(out.error().what.find("NaN"), std::string::npos);
  }
}

TEST(CanonicalJson, integers_beyond_2_to_the_53_are_refused) {
  EXPECT_EQ(canonical("9007199254740992"), "9007199254740992");
  EXPECT_EQ(canonical("-9007199254740992"), "-9007199254740992");
  for (const char* text : {"9007199254740993", "-9007199254740993", "9223372036854775807",
                           "18446744073709551615", "-9223372036854775808"}) {
    const auto out = canonical_json(parse_json(text, "test").value());
    ASSERT_FALSE(out) << text;
    EXPECT_NE(out.error().what.find(text), std::string::npos) << out.error().what;
  }
}

TEST(CanonicalJson, a_whole_double_beyond_2_to_the_53_comes_back_as_it_was_written) {
  for (const double value : {56889798156202340.0, -1e18, 9.1e20, 1.8014398509481984e16}) {
    const auto written = canonical_json(Json(value)).value();
    const auto again = canonical_json(parse_json(written, "test").value());
    ASSERT_TRUE(again) << written;
    EXPECT_EQ(*again, written);
  }
}

TEST(CanonicalJson, invalid_utf8_is_refused_in_names_and_values) {
  const std::pair<const char*, std::string> table[] = {
      {"stray continuation", "\x80"},
      {"no continuation", "\xC3"},
      {"overlong slash", "\xC0\xAF"},
      {"overlong in three", "\xE0\x80\xAF"},
      {"surrogate", "\xED\xA0\x80"},
      {"beyond U+10FFFF", "\xF4\x90\x80\x80"},
      {"overlong in four", "\xF0\x80\x80\xAF"},
      {"wrong continuation", "\xE2\x28\xA1"},
      {"no such lead byte", "\xFF"},
      {"cut short", "ok\xF0\x9F\x98"},
  };
  for (const auto& [name, text] : table) {
    EXPECT_FALSE(canonical_json(Json(text))) << name;
    EXPECT_FALSE(canonical_json(Json{{text, 1}})) << name;
  }
}

TEST(CanonicalJson, a_content_id_is_the_sha256_of_the_canonical_bytes) {
  // printf '{"a":1}' | sha256sum
  EXPECT_EQ(content_id(Json{{"a", 1}}).value(),
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862");
}

TEST(ParseJson, what_is_not_one_json_text_is_refused_with_its_place) {
  const std::pair<const char*, std::string> table[] = {
      {"empty", ""},
      {"trailing bytes", "{} x"},
      {"two values", "1 2"},
      {"NaN", R"({"a": NaN})"},
      {"Infinity", "[Infinity]"},
      {"number that overflows", "1e400"},
      {"comment", "{} // no"},
      {"trailing comma", "[1,]"},
      {"single quotes", "{'a': 1}"},
      {"invalid UTF-8", "\"\xC3\x28\""},
      {"lone surrogate", R"("\ud800")"},
      {"control character", "\"\n\""},
      {"cut short", R"({"a": [1, 2)"},
  };
  for (const auto& [name, text] : table) {
    const auto parsed = parse_json(text, "windows.jsonl:7");
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, RefusalCode::bad_schema) << name;
    EXPECT_EQ(parsed.error().where, "windows.jsonl:7") << name;
  }
}

TEST(ParseJson, what_is_no_json_says_so_where_and_what_to_do) {
  const std::pair<const char*, const char*> table[] = {
      {"", "it is empty"},
      {" \n\t", "it is empty"},
      {R"({"a": [1, 2)", "it is not JSON: it ends in the middle of a value at byte 11"},
      {R"("abc)", "it is not JSON: it ends in the middle of a value at byte 4"},
      {"[1,]", "at byte 4"},
      {"{} // no", "at byte 4"},
      {"1e999", "number overflow"}};
  for (const auto& [text, words] : table) {
    const auto parsed = parse_json(text, "plan.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().what.find(words), std::string::npos) << parsed.error().what;
    EXPECT_EQ(parsed.error().what.find("json.exception"), std::string::npos) << parsed.error().what;
    EXPECT_FALSE(parsed.error().next.empty());
  }
}

TEST(ParseJson, duplicate_names_are_refused_at_any_depth_and_named) {
  for (const char* text :
       {R"({"a":1,"a":1})", R"({"x":[{"b":0,"a":1,"a":2}]})", R"({"a":1,"c":{},"\u0061":2})"}) {
    const auto parsed = parse_json(text, "plan.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().what.find("\"a\" occurs twice"), std::string::npos)
        << parsed.error().what;
  }
  EXPECT_TRUE(parse_json(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})", "plan.json"));
}

TEST(JsonInteger, any_64_bit_integer_comes_back_exactly) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t v :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{9'007'199'254'740'992},
        std::int64_t{9'007'199'254'740'993}, kMost, -kMost - 1}) {
    const auto written = canonical_json(json_integer(v)).value();
    EXPECT_EQ(integer_from(parse_json(written, "test").value(), "test").value(), v);
  }
  EXPECT_TRUE(json_integer(9'007'199'254'740'993).is_string());
  EXPECT_TRUE(json_integer(9'007'199'254'740'992).is_number_integer());
}

TEST(JsonInteger, what_is_no_64_bit_integer_is_refused_not_bent) {
  for (const char* text :
       {"1.5", "1e3", "\"1.5\"", "\"\"", "\" 1\"", "\"1 \"", "\"0x10\"", "null", "true", "[]",
        "\"9223372036854775808\"", "9223372036854775808", "18446744073709551615"}) {
    const auto read = integer_from(parse_json(text, "test").value(), "windows.jsonl:3");
    ASSERT_FALSE(read) << text << " was read as " << *read;
    EXPECT_EQ(read.error().code, RefusalCode::bad_schema);
    EXPECT_EQ(read.error().where, "windows.jsonl:3");
  }
}

} // namespace
} // namespace hebe
