// Facts about two arms over one set of buffers: a wrong kernel is refused, and where it is wrong.
#include "qualify/workload.hpp"

#include "core/sha256.hpp"
#include "kernel/inputs.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "../data/support/scratch_folder.hpp"
#include "../data/support/sim_gpu.hpp"

namespace hebe::qualify {
namespace {

// A case with its oracle's output on disk; the simulated GPU takes its outputs from there.
struct Subject {
  explicit Subject(Json launch = test::vector_launch(), std::vector<gpu::Fault> faults = {})
      : sim(1, std::move(faults)) {
    compiled.launch = kernel::LaunchSpec::from_json(launch, "test").value();
    for (const auto& a : compiled.launch.arguments)
      if (a.is_buffer && a.role != kernel::Role::in) {
        test::overwrite(folder / a.name, std::string(a.bytes().count, '\x3f')); // 0.747 in fp32
        expected[a.name] = {folder / a.name, a.dtype};
      }
  }
  Result<Workload> made() {
    return Workload::make(sim.device, {&compiled, &compiled}, {&expected, &expected});
  }

  test::ScratchFolder folder;
  test::SimGpu sim;
  kernel::CompiledCase compiled;
  ExpectedOutputs expected;
};

TEST(Workload, a_right_kernel_passes_with_its_digests_recorded) {
  Subject s;
  auto w = s.made().value();
  const auto check = w.check();
  ASSERT_TRUE(check) << check.error().what;
  for (const char* arm : {"A", "B"}) {
    const auto& out = check->at(arm).at("out_ptr");
    EXPECT_EQ(out.at("elements"), 1024);
    EXPECT_EQ(out.at("sha256"), sha256_hex(std::string(4096, '\x3f')));
  }
  EXPECT_EQ(check->at("canaries"), "intact");
  EXPECT_NE(check->at("oracle").get<std::string>().find("simulated"),
            std::string::npos); // and says what it is worth
}

TEST(Workload, the_wrong_output_fault_is_found_with_arm_and_element) {
  Subject s(test::vector_launch(), test::faults_from({"wrong_output"}));
  auto w = s.made().value();
  const auto check = w.check();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code, RefusalCode::wrong_output);
  EXPECT_NE(check.error().what.find(
                "arm A: output \"out_ptr\": 1 of 1024 elements are wrong; first at 0"),
            std::string::npos)
      << check.error().what;
}

TEST(Workload, an_oracle_output_that_is_too_short_or_missing_is_the_cases_fault) {
  Subject s;
  test::overwrite(s.folder / "out_ptr", std::string(4095, '\x3f'));
  auto w = s.made().value();
  EXPECT_EQ(w.check().error().code, RefusalCode::case_failed);
  std::filesystem::remove(s.folder / "out_ptr");
  EXPECT_EQ(w.check().error().code, RefusalCode::io_failed);
}

// Arm B of another case: its arguments in another order, another scalar, an oracle of its own.
struct Other {
  explicit Other(const Subject& a, char output) : compiled(a.compiled) {
    auto json = test::vector_launch();
    auto& list = json["arguments"];
    list = {list[3], list[2], list[1], list[0]};
    list[0]["value"] = 17;
    list[0]["name"] = "rows";
    compiled.launch = kernel::LaunchSpec::from_json(json, "test").value();
    test::overwrite(a.folder / "other", std::string(4096, output));
    expected["out_ptr"] = {a.folder / "other", kernel::DType::fp32};
  }
  kernel::CompiledCase compiled;
  ExpectedOutputs expected;
};

TEST(Workload, another_case_with_the_same_buffers_is_checked_against_its_own_oracle) {
  Subject s;
  for (const char output : {'\x3f', '\x3e'}) {
    Other other(s, output);
    auto w =
        Workload::make(s.sim.device, {&s.compiled, &other.compiled}, {&s.expected, &other.expected})
            .value();
    const auto check = w.check();
    ASSERT_TRUE(check) << check.error().what;
    const bool same = output == '\x3f';
    EXPECT_EQ(check->at("B_against_A").at("out_ptr"), same ? "equal bits" : "different bits");
    EXPECT_EQ(check->at("B").at("out_ptr").at("sha256"), sha256_hex(std::string(4096, output)));
    EXPECT_EQ(w.check(true).has_value(), same) << "where arms must agree in every bit";
  }
}

// out = x·x + y, with %r made by `sum`.
std::string square_plus(const std::string& sum) {
  const std::string tensor = "tensor<1024xf32>", pointers = "tensor<1024x!tt.ptr<f32>>";
  const auto at = [&](const std::string& of) {
    return "    %" + of + "s = tt.splat %" + of + " : !tt.ptr<f32> -> " + pointers + "\n    %" +
           of + "a = tt.addptr %" + of + "s, %i : " + pointers + ", tensor<1024xi32>\n";
  };
  return "module {\n  tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %o: !tt.ptr<f32>, "
         "%n: i32) {\n    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : "
         "tensor<1024xi32>\n" +
         at("x") + at("y") + at("o") + "    %v = tt.load %xa : " + pointers +
         "\n    %w = tt.load %ya : " + pointers + "\n" + sum +
         "    tt.store %oa, %r : " + pointers + "\n    tt.return\n  }\n}\n";
}

TEST(Workload, a_contraction_written_down_gives_the_bits_that_the_compiler_gives) {
  const auto squares = square_plus("    %m = arith.mulf %v, %v : tensor<1024xf32>\n"
                                   "    %r = arith.addf %m, %w : tensor<1024xf32>\n");
  const auto fused = square_plus("    %r = math.fma %v, %v, %w : tensor<1024xf32>\n");
  for (const bool fusion : {true, false}) {
    auto json = test::vector_launch();
    json["grid"] = {1, 1, 1};
    json["tolerance"] = {{"atol", 10}, {"rtol", 0}};
    Subject s(json);
    s.compiled.ttgir = squares;
    s.compiled.provenance = {{"options", {{"enable_fp_fusion", fusion}}}};
    auto other = s.compiled;
    other.ttgir = fused;
    auto w = Workload::make(s.sim.device, {&s.compiled, &other}, {&s.expected, &s.expected});
    ASSERT_TRUE(w) << to_text(w.error());
    const auto check = w->check(true);
    EXPECT_EQ(check.has_value(), fusion)
        << (check ? "without fp fusion the product is rounded" : check.error().what);
  }
}

TEST(Workload, one_launch_has_no_other_arm_to_be_compared_with) {
  Subject s;
  EXPECT_FALSE(s.made().value().check().value().contains("B_against_A"));
}

TEST(Workload, arms_with_other_arguments_make_no_contrast) {
  Subject s;
  const std::pair<const char*, Json> table[] = {
      {"/arguments/0/dtype", "fp16"},
      {"/arguments/0/shape/0", 2048},
      {"/arguments/0/name", "z_ptr"},
      {"/arguments/2/role", "inout"},
  };
  for (const auto& [pointer, value] : table) {
    auto json = test::vector_launch();
    json[Json::json_pointer(pointer)] = value;
    if (value == "inout") json["arguments"][2]["init"] = {{"kind", "zeros"}};
    auto other = s.compiled;
    other.launch = kernel::LaunchSpec::from_json(json, "test").value();
    EXPECT_EQ(Workload::make(s.sim.device, {&s.compiled, &other}, {&s.expected, &s.expected})
                  .error()
                  .code,
              RefusalCode::bad_spec)
        << pointer;
  }
}

TEST(Workload, inout_buffers_start_from_their_input_at_every_launch) {
  auto json = test::vector_launch();
  json["arguments"][2]["role"] = "inout";
  json["arguments"][2]["init"] = {{"kind", "zeros"}};
  Subject s(json);
  auto w = s.made().value();
  EXPECT_TRUE(w.check());
}

TEST(Workload, input_files_are_the_bytes_that_the_device_gets) {
  Subject s;
  const auto files = write_inputs(s.compiled.launch, s.folder.path()).value();
  ASSERT_EQ(files.paths.size(), 2U); // x and y; out has none
  for (const auto& a : s.compiled.launch.arguments) {
    if (!a.is_buffer || a.role == kernel::Role::out) continue;
    std::vector<std::byte> bytes(a.bytes().count);
    kernel::generate(*a.init, a.dtype, 0, bytes);
    const auto file = test::bytes_of(files.paths.at(a.name));
    ASSERT_EQ(file.size(), bytes.size());
    EXPECT_EQ(std::memcmp(file.data(), bytes.data(), bytes.size()), 0) << a.name;
    EXPECT_EQ(files.digests.at(a.name), sha256_hex(file));
  }
  EXPECT_NE(files.digests.at("x_ptr"), files.digests.at("y_ptr"));
  EXPECT_FALSE(write_inputs(s.compiled.launch, s.folder.path())); // never over an existing file
}

TEST(Workload, occupancy_of_the_simulated_gpu_is_unavailable_with_a_reason) {
  Subject s;
  auto w = s.made().value();
  EXPECT_NE(w.occupancy().at("A").at("unavailable").get<std::string>(), "");
}

} // namespace
} // namespace hebe::qualify
