// Facts about the cuBLASLt backend, on a made library that computes what its descriptors say.
#include "core/sha256.hpp"
#include "gpu/sim_device.hpp"
#include "tune/cublaslt_backend.hpp"
#include "tune/prepared_shape.hpp"

#include <dlfcn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "matmul_launch.hpp"

namespace hebe::tune {
namespace {
using testing::HasSubstr, testing::IsEmpty, testing::SizeIs;

constexpr const char* kMade = HEBE_MADE_CUBLASLT;

template <class Function> Function made(const char* name) {
  static void* library = ::dlopen(kMade, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(::dlsym(library, name));
}
void fail(const char* call, int status) {
  made<void (*)(const char*, int)>("made_fail")(call, status);
}
std::string log() { return made<const char* (*)()>("made_log")(); }
int live() { return made<int (*)()>("made_live")(); }

class CublasLtTest : public testing::Test {
protected:
  void SetUp() override { made<void (*)()>("made_reset")(); }
  void TearDown() override { EXPECT_EQ(live(), 0) << "not destroyed:\n" << log(); }

  static BackendSpec spec() {
    BackendSpec b;
    b.name = b.kind = "cublaslt";
    b.where = "backends[1]";
    for (const char* d : {"m", "n", "k"}) b.sizes[d] = d;
    return b;
  }
  static gpu::DeviceInfo info(bool simulated) {
    auto out = gpu::sim_device_info();
    out.simulated = simulated;
    return out;
  }
  static CublasLtBackend backend(const std::string& file = kMade) {
    return CublasLtBackend(spec(), {file, CublasLt::names(), {}});
  }
  Bench bench(const std::string& dtype = "fp16") {
    return {device, preparer, "unused", dtype, nullptr};
  }
  Bench simulated_bench() { return {simulated, preparer, "unused", "fp16", nullptr}; }

  VirtualClock clock;
  gpu::SimBoard board{clock, gpu::BoardModel{}, 0, {}};
  gpu::SimDevice device{board, info(false)}, simulated{board, info(true)};
  campaign::CasePreparer preparer{{}};
  Shape shape{"decode", {{"m", 2}, {"n", 3}, {"k", 4}}};
};

TEST_F(CublasLtTest, offers_the_librarys_choices_and_names_each_algorithm) {
  auto b = backend();
  const auto offer = b.offer(shape, bench());
  ASSERT_TRUE(offer) << to_text(offer.error());
  EXPECT_THAT(offer->unavailable, IsEmpty());
  ASSERT_THAT(offer->candidates, SizeIs(2)); // the third was not a success
  const auto& c = offer->candidates[1];
  EXPECT_EQ(c.name, "cublaslt.matmul");
  EXPECT_EQ(c.configuration.at("id"), 66);
  EXPECT_EQ(c.configuration.at("tile"), 21);
  EXPECT_EQ(c.configuration.at("split_k"), 2);
  EXPECT_EQ(c.configuration.at("cluster"), nullptr); // this library does not say
  EXPECT_EQ(c.configuration.at("workspace_bytes"), 32 << 20);
  const auto back = choice_from(c.configuration, "here");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->algorithm.data,
            (std::array<std::uint64_t, 8>{66, 21, 2, 0xffffffffffffffff, 0, 0, 0, 0xabcd}));
  EXPECT_THAT(log(), HasSubstr("compute 68 scale 0"));
  EXPECT_THAT(log(), HasSubstr("workspace 33554432"));
  EXPECT_THAT(log(), HasSubstr("cublasLtMatmulAlgoGetHeuristic 8"));
}

TEST_F(CublasLtTest, a_prepared_candidate_is_bound_to_the_librarys_file_and_its_workspace) {
  campaign::PreparedCase baseline;
  baseline.compiled.launch = test::matmul_launch(2, 3, 4);
  auto at = bench();
  auto b = backend();
  const auto offer = b.offer(shape, at);
  ASSERT_TRUE(offer);
  at.baseline = &baseline;
  const auto prepared = b.prepare(offer->candidates.at(1), shape, at);
  ASSERT_TRUE(prepared) << to_text(prepared.error());
  EXPECT_EQ(prepared->version, "13.1.2");
  EXPECT_EQ(prepared->artifact_sha256, *sha256_of_file(kMade));
  const auto& compiled = std::get<DeviceCode>(prepared->code)->compiled;
  EXPECT_EQ(compiled.artifacts.at("library"), *sha256_of_file(kMade));
  EXPECT_EQ(compiled.launch.global_scratch.bytes, 32U << 20);
  std::vector<std::byte> a(2 * 8), c(2 * 6), m(2 * 12);
  const auto address = [](auto& v) { return reinterpret_cast<std::uint64_t>(v.data()); };
  const auto operation =
      compiled.library_call(std::vector<std::uint64_t>{address(a), address(c), address(m)}, 4096);
  ASSERT_TRUE(operation) << to_text(operation.error());
  ASSERT_TRUE((*operation)(reinterpret_cast<void*>(77)));
  EXPECT_THAT(log(), HasSubstr("cublasLtMatmul workspace 33554432 at 4096 stream 77"));
}

// What a wrong descriptor, or two operands that change places, would give: sizes that differ, two
// that are equal, and a square, where nothing but the values tells.
TEST_F(CublasLtTest, a_prepared_candidate_computes_the_product_of_matrices_that_lie_row_by_row) {
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] : {Sizes{2, 3, 4}, {1, 5, 3}, {3, 3, 2}, {4, 2, 4}, {4, 4, 4}})
    for (const std::string dtype : {"fp16", "bf16"}) {
      campaign::PreparedCase baseline;
      baseline.compiled.launch = test::matmul_launch(m, n, k, dtype);
      auto at = bench(dtype);
      auto b = backend();
      const Shape sizes{"made", {{"m", m}, {"n", n}, {"k", k}}};
      const auto offer = b.offer(sizes, at);
      ASSERT_TRUE(offer);
      at.baseline = &baseline;
      const auto prepared = b.prepare(offer->candidates.at(0), sizes, at);
      ASSERT_TRUE(prepared) << to_text(prepared.error());
      const auto type = *kernel::dtype_from(dtype);
      // Room behind each, so that a wrong layout gives wrong values and no crash.
      const auto matrix = [&](std::int64_t rows, std::int64_t columns, auto value) {
        constexpr std::size_t kBehind = 4096;
        const auto elements = static_cast<std::size_t>(rows * columns);
        std::vector<std::byte> out(2 * elements + kBehind);
        for (std::size_t i = 0; i < elements; ++i) kernel::store(value(i), type, &out[2 * i]);
        return out;
      };
      auto first = matrix(m, k, [](std::size_t i) { return static_cast<double>(i) - 3; });
      auto second = matrix(k, n, [](std::size_t i) { return static_cast<double>(i % 5) - 1; });
      auto result = matrix(m, n, [](std::size_t) { return -99.0; });
      const auto address = [](auto& v) { return reinterpret_cast<std::uint64_t>(v.data()); };
      const auto operation =
          std::get<DeviceCode>(prepared->code)
              ->compiled.library_call( // in the order of the launch: a, c, b
                  std::vector<std::uint64_t>{address(first), address(result), address(second)}, 0);
      ASSERT_TRUE(operation) << to_text(operation.error());
      ASSERT_TRUE((*operation)(nullptr)) << m << n << k;
      for (std::int64_t row = 0; row < m; ++row)
        for (std::int64_t column = 0; column < n; ++column) {
          const auto element = [&](auto& of, std::int64_t index) {
            return kernel::element(of, type, static_cast<std::size_t>(index));
          };
          double sum = 0;
          for (std::int64_t i = 0; i < k; ++i)
            sum += element(first, k * row + i) * element(second, n * i + column);
          EXPECT_EQ(element(result, n * row + column), sum)
              << dtype << ' ' << m << 'x' << n << 'x' << k << " at " << row << ',' << column;
        }
    }
}

