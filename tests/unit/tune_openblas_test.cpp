// Facts about the backend of OpenBLAS as a tune prepares it, on a made library that computes.
#include "core/sha256.hpp"
#include "gpu/sim_device.hpp"
#include "kernel/inputs.hpp"
#include "tune/openblas_backend.hpp"

#include <dlfcn.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "matmul_launch.hpp"

namespace hebe::tune {
namespace {
using testing::HasSubstr;

constexpr const char* kMade = HEBE_MADE_OPENBLAS;
void idle(int on) {
  reinterpret_cast<void (*)(int)>(::dlsym(::dlopen(kMade, RTLD_NOW), "made_idle"))(on);
}

class PreparedProduct : public testing::Test {
protected:
  void TearDown() override { idle(0); }
  static BackendSpec spec() {
    BackendSpec b;
    b.name = b.kind = "openblas";
    b.where = "backends[1]";
    for (const char* d : {"m", "n", "k"}) b.sizes[d] = d;
    return b;
  }
  static gpu::DeviceInfo real() {
    auto out = gpu::sim_device_info();
    out.simulated = false;
    return out;
  }
  Result<Prepared> prepare(const kernel::LaunchSpec& launch, const Shape& shape) {
    baseline.compiled.launch = launch;
    const Bench bench{device, preparer, "unused", "fp32", &baseline};
    OpenBlasBackend backend(spec(), {kMade, {}, {}}, []() -> Status { return {}; });
    HEBE_TRY(const auto offer, backend.offer(shape, bench));
    return backend.prepare(offer.candidates.at(0), shape, bench);
  }

  VirtualClock clock;
  gpu::SimBoard board{clock, gpu::BoardModel{}, 0, {}};
  gpu::SimDevice device{board, real()};
  campaign::CasePreparer preparer{{}};
  campaign::PreparedCase baseline;
};

std::vector<float> values(const kernel::LaunchSpec& launch, const std::string& name) {
  for (const auto& a : launch.arguments) {
    if (a.name != name) continue;
    std::vector<float> out(a.bytes().count / sizeof(float));
    EXPECT_TRUE(kernel::for_each_chunk(a, [&](std::size_t at, auto chunk) -> Status {
      std::memcpy(reinterpret_cast<std::byte*>(out.data()) + at, chunk.data(), chunk.size());
      return {};
    }));
    return out;
  }
  return {};
}

struct Sizes {
  std::int64_t m, n, k;
};
Shape shape_of(const Sizes& s) { return {"made", {{"m", s.m}, {"n", s.n}, {"k", s.k}}}; }

TEST_F(PreparedProduct, multiplies_the_baselines_inputs_in_its_order) {
  for (const auto& s : {Sizes{2, 3, 4}, {1, 5, 3}, {3, 3, 2}, {4, 4, 4}}) {
    const auto launch = test::matmul_launch(s.m, s.n, s.k, "fp32");
    const auto prepared = prepare(launch, shape_of(s));
    ASSERT_TRUE(prepared) << to_text(prepared.error());
    EXPECT_EQ(prepared->version, "OpenBLAS 0.0.0 MADE");
    EXPECT_EQ(prepared->artifact_sha256, *sha256_of_file(kMade));
    const auto& code = std::get<HostCode>(prepared->code);
    ASSERT_TRUE(code.run(2));
    const auto bytes = code.output("c_ptr");
    ASSERT_TRUE(bytes) << to_text(bytes.error());
    std::vector<float> c(static_cast<std::size_t>(s.m * s.n));
    ASSERT_EQ(bytes->size(), c.size() * sizeof(float));
    std::memcpy(c.data(), bytes->data(), bytes->size());
    const auto a = values(launch, "a_ptr"), b = values(launch, "b_ptr");
    for (std::int64_t row = 0; row < s.m; ++row)
      for (std::int64_t column = 0; column < s.n; ++column) {
        double sum = 0;
        for (std::int64_t i = 0; i < s.k; ++i)
          sum += double{a[static_cast<std::size_t>(s.k * row + i)]} *
                 double{b[static_cast<std::size_t>(s.n * i + column)]};
        EXPECT_NEAR(c[static_cast<std::size_t>(s.n * row + column)], sum, 1e-6)
            << s.m << 'x' << s.n << 'x' << s.k << " at " << row << ',' << column;
      }
    EXPECT_FALSE(code.output("a_ptr"));
  }
}

TEST_F(PreparedProduct, a_library_that_does_not_multiply_is_found_out_when_it_is_prepared) {
  idle(1);
  const auto refused = prepare(test::matmul_launch(2, 3, 4, "fp32"), shape_of({2, 3, 4}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::wrong_output);
  EXPECT_FALSE(cannot_run(refused.error().code));
}

TEST_F(PreparedProduct, it_takes_the_place_of_a_product_of_these_sizes_only) {
  const auto refused = prepare(test::matmul_launch(2, 4, 3, "fp32"), shape_of({2, 3, 4}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("is not c[2,3] = a[2,4] b[4,3] in fp32"));
}

TEST_F(PreparedProduct, host_code_is_no_baseline) {
  OpenBlasBackend backend(spec(), {kMade, {}, {}}, []() -> Status { return {}; });
  const Bench bench{device, preparer, "unused", "fp32", nullptr};
  const auto refused =
      backend.prepare(*backend.named({{"threads", 3}}), shape_of({2, 3, 4}), bench);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, RefusalCode::bad_spec);
}

} // namespace
} // namespace hebe::tune
