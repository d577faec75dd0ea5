#include "rewrite_kernels.hpp"

namespace hebe::rewrite {
namespace {

constexpr const char* kHoist = "[\"hoist-loads\"]";
constexpr const char* kBounds = "    %zero = arith.constant 0 : i32\n"
                                "    %step = arith.constant 32 : i32\n";

std::string loop(const std::string& name, const std::string& inside, const std::string& load) {
  return "    scf.for %i = %zero to %n step %step  : i32 {\n"
         "      %o = tt.addptr %p, %i : !tt.ptr<f32>, i32\n      %" +
         name + " = tt.load " + load + " : !tt.ptr<f32>\n" + inside + "      tt.store %q, %" +
         name + " : !tt.ptr<f32>\n    }\n";
}
std::string two(const std::string& between = "", const std::string& first = "%o",
                const std::string& second = "%o") {
  return kBounds + loop("x", "", first) + between + loop("y", "", second);
}

TEST(HoistLoads, equal_loads_of_loops_that_run_once_become_one_in_the_entry_block) {
  const auto out = rewrite(two(), kHoist, with_n(32, true));
  EXPECT_EQ(out.body, std::string(kBounds) + "    %o = tt.addptr %p, %zero : !tt.ptr<f32>, i32\n"
                                             "    %x = tt.load %o : !tt.ptr<f32>\n"
                                             "    scf.for %i = %zero to %n step %step  : i32 {\n"
                                             "      tt.store %q, %x : !tt.ptr<f32>\n    }\n"
                                             "    scf.for %i = %zero to %n step %step  : i32 {\n"
                                             "      tt.store %q, %x : !tt.ptr<f32>\n    }\n");
  ASSERT_EQ(out.account.contracts.size(), 2U);
  EXPECT_EQ(out.account.contracts[0].argument, "n");
}

TEST(HoistLoads, loops_that_may_run_zero_or_two_times_keep_their_loads) {
  EXPECT_EQ(rewrite(two(), kHoist, with_n(0, true)).refused(),
            "tt.load %x: it stands in a loop, and it runs 0 times\n"
            "tt.load %y: it stands in a loop, and it runs 0 times\n");
  EXPECT_NE(rewrite(two(), kHoist, with_n(64, true)).refused().find("it runs 2 times"),
            std::string::npos);
  LaunchFacts facts;
  facts.disjoint = true;
  EXPECT_NE(rewrite(two(), kHoist, facts).refused().find("depends on %n"), std::string::npos);
}

TEST(HoistLoads, a_store_between_that_may_alias_keeps_the_loads) {
  const auto out = rewrite(two(), kHoist, with_n(32));
  EXPECT_EQ(out.count("tt.load"), 2U);
  EXPECT_NE(out.refused().find("nothing says that arguments are different memory"),
            std::string::npos);
  const auto same = rewrite(two("    tt.store %p, %a : !tt.ptr<f32>\n"), kHoist, with_n(32, true));
  EXPECT_EQ(same.count("tt.load"), 2U);
  EXPECT_NE(same.refused().find("tt.load %y: tt.store of line 10 stands between"),
            std::string::npos)
      << same.refused();
  EXPECT_NE(same.refused().find("tt.load %x: 1 equal load to hoist, fewer than 2"),
            std::string::npos);
}

TEST(HoistLoads, volatile_loads_and_other_masks_stay) {
  const auto out = rewrite(two("", "%o", "%o {isVolatile = true}"), kHoist, with_n(32, true));
  EXPECT_NE(out.refused().find("tt.load %y: it is volatile"), std::string::npos);
  EXPECT_EQ(out.count("tt.load"), 2U);
  EXPECT_EQ(rewrite(two("", "%o, %c", "%o, %d"), kHoist, with_n(32, true)).count("tt.load"), 2U);
  EXPECT_EQ(rewrite(two("", "%o, %c", "%o, %c, %a"), kHoist, with_n(32, true)).count("tt.load"),
            2U);
  EXPECT_EQ(rewrite(two("", "%o, %c", "%o, %c"), kHoist, with_n(32, true)).count("tt.load"), 1U);
}

TEST(HoistLoads, a_load_in_a_branch_may_not_be_read_at_all) {
  auto text = two();
  const auto at = text.find("      %y = tt.load %o : !tt.ptr<f32>\n");
  text.insert(at, "      scf.if %c {\n        %z = tt.load %o : !tt.ptr<f32>\n        tt.store %q, "
                  "%z : !tt.ptr<f32>\n      }\n");
  const auto out = rewrite(text, kHoist, with_n(32, true));
  EXPECT_EQ(out.refused(), "tt.load %z: it stands in scf.if, so it may not be read at all\n");
  EXPECT_EQ(out.count("tt.load"), 2U);
}

TEST(HoistLoads, an_address_that_is_loaded_itself_stays) {
  const auto through = [](const std::string& name) {
    return "    scf.for %i = %zero to %n step %step  : i32 {\n      %k" + name +
           " = tt.load %w : !tt.ptr<i32>\n      %o = tt.addptr %p, %k" + name +
           " : !tt.ptr<f32>, i32\n      %" + name +
           " = tt.load %o : !tt.ptr<f32>\n      tt.store %q, %" + name + " : !tt.ptr<f32>\n    }\n";
  };
  const auto out =
      rewrite(kBounds + through("x") + through("y"),
              "[{\"pass\": \"hoist-loads\", \"at_least\": 1, \"arguments\": [\"p\"]}]",
              with_n(32, true), "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %w: !tt.ptr<i32>, %n: i32");
  EXPECT_EQ(out.count("tt.load"), 4U);
  EXPECT_NE(out.refused().find("it needs %kx, which is loaded itself"), std::string::npos)
      << out.refused();
}

TEST(HoistLoads, a_pointer_that_a_loop_carries_is_followed_through_it) {
  const std::string text =
      std::string(kBounds) +
      "    %e = scf.for %i = %zero to %n step %step iter_args(%w = %p) -> (!tt.ptr<f32>)  : i32 {\n"
      "      %x = tt.load %w : !tt.ptr<f32>\n      tt.store %q, %x : !tt.ptr<f32>\n"
      "      %v = tt.addptr %w, %n : !tt.ptr<f32>, i32\n      scf.yield %v : !tt.ptr<f32>\n    }\n"
      "    %z = arith.subi %zero, %n : i32\n"
      "    scf.for %i = %zero to %n step %step  : i32 {\n"
      "      %x = tt.load %e : !tt.ptr<f32>\n      %y = tt.load %e : !tt.ptr<f32>\n"
      "      tt.store %q, %x : !tt.ptr<f32>\n      tt.store %q, %y : !tt.ptr<f32>\n    }\n";
  const auto out = rewrite(text, kHoist, with_n(32, true));
  EXPECT_EQ(out.count("tt.load"), 2U) << out.body;
  EXPECT_EQ(rewrite(text, kHoist, with_n(64, true)).count("tt.load"), 3U)
      << "a pointer that moves: only the second loop's is invariant";
}

TEST(HoistLoads, what_no_trip_changes_is_read_ahead_of_a_loop_that_runs) {
  const auto text = [](const std::string& store) {
    return std::string(kBounds) +
           "    scf.for %i = %zero to %n step %step  : i32 {\n"
           "      %o = tt.addptr %p, %n : !tt.ptr<f32>, i32\n"
           "      %x = tt.load %o : !tt.ptr<f32>\n      tt.store " +
           store + ", %x : !tt.ptr<f32>\n    }\n";
  };
  const auto out = rewrite(text("%q"), kHoist, with_n(96, true));
  EXPECT_LT(out.body.find("tt.load"), out.body.find("scf.for")) << out.body;
  EXPECT_TRUE(out.changed("reads the same in every trip"));
  EXPECT_GT(rewrite(text("%q"), kHoist, with_n(0, true)).body.find("tt.load"),
            out.body.find("scf.for"));
  const auto stored = rewrite(text("%p"), kHoist, with_n(96, true));
  EXPECT_NE(stored.refused().find("no trip changes its address, but tt.store of line 8"),
            std::string::npos)
      << stored.refused();
  EXPECT_GT(
      rewrite(text("%q"), "[{\"pass\": \"hoist-loads\", \"invariant\": false}]", with_n(96, true))
          .body.find("tt.load"),
      out.body.find("scf.for"));
}

TEST(HoistLoads, a_product_that_its_load_leaves_behind_keeps_its_contraction) {
  const auto sum = [](const std::string& name) {
    return "    %" + name +
           " = scf.for %i = %zero to %n step %step iter_args(%acc = %a) -> (f32)  : i32 {\n"
           "      %x = tt.load %p : !tt.ptr<f32>\n      %m = arith.mulf %x, %x : f32\n"
           "      %s = arith.addf %acc, %m : f32\n      scf.yield %s : f32\n    }\n    tt.store "
           "%q, %" +
           name + " : !tt.ptr<f32>\n";
  };
  const auto out = rewrite(kBounds + sum("u") + sum("v"), kHoist, with_n(32, true));
  EXPECT_EQ(out.count("math.fma %x, %x, %acc"), 2U) << out.body;
}

TEST(RemoveDead, what_nothing_uses_goes_and_what_is_seen_stays) {
  const auto out = rewrite("    %u = arith.addi %n, %n : i32\n    %v = arith.addi %u, %n : i32\n"
                           "    %x = tt.load %p : !tt.ptr<f32>\n"
                           "    %y = tt.load %p {isVolatile = true} : !tt.ptr<f32>\n"
                           "    %z = tt.atomic_rmw fadd, relaxed, gpu, %q, %a, %d : (!tt.ptr<f32>, "
                           "f32, i1) -> f32\n    gpu.barrier\n",
                           "[\"remove-dead\"]");
  EXPECT_EQ(out.body, "    %y = tt.load %p {isVolatile = true} : !tt.ptr<f32>\n"
                      "    %z = tt.atomic_rmw fadd, relaxed, gpu, %q, %a, %d : (!tt.ptr<f32>, "
                      "f32, i1) -> f32\n    gpu.barrier\n");
  EXPECT_TRUE(out.changed("tt.load %x is erased"));
}

TEST(RemoveDead, a_carried_value_that_feeds_only_itself_stands_still) {
  const std::string text =
      std::string(kBounds) +
      "    %r:2 = scf.for %i = %zero to %n step %step iter_args(%u = %a, %v = %b) -> (f32, f32)  : "
      "i32 {\n      %x = arith.addf %u, %a : f32\n      %y = arith.addf %v, %b : f32\n"
      "      scf.yield %x, %y : f32, f32\n    }\n    tt.store %q, %r#1 : !tt.ptr<f32>\n";
  const auto out = rewrite(text, "[\"remove-dead\"]");
  EXPECT_EQ(out.count("scf.yield %u, %y"), 1U) << out.body;
  auto crossed = text; // the dead one feeds the other: it lives
  crossed.replace(crossed.find("arith.addf %v, %b"), 17, "arith.addf %v, %u");
  EXPECT_EQ(rewrite(crossed, "[\"remove-dead\"]").count("scf.yield %x, %y"), 1U);
  const auto loop_dead = text.substr(0, text.find("    tt.store"));
  EXPECT_EQ(rewrite(loop_dead, "[\"remove-dead\"]").body, "");
}

TEST(RemoveDead, a_loop_that_may_not_end_stays) {
  const auto out = rewrite("    scf.while : () -> () {\n      scf.condition(%c)\n    } do {\n"
                           "      scf.yield\n    }\n",
                           "[\"remove-dead\"]");
  EXPECT_EQ(out.count("scf.while"), 1U);
}

} // namespace
} // namespace hebe::rewrite