TEST_F(CublasLtTest, a_library_that_is_missing_is_unavailable_with_the_loaders_reason) {
  auto b = backend("/nowhere/libcublasLt.so.13");
  const auto offer = b.offer(shape, bench());
  ASSERT_TRUE(offer);
  EXPECT_THAT(offer->candidates, IsEmpty());
  ASSERT_THAT(offer->unavailable, SizeIs(1));
  EXPECT_EQ(offer->unavailable[0].why.code, RefusalCode::toolchain_unavailable);
  EXPECT_THAT(offer->unavailable[0].why.what, HasSubstr("/nowhere/libcublasLt.so.13"));
  EXPECT_TRUE(cannot_run(offer->unavailable[0].why.code));
}

TEST_F(CublasLtTest, a_library_without_the_entry_points_is_unavailable_by_their_names) {
  auto b = backend("libm.so.6");
  const auto offer = b.offer(shape, bench());
  ASSERT_TRUE(offer);
  ASSERT_THAT(offer->unavailable, SizeIs(1));
  EXPECT_THAT(offer->unavailable[0].why.what, HasSubstr("cublasLtMatmulAlgoGetHeuristic"));
}

TEST_F(CublasLtTest, folders_of_packages_are_searched_after_the_loaders_path) {
  const std::filesystem::path file(kMade);
  const auto found = CublasLt::open({{}, {file.filename()}, {"/nowhere", file.parent_path()}});
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_TRUE(std::filesystem::equivalent((*found)->file(), file));
  EXPECT_THAT(CublasLt::folders_in("/site"),
              testing::ElementsAre("/site/nvidia/cu13/lib", "/site/nvidia/cublas/lib"));
}

TEST_F(CublasLtTest, the_simulated_gpu_runs_no_library) {
  auto b = backend();
  const auto offer = b.offer(shape, simulated_bench());
  ASSERT_TRUE(offer);
  EXPECT_THAT(offer->candidates, IsEmpty());
  ASSERT_THAT(offer->unavailable, SizeIs(1));
  EXPECT_EQ(offer->unavailable[0].why.code, RefusalCode::no_device);
  EXPECT_EQ(log(), "");
}

