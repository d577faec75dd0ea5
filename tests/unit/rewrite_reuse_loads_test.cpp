#include "rewrite_kernels.hpp"

namespace hebe::rewrite {
namespace {

constexpr const char* kReuse = "[\"reuse-loads\"]";

/// Two loads of %p with something between them.
std::string two(const std::string& between, const std::string& first = "%p",
                const std::string& second = "%p", const std::string& more = "") {
  return "    %x = tt.load " + first + " : !tt.ptr<f32>\n" + between + "    %y = tt.load " +
         second + more + " : !tt.ptr<f32>\n    %s = arith.maxnumf %x, %y : f32\n" +
         "    tt.store %q, %s : !tt.ptr<f32>\n";
}
const std::string kStore = "    tt.store %q, %a : !tt.ptr<f32>\n";

LaunchFacts disjoint() {
  LaunchFacts facts;
  facts.disjoint = true;
  return facts;
}

TEST(ReuseLoads, a_load_of_the_same_address_takes_the_earlier_value) {
  const auto out = rewrite(two(""), kReuse);
  EXPECT_EQ(out.body, "    %x = tt.load %p : !tt.ptr<f32>\n"
                      "    %s = arith.maxnumf %x, %x : f32\n"
                      "    tt.store %q, %s : !tt.ptr<f32>\n");
  EXPECT_TRUE(out.account.contracts.empty());
  EXPECT_EQ(out.account.exactness, Exactness::exact);
}

TEST(ReuseLoads, a_store_between_that_may_alias_keeps_the_second_load) {
  const auto out = rewrite(two(kStore), kReuse);
  EXPECT_EQ(out.refused(), "tt.load %y: tt.store of line 4 stands between, to another argument, "
                           "and nothing says that arguments are different memory\n");
  EXPECT_EQ(out.count("tt.load"), 2U);
}

TEST(ReuseLoads, a_store_to_another_argument_is_a_contract_where_arguments_are_disjoint) {
  const auto out = rewrite(two(kStore), kReuse, disjoint());
  EXPECT_EQ(out.count("tt.load"), 1U);
  ASSERT_EQ(out.account.contracts.size(), 1U);
  EXPECT_EQ(out.account.contracts[0].kind, Contract::Kind::disjoint_arguments);
}

TEST(ReuseLoads, a_store_to_the_same_argument_keeps_the_second_load_whatever_the_facts) {
  const auto out = rewrite(two("    %o = tt.addptr %p, %n : !tt.ptr<f32>, i32\n"
                               "    tt.store %o, %a : !tt.ptr<f32>\n"),
                           kReuse, disjoint());
  EXPECT_NE(out.refused().find("may change what is read"), std::string::npos) << out.refused();
}

TEST(ReuseLoads, a_pointer_of_an_unknown_origin_may_be_stored_to_by_anyone) {
  const auto out = rewrite("    %k = arith.extsi %n : i32 to i64\n"
                           "    %m = tt.int_to_ptr %k : i64 -> !tt.ptr<f32>\n" +
                               two(kStore, "%m", "%m"),
                           kReuse, disjoint());
  EXPECT_EQ(out.count("tt.load"), 2U);
}

TEST(ReuseLoads, addresses_that_the_launch_decides_are_equal_by_value) {
  // p + (n - 16), and p + 16: one place where n is 32, as a loop that counts down has it.
  const std::string body = "    %k = arith.constant 16 : i32\n"
                           "    %down = arith.subi %n, %k : i32\n"
                           "    %first = tt.addptr %p, %down : !tt.ptr<f32>, i32\n"
                           "    %second = tt.addptr %p, %k : !tt.ptr<f32>, i32\n" +
                           two("", "%first", "%second");
  const auto known = rewrite(body, kReuse, with_n(32));
  EXPECT_EQ(known.count("tt.load"), 1U);
  ASSERT_EQ(known.account.contracts.size(), 1U);
  EXPECT_EQ(known.account.contracts[0].argument, "n");
  EXPECT_EQ(rewrite(body, kReuse, with_n(48)).count("tt.load"), 2U);
  EXPECT_EQ(rewrite(body, kReuse).count("tt.load"), 2U);
}

TEST(ReuseLoads, addresses_that_are_one_expression_rest_on_no_fact) {
  const auto out =
      rewrite("    %at = tt.addptr %p, %n : !tt.ptr<f32>, i32\n" + two("", "%at", "%at"), kReuse,
              with_n(32));
  EXPECT_EQ(out.count("tt.load"), 1U);
  EXPECT_TRUE(out.account.contracts.empty());
}

TEST(ReuseLoads, an_offset_made_of_addresses_may_lead_into_any_argument) {
  const auto out = rewrite("    %pi = tt.ptr_to_int %p : !tt.ptr<f32> -> i64\n"
                           "    %qi = tt.ptr_to_int %q : !tt.ptr<f32> -> i64\n"
                           "    %gap = arith.subi %pi, %qi : i64\n"
                           "    %to = tt.addptr %q, %gap : !tt.ptr<f32>, i64\n" +
                               two("    tt.store %to, %a : !tt.ptr<f32>\n"),
                           kReuse, disjoint());
  EXPECT_EQ(out.count("tt.load"), 2U) << out.body;
}

TEST(ReuseLoads, volatile_loads_stay_on_either_side) {
  const std::string plain = "    %x = tt.load %p : !tt.ptr<f32>\n",
                    again = "    %y = tt.load %p : !tt.ptr<f32>\n",
                    use = "    tt.store %q, %x : !tt.ptr<f32>\n    tt.store %q, %y : "
                          "!tt.ptr<f32>\n",
                    fast = "    %x = tt.load %p {isVolatile = true} : !tt.ptr<f32>\n",
                    fast_again = "    %y = tt.load %p {isVolatile = true} : !tt.ptr<f32>\n";
  EXPECT_EQ(rewrite(plain + fast_again + use, kReuse, disjoint()).refused(),
            "tt.load %y: it is volatile\n");
  EXPECT_EQ(rewrite(fast + again + use, kReuse, disjoint()).refused(),
            "tt.load %x: it is volatile\ntt.load %y: the load of line 3 is volatile\n");
}

TEST(ReuseLoads, an_atomic_that_acquires_separates_even_disjoint_memory) {
  const auto atomic = [](const std::string& order) {
    return "    %o = tt.atomic_rmw fadd, " + order +
           ", gpu, %q, %a, %d : (!tt.ptr<f32>, f32, i1) "
           "-> f32\n";
  };
  const auto out = rewrite(two(atomic("acq_rel")), kReuse, disjoint());
  EXPECT_NE(out.refused().find("another program's stores may be seen"), std::string::npos)
      << out.refused();
  EXPECT_EQ(rewrite(two(atomic("relaxed")), kReuse, disjoint()).count("tt.load"), 1U);
  EXPECT_EQ(rewrite(two(atomic("relaxed")), kReuse).count("tt.load"), 2U);
}

TEST(ReuseLoads, a_barrier_and_a_call_separate) {
  EXPECT_NE(rewrite(two("    gpu.barrier\n"), kReuse, disjoint())
                .refused()
                .find("another thread's stores may be seen"),
            std::string::npos);
  EXPECT_NE(rewrite(two("    %o = tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {constraints = "
                        "\"=f,f\", packed_element = 1 : i32, pure = false} %a : f32 -> f32\n"),
                    kReuse, disjoint())
                .refused()
                .find("what it does to memory is not known"),
            std::string::npos);
}

TEST(ReuseLoads, warps_of_their_own_separate_and_do_not_take_values_from_outside) {
  const auto warps = [](const std::string& inside) {
    return "    ttg.warp_specialize()\n    default {\n" + inside +
           "      ttg.warp_yield\n    }\n    partition0() num_warps(4) {\n"
           "      ttg.warp_return\n    } : () -> ()\n";
  };
  EXPECT_NE(rewrite(two(warps("")), kReuse, disjoint()).refused().find("run side by side"),
            std::string::npos);
  const auto out = rewrite("    %x = tt.load %p : !tt.ptr<f32>\n    tt.store %q, %x : "
                           "!tt.ptr<f32>\n" +
                               warps("      %y = tt.load %p : !tt.ptr<f32>\n"
                                     "      tt.store %q, %y : !tt.ptr<f32>\n"),
                           kReuse, disjoint());
  EXPECT_EQ(out.refused(), "tt.load %y: the load of line 3 is of other warps\n");
}

TEST(ReuseLoads, a_store_later_in_a_loop_around_the_second_load_counts) {
  const std::string text = "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
                           "    %x = tt.load %p : !tt.ptr<f32>\n"
                           "    tt.store %q, %x : !tt.ptr<f32>\n"
                           "    scf.for %i = %zero to %n step %one  : i32 {\n"
                           "      %y = tt.load %p : !tt.ptr<f32>\n"
                           "      STORE\n    }\n";
  const auto with = [&](const std::string& store) {
    auto out = text;
    return out.replace(out.find("STORE"), 5, store);
  };
  EXPECT_EQ(rewrite(with("tt.store %p, %y : !tt.ptr<f32>"), kReuse, disjoint()).count("tt.load"),
            2U);
  EXPECT_EQ(rewrite(with("tt.store %q, %y : !tt.ptr<f32>"), kReuse, disjoint()).count("tt.load"),
            1U);
}

TEST(ReuseLoads, a_store_in_a_branch_counts_where_the_branch_leads_to_the_load) {
  const auto text = [](const std::string& then, const std::string& otherwise) {
    return "    %x = tt.load %p : !tt.ptr<f32>\n    tt.store %q, %x : !tt.ptr<f32>\n    scf.if %c "
           "{\n" +
           then + "    } else {\n" + otherwise + "    }\n";
  };
  const std::string store = "      tt.store %p, %a : !tt.ptr<f32>\n",
                    load = "      %y = tt.load %p : !tt.ptr<f32>\n"
                           "      tt.store %q, %y : !tt.ptr<f32>\n";
  EXPECT_EQ(rewrite(text(store, load), kReuse, disjoint()).count("tt.load"), 1U);
  EXPECT_EQ(rewrite(text(store + load, store), kReuse, disjoint()).count("tt.load"), 2U);
  EXPECT_EQ(rewrite(text(load + store, store), kReuse, disjoint()).count("tt.load"), 1U);
  EXPECT_EQ(rewrite(text(store, store) + "    %z = tt.load %p : !tt.ptr<f32>\n    tt.store %q, %z "
                                         ": !tt.ptr<f32>\n",
                    kReuse, disjoint())
                .count("tt.load"),
            2U);
}

TEST(ReuseLoads, a_load_of_one_branch_is_none_for_what_follows) {
  const auto out = rewrite("    scf.if %c {\n      %x = tt.load %p : !tt.ptr<f32>\n"
                           "      tt.store %q, %x : !tt.ptr<f32>\n    }\n"
                           "    %y = tt.load %p : !tt.ptr<f32>\n"
                           "    tt.store %q, %y : !tt.ptr<f32>\n",
                           kReuse, disjoint());
  EXPECT_EQ(out.refused(), "tt.load %y: the load of line 4 is not on every path that leads here\n");
}

TEST(ReuseLoads, a_store_in_another_block_of_the_function_counts) {
  const auto text = [](const std::string& store) {
    return "    %x = tt.load %p : !tt.ptr<f32>\n    tt.store %q, %x : !tt.ptr<f32>\n"
           "    cf.cond_br %c, ^bb1, ^bb2\n  ^bb1:\n" +
           store +
           "    cf.br ^bb2\n  ^bb2:\n    %y = tt.load %p : !tt.ptr<f32>\n"
           "    tt.store %q, %y : !tt.ptr<f32>\n";
  };
  EXPECT_EQ(
      rewrite(text("    tt.store %p, %a : !tt.ptr<f32>\n"), kReuse, disjoint()).count("tt.load"),
      2U);
  EXPECT_EQ(rewrite(text(""), kReuse, disjoint()).count("tt.load"), 1U);
}

TEST(ReuseLoads, lanes_that_were_not_read_keep_the_second_load) {
  EXPECT_EQ(rewrite(two("", "%p, %c", "%p"), kReuse).refused(),
            "tt.load %y: the load of line 3 reads under another mask, %c, and nothing says that "
            "this one's lanes are among them\n");
  EXPECT_EQ(rewrite(two("", "%p, %c", "%p, %d"), kReuse).count("tt.load"), 2U);
  const auto either = "    %e = arith.ori %c, %d : i1\n";
  EXPECT_EQ(rewrite(either + two("", "%p, %c", "%p, %e"), kReuse).count("tt.load"), 2U);
}

TEST(ReuseLoads, fewer_lanes_or_the_same_are_reused_with_the_later_other) {
  const auto all = rewrite(two("", "%p", "%p, %c, %a"), kReuse);
  EXPECT_NE(all.body.find("%y = arith.select %c, %x, %a : f32"), std::string::npos) << all.body;
  const auto undefined = rewrite(two("", "%p, %c", "%p, %c"), kReuse);
  EXPECT_EQ(undefined.count("arith.select"), 0U);
  EXPECT_EQ(undefined.count("tt.load"), 1U);
  const auto same = rewrite(two("", "%p, %c, %a", "%p, %c, %a"), kReuse);
  EXPECT_EQ(same.count("arith.select"), 0U);
  const auto other = rewrite(two("", "%p, %c, %a", "%p, %c, %b"), kReuse);
  EXPECT_NE(other.body.find("%y = arith.select %c, %x, %b : f32"), std::string::npos) << other.body;
  const auto both = "    %e = arith.andi %d, %c : i1\n    %g = arith.andi %e, %d : i1\n";
  const auto nested = rewrite(both + two("", "%p, %c, %a", "%p, %g, %b"), kReuse);
  EXPECT_NE(nested.body.find("%y = arith.select %g, %x, %b : f32"), std::string::npos)
      << nested.body;
}

TEST(ReuseLoads, a_mask_that_the_launch_makes_true_reads_every_lane) {
  const auto text = "    %z = arith.constant 0 : i32\n    %m = arith.cmpi sgt, %n, %z : i32\n" +
                    two("", "%p, %m", "%p");
  const auto out = rewrite(text, kReuse, with_n(5));
  EXPECT_EQ(out.count("tt.load"), 1U);
  ASSERT_EQ(out.account.contracts.size(), 1U);
  EXPECT_EQ(out.account.contracts[0].argument, "n");
  EXPECT_EQ(rewrite(text, kReuse, with_n(0)).count("tt.load"), 2U);
  EXPECT_EQ(rewrite(text, kReuse).count("tt.load"), 2U);
}

TEST(ReuseLoads, equal_addresses_are_found_and_their_expressions_merged) {
  const std::string ranged =
      "    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
      "    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>\n";
  const auto load = [](const std::string& name) {
    return "    %o" + name + " = tt.addptr %ps, %r : tensor<8x!tt.ptr<f32>>, tensor<8xi32>\n    %" +
           name + " = tt.load %o" + name + " : tensor<8x!tt.ptr<f32>>\n    tt.store %o" + name +
           ", %" + name + " : tensor<8x!tt.ptr<f32>>\n";
  };
  EXPECT_EQ(rewrite(ranged + load("x") + load("y"), kReuse, disjoint()).count("tt.load"), 2U);
  auto text = ranged + load("x") + load("y");
  text.erase(text.find("    tt.store"), text.find("    %oy") - text.find("    tt.store"));
  const auto out = rewrite(text, kReuse, disjoint());
  EXPECT_EQ(out.count("tt.load"), 1U);
  EXPECT_EQ(out.count("tt.addptr"), 1U) << out.body;
  const auto apart =
      rewrite("    %u = tt.addptr %p, %n : !tt.ptr<f32>, i32\n" + two("", "%p", "%u"), kReuse);
  EXPECT_EQ(apart.refused(), "tt.load %y: no load before it reads the same addresses\n");
}

TEST(ReuseLoads, another_layout_is_refused_and_converted_where_asked) {
  const auto side = [](const std::string& name, const std::string& layout) {
    const std::string t = "tensor<8x!tt.ptr<f32>, " + layout + ">", i = "tensor<8xi32, " + layout;
    return "    %r" + name + " = tt.make_range {end = 8 : i32, start = 0 : i32} : " + i + ">\n" +
           "    %s" + name + " = tt.splat %p : !tt.ptr<f32> -> " + t + "\n    %o" + name +
           " = tt.addptr %s" + name + ", %r" + name + " : " + t + ", " + i + ">\n    %" + name +
           " = tt.load %o" + name + " : " + t + "\n    tt.store %o" + name + ", %" + name + " : " +
           t + "\n";
  };
  auto text = side("x", "#one") + side("y", "#two");
  text.erase(text.find("    tt.store"), text.find("    %ry") - text.find("    tt.store"));
  const auto out = rewrite(text, kReuse, disjoint());
  EXPECT_NE(out.refused().find("in another layout (#one, not #two)"), std::string::npos)
      << out.refused();
  const auto converted =
      rewrite(text, "[{\"pass\": \"reuse-loads\", \"convert\": true}]", disjoint());
  EXPECT_EQ(converted.count("tt.load"), 1U);
  EXPECT_EQ(converted.count("ttg.convert_layout %x : tensor<8xf32, #one> -> tensor<8xf32, #two>"),
            1U)
      << converted.body;
}

TEST(ReuseLoads, hints_that_differ_are_said) {
  const auto out = rewrite(two("", "%p", "%p", " evictionPolicy = evict_last"), kReuse);
  EXPECT_TRUE(out.changed("its none evict_last is gone, none evict_normal stays"));
}

TEST(ReuseLoads, which_reads_are_retained_can_be_chosen) {
  std::string text;
  for (const auto* name : {"x", "y", "z"})
    text += std::string("    %") + name + " = tt.load %p : !tt.ptr<f32>\n    tt.store %q, %" +
            name + " : !tt.ptr<f32>\n";
  const auto with = [&](const std::string& options) {
    return rewrite(text, "[{\"pass\": \"reuse-loads\", " + options + "}]", disjoint());
  };
  EXPECT_EQ(with("\"only\": []").count("tt.load"), 3U);
  const auto variance = with("\"only\": [2]");
  EXPECT_EQ(variance.count("tt.load"), 2U);
  EXPECT_EQ(variance.count("%z = tt.load"), 1U);
  const auto normalisation = with("\"only\": [3]");
  EXPECT_EQ(normalisation.count("%y = tt.load"), 1U);
  EXPECT_TRUE(normalisation.changed("takes the value of the load of line 5")) << "the nearest";
  EXPECT_EQ(with("\"only\": [2, 3]").count("tt.load"), 1U);
  EXPECT_EQ(with("\"arguments\": [\"q\"]").count("tt.load"), 3U);
}

TEST(ReuseLoads, wrong_options_are_bad_specs) {
  for (const auto* options :
       {"{\"pass\": \"reuse-loads\", \"arguments\": [\"r\"]}",
        "{\"pass\": \"reuse-loads\", \"only\": [0]}", "{\"pass\": \"reuse-loads\", \"only\": 2}",
        "{\"pass\": \"reuse-loads\", \"convert\": 1}"}) {
    const auto requests = requests_from(Json::array({Json::parse(options)}), "test");
    ASSERT_TRUE(requests) << options;
    const auto out = apply("module {\n  tt.func public @f(%p: !tt.ptr<f32>) {\n    tt.return\n  "
                           "}\n}\n",
                           *requests, {});
    ASSERT_FALSE(out) << options;
    EXPECT_EQ(out.error().code, RefusalCode::bad_spec);
  }
}

TEST(ReuseLoads, a_product_that_its_load_leaves_behind_in_a_loop_keeps_its_contraction) {
  const auto out = rewrite("    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"
                           "    %x = tt.load %p : !tt.ptr<f32>\n"
                           "    %r = scf.for %i = %zero to %n step %one iter_args(%acc = %x) -> "
                           "(f32)  : i32 {\n"
                           "      %y = tt.load %p : !tt.ptr<f32>\n"
                           "      %m = arith.mulf %y, %y : f32\n"
                           "      %s = arith.addf %acc, %m : f32\n"
                           "      scf.yield %s : f32\n    }\n"
                           "    tt.store %q, %r : !tt.ptr<f32>\n",
                           kReuse);
  EXPECT_EQ(out.count("math.fma %x, %x, %acc"), 1U) << out.body;
}

} // namespace
} // namespace hebe::rewrite
