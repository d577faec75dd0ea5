#include "rewritten_kernel.hpp"

namespace hebe::rewrite {
namespace {
using namespace testing_passes;

constexpr const char* kParameters = "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %l: !tt.ptr<i32>, %n: "
                                    "i32, %c: i1";
std::string kernel(const std::string& body) { return function(kParameters, body); }
const std::string kCopy = kernel("    %a = tt.addptr %p, %n : !tt.ptr<f32>, i32\n"
                                 "    %x = tt.load %a : !tt.ptr<f32>\n"
                                 "    %y = tt.load %q : !tt.ptr<f32>\n"
                                 "    %z = arith.addf %x, %y : f32\n"
                                 "    tt.store %q, %z, %c : !tt.ptr<f32>\n");

TEST(Hint, loads_and_stores_of_an_argument_get_what_is_asked) {
  const auto made = rewritten(
      kCopy, R"([{"pass": "hint", "loads": {"p": {"evict": "evict_first"}, "q": {"cache": "cg"}},
                  "stores": {"q": {"cache": "cs"}}}])");
  EXPECT_EQ(count(made.ttgir, "tt.load %a evictionPolicy = evict_first : "), 1U) << made.ttgir;
  EXPECT_EQ(count(made.ttgir, "tt.load %q cacheModifier = cg : "), 1U);
  EXPECT_EQ(count(made.ttgir, "tt.store %q, %z, %c cacheModifier = cs : "), 1U);
  EXPECT_EQ(made.account.changes.size(), 3U);
  EXPECT_TRUE(made.account.refused.empty() && made.account.contracts.empty());
  EXPECT_EQ(made.account.exactness, Exactness::exact);
}

TEST(Hint, a_hint_can_be_taken_away_and_exchanged) {
  const auto text = kernel("    %x = tt.load %p evictionPolicy = evict_last : !tt.ptr<f32>\n"
                           "    tt.store %q, %x cacheModifier = wt : !tt.ptr<f32>\n");
  const auto made = rewritten(text, R"([{"pass": "hint", "loads": {"p": {"evict": "evict_normal"}},
                 "stores": {"q": {"cache": "none", "evict": "evict_last"}}}])");
  EXPECT_EQ(count(made.ttgir, "tt.load %p : !tt.ptr<f32>\n"), 1U) << made.ttgir;
  EXPECT_EQ(count(made.ttgir, "tt.store %q, %x evictionPolicy = evict_last : "), 1U);
}

TEST(Hint, what_it_has_already_is_no_change) {
  const auto text = kernel("    %x = tt.load %p evictionPolicy = evict_last : !tt.ptr<f32>\n"
                           "    tt.store %q, %x : !tt.ptr<f32>\n");
  const auto made =
      rewritten(text, R"([{"pass": "hint", "loads": {"p": {"evict": "evict_last"}}}])");
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "it has that hint already");
}

TEST(Hint, a_load_that_may_be_of_another_argument_is_refused) {
  const auto text = kernel("    %a = arith.select %c, %p, %q : !tt.ptr<f32>\n"
                           "    %x = tt.load %a : !tt.ptr<f32>\n"
                           "    tt.store %q, %x : !tt.ptr<f32>\n");
  const auto made =
      rewritten(text, R"([{"pass": "hint", "loads": {"p": {"evict": "evict_last"}}}])");
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "it may reach other memory than %p");
}

TEST(Hint, a_volatile_load_is_refused) {
  const auto text = kernel("    %x = tt.load %p {isVolatile = true} : !tt.ptr<f32>\n"
                           "    tt.store %q, %x : !tt.ptr<f32>\n");
  const auto made = rewritten(text, R"([{"pass": "hint", "loads": {"p": {"cache": "ca"}}}])");
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "it is volatile");
}

TEST(Hint, a_priority_on_a_load_with_a_modifier_is_refused) {
  const auto text = kernel("    %x = tt.load %p cacheModifier = ca : !tt.ptr<f32>\n"
                           "    tt.store %q, %x : !tt.ptr<f32>\n");
  const auto made =
      rewritten(text, R"([{"pass": "hint", "loads": {"p": {"evict": "evict_last"}}}])");
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "it would have both evict_last and ca, which PTX has no form for");
  const auto both = rewritten(
      text, R"([{"pass": "hint", "loads": {"p": {"evict": "evict_last", "cache": "none"}}}])");
  EXPECT_EQ(count(both.ttgir, "tt.load %p evictionPolicy = evict_last : "), 1U);
}

TEST(Hint, a_pipelined_load_is_refused) {
  const auto text = dump("matmul.ttgir");
  const auto made =
      rewritten(text, R"([{"pass": "hint", "loads": {"A": {"evict": "evict_last"}}}])");
  EXPECT_EQ(made.ttgir, text);
  EXPECT_EQ(why(made), "it is pipelined: the lowering to cp.async ignores the hint");
}

TEST(Hint, an_atomic_and_an_argument_without_loads_are_refused) {
  const auto text =
      kernel("    %x = tt.atomic_rmw add, acq_rel, gpu, %l, %n : (!tt.ptr<i32>, i32) -> i32\n");
  EXPECT_EQ(why(rewritten(text, R"([{"pass": "hint", "stores": {"l": {"cache": "cg"}}}])")),
            "an atomic takes no hint");
  EXPECT_EQ(why(rewritten(text, R"([{"pass": "hint", "loads": {"q": {"cache": "cg"}}}])")),
            "no load is of %q");
}

TEST(Hint, wrong_options_are_refused_with_what_would_be_right) {
  const std::pair<const char*, const char*> table[] = {
      {R"([{"pass": "hint", "loads": {"x": {"cache": "ca"}}}])", "pointers: p, q, l"},
      {R"([{"pass": "hint", "loads": {"n": {"cache": "ca"}}}])",
       "no argument of that name is a pointer"},
      {R"([{"pass": "hint", "loads": {"p": {"cache": "cs"}}}])", "one of none, ca, cg"},
      {R"([{"pass": "hint", "loads": {"p": {"cache": "cv"}}}])", "one of none, ca, cg"},
      {R"([{"pass": "hint", "stores": {"p": {"cache": "ca"}}}])", "one of none, wb, cg, cs, wt"},
      {R"([{"pass": "hint", "stores": {"p": {"cache": "cv"}}}])", "one of none, wb, cg, cs, wt"},
      {R"([{"pass": "hint", "loads": {"p": {"evict": "last"}}}])",
       "evict_normal, evict_first, evict_last"},
      {R"([{"pass": "hint", "loads": {"p": {"cache": "ca", "evict": "evict_last"}}}])",
       "ask for one of them"},
      {R"([{"pass": "hint", "loads": {"p": {"prefetch": "L2"}}}])", "there is no \"prefetch\""},
      {R"([{"pass": "hint", "loads": {"p": "evict_last"}}])", "a table with evict or cache"},
      {R"([{"pass": "hint", "loads": ["p"]}])", "is a table"},
      {R"(["hint"])", "nothing is asked for"},
  };
  for (const auto& [passes, what] : table) {
    const auto said = refusal(kCopy, passes);
    EXPECT_TRUE(said.starts_with("bad_spec: ")) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  }
}

} // namespace
} // namespace hebe::rewrite