TEST_F(CublasLtTest, another_type_is_unavailable_and_another_dimension_a_wrong_specification) {
  auto b = backend();
  const auto offer = b.offer(shape, bench("fp32"));
  ASSERT_TRUE(offer);
  ASSERT_THAT(offer->unavailable, SizeIs(1));
  EXPECT_EQ(offer->unavailable[0].why.code, RefusalCode::unsupported);
  EXPECT_THAT(offer->unavailable[0].why.what, HasSubstr("fp16, bf16, not fp32"));
  auto other = spec();
  other.sizes["k"] = "depth";
  CublasLtBackend without(other, {kMade, {}, {}});
  const auto refused = without.offer(shape, bench());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::bad_spec);
}

TEST_F(CublasLtTest, a_shape_for_which_the_library_has_nothing_is_unavailable) {
  made<void (*)(int)>("made_heuristics")(0);
  auto b = backend();
  auto offer = b.offer(shape, bench());
  ASSERT_TRUE(offer);
  ASSERT_THAT(offer->unavailable, SizeIs(1));
  EXPECT_THAT(offer->unavailable[0].why.what, HasSubstr("no algorithm for 2 x 3 x 4 in fp16"));
  fail("cublasLtMatmulAlgoGetHeuristic", 15); // its other word for it
  offer = b.offer(shape, bench());
  ASSERT_THAT(offer->unavailable, SizeIs(1));
  EXPECT_THAT(offer->unavailable[0].why.what, HasSubstr("no algorithm for 2 x 3 x 4 in fp16"));
}

TEST_F(CublasLtTest, every_call_that_fails_names_itself_and_leaves_nothing_behind) {
  const MatmulProblem problem{2, 3, 4, kernel::DType::fp16};
  const auto library = CublasLt::open({kMade, {}, {}});
  ASSERT_TRUE(library);
  cublaslt::Algorithm algorithm;
  algorithm.data[0] = 66;
  for (const char* call :
       {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate", "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"}) {
    SetUp();
    fail(call, 14);
    const auto got = matmul_heuristics(*library, problem, 0, 8);
    ASSERT_FALSE(got) << call;
    EXPECT_EQ(got.error().code, RefusalCode::driver_call_failed);
    EXPECT_EQ(got.error().where, call);
    EXPECT_THAT(got.error().what, HasSubstr("CUBLAS_STATUS_MADE (14), as the test asked"));
    EXPECT_EQ(live(), 0) << call;
  }
  SetUp();
  fail("cublasLtMatmulAlgoCheck", 15);
  const auto unsupported = matmul_operation(*library, problem, algorithm, {});
  ASSERT_FALSE(unsupported);
  EXPECT_EQ(unsupported.error().code, RefusalCode::unsupported);
  SetUp();
  fail("cublasLtMatmul", 13);
  const auto operation = matmul_operation(*library, problem, algorithm, {});
  ASSERT_TRUE(operation);
  const auto ran = (*operation)(nullptr);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, RefusalCode::driver_call_failed);
  EXPECT_EQ(ran.error().where, "cublasLtMatmul");
}

TEST_F(CublasLtTest, an_algorithm_that_needs_more_workspace_than_it_has_is_refused) {
  const auto library = CublasLt::open({kMade, {}, {}});
  cublaslt::Algorithm algorithm;
  algorithm.data[0] = 66;
  algorithm.data[1] = 21;
  const auto got = matmul_operation(*library, {2, 3, 4, kernel::DType::fp16}, algorithm,
                                    {1, 2, 3, 4, (1 << 20) - 1});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, RefusalCode::unsupported);
  EXPECT_THAT(got.error().what, HasSubstr("1048576 bytes, it has 1048575"));
}

TEST_F(CublasLtTest, a_configuration_without_an_algorithm_is_a_wrong_specification) {
  const auto b = backend();
  for (const Json& configuration :
       {Json::object(), Json{{"algorithm", "66"}, {"workspace_bytes", 0}},
        Json{{"algorithm", std::string(127, '0') + "x"}, {"workspace_bytes", 0}},
        Json{{"algorithm", std::string(128, '0')}}}) {
    const auto got = b.named(configuration);
    ASSERT_FALSE(got) << configuration;
    EXPECT_EQ(got.error().code, RefusalCode::bad_spec);
  }
}

TEST_F(CublasLtTest, it_takes_the_place_of_a_product_only_and_is_never_the_baseline) {
  auto b = backend();
  const auto offer = b.offer(shape, bench());
  ASSERT_TRUE(offer);
  auto got = b.prepare(offer->candidates[0], shape, bench());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, RefusalCode::bad_spec);
  campaign::PreparedCase other;
  other.compiled.launch = test::matmul_launch(2, 4, 3);
  auto at = bench();
  at.baseline = &other;
  got = b.prepare(offer->candidates[0], shape, at);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().what, HasSubstr("is not c[2,3] = a[2,4] b[4,3] in fp16"));
}

} // namespace
} // namespace hebe::tune
