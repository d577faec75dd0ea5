// Facts about whole kernels: dumps of Triton 3.6 (tests/data/ttgir) against references written
// here, at sizes that do not fit the blocks, with one thread and several; their counts; launches
// from files.
#include "interpreted_kernel.hpp"

#include "core/files.hpp"
#include "kernel/dtype.hpp"
#include "ttgir/launch_file.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>

namespace hebe::ttgir {
namespace {
using namespace testing_kernels;
using F32 = std::vector<float>;
using F16 = std::vector<std::uint16_t>;

std::string dump(const std::string& name) {
  auto text = read_file(std::string(HEBE_TEST_DATA) + "/ttgir/" + name);
  EXPECT_TRUE(text);
  return text ? *text : "";
}
std::uint16_t half(double value) {
  std::byte bytes[2];
  kernel::store(value, kernel::DType::fp16, bytes);
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, 2);
  return bits;
}
double wide(std::uint16_t bits) {
  std::byte bytes[2];
  std::memcpy(bytes, &bits, 2);
  return kernel::element(bytes, kernel::DType::fp16, 0);
}
F16 random_halves(std::size_t n, unsigned seed, double scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, scale);
  F16 x(n);
  for (auto& v : x) v = half(normal(random));
  return x;
}

struct LayerNorm {
  std::uint32_t rows, columns;
  F16 x, w, b, y;
  F32 mean, rstd;
  LayerNorm(std::uint32_t m, std::uint32_t n)
      : rows(m), columns(n), x(random_halves(std::size_t{m} * n, 1)), w(random_halves(n, 2)),
        b(random_halves(n, 3)), y(std::size_t{m} * n, 0x7e00), mean(m), rstd(m) {}
  Result<Outcome> run(const std::string& text, unsigned threads = 1,
                      InterpretOptions options = {}) {
    const auto n = static_cast<std::int32_t>(columns);
    return launch(text,
                  {buffer(x, false), buffer(y), buffer(w, false), buffer(b, false), buffer(mean),
                   buffer(rstd), scalar(n), scalar(n), scalar(1e-5F)},
                  {rows, 1, 1}, threads, options);
  }
};

TEST(Kernels, layer_norm_is_right_at_odd_sizes_and_the_same_from_ttir_and_ttgir) {
  for (const std::uint32_t columns : {1U, 781U, 8192U, 9001U}) {
    LayerNorm a(5, columns), b(5, columns), c(5, columns);
    ASSERT_TRUE(a.run(dump("ln_fwd.ttir")));
    ASSERT_TRUE(b.run(dump("ln_fwd.ttgir")));
    ASSERT_TRUE(c.run(dump("ln_fwd.ttir"), 4));
    EXPECT_EQ(a.y, b.y);
    EXPECT_EQ(a.rstd, b.rstd);
    EXPECT_EQ(a.y, c.y);
    for (std::size_t row = 0; row < 5; ++row) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < columns; ++i) sum += wide(a.x[row * columns + i]);
      const double mean = sum / columns;
      for (std::size_t i = 0; i < columns; ++i)
        squares += std::pow(wide(a.x[row * columns + i]) - mean, 2);
      const double rstd = 1 / std::sqrt(squares / columns + 1e-5);
      EXPECT_NEAR(static_cast<double>(a.mean[row]), mean, 1e-6);
      EXPECT_NEAR(static_cast<double>(a.rstd[row]), rstd, 2e-6 * rstd);
      for (std::size_t i = 0; i < columns; ++i) {
        const double y = (wide(a.x[row * columns + i]) - mean) * rstd * wide(a.w[i]) + wide(a.b[i]);
        ASSERT_NEAR(wide(a.y[row * columns + i]), y, 2e-3 * std::max(1.0, std::abs(y)))
            << row << " " << i;
      }
    }
  }
}

TEST(Kernels, softmax_is_right_with_fewer_programs_than_rows) {
  constexpr std::int32_t rows = 37, columns = 781;
  F32 x(rows * columns), y(x.size()), z(x.size());
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  for (float& v : x) v = normal(random);
  const auto arguments = [&](F32& out) {
    return std::vector<LaunchArgument>{buffer(out),     buffer(x, false), scalar(columns),
                                       scalar(columns), scalar(rows),     scalar(columns)};
  };
  run(dump("softmax.ttir"), arguments(y), {4, 1, 1});
  run(dump("softmax.ttgir"), arguments(z), {16, 1, 1}, 3);
  EXPECT_EQ(y, z);
  for (std::size_t row = 0; row < rows; ++row) {
    double most = -HUGE_VAL, sum = 0;
    for (std::size_t i = 0; i < columns; ++i)
      most = std::max(most, static_cast<double>(x[row * columns + i]));
    for (std::size_t i = 0; i < columns; ++i)
      sum += std::exp(static_cast<double>(x[row * columns + i]) - most);
    for (std::size_t i = 0; i < columns; ++i) {
      const double e = std::exp(static_cast<double>(x[row * columns + i]) - most) / sum;
      ASSERT_NEAR(static_cast<double>(y[row * columns + i]), e, 3e-6 * e + 1e-30);
    }
  }
}

struct Matmul {
  std::int32_t m, n, k;
  F16 a, b, c;
  Matmul(std::int32_t rows, std::int32_t columns, std::int32_t depth)
      : m(rows), n(columns), k(depth), a(random_halves(static_cast<std::size_t>(m * k), 7, 0.5)),
        b(random_halves(static_cast<std::size_t>(k * n), 8, 0.5)),
        c(static_cast<std::size_t>(m * n)) {}
  Result<Outcome> run(const std::string& text, unsigned threads = 1,
                      InterpretOptions options = {}) {
    const auto tiles = static_cast<std::uint32_t>((m + 127) / 128 * ((n + 127) / 128));
    return launch(text,
                  {buffer(a, false), buffer(b, false), buffer(c), scalar(m), scalar(n), scalar(k),
                   scalar(k), scalar(n), scalar(n)},
                  {tiles, 1, 1}, threads, options);
  }
};

TEST(Kernels, matmul_is_right_at_odd_sizes_and_the_same_from_ttir_and_pipelined_ttgir) {
  for (const auto& [m, n, k] :
       {std::tuple{128, 128, 64}, {150, 200, 100}, {16, 130, 300}, {1, 1, 1}}) {
    Matmul a(m, n, k), b(m, n, k), c(m, n, k);
    const auto first = a.run(dump("matmul.ttir"));
    ASSERT_TRUE(first) << to_text(first.error());
    const auto second = b.run(dump("matmul.ttgir"), 2);
    ASSERT_TRUE(second) << to_text(second.error());
    EXPECT_EQ(a.c, b.c);
    for (std::int32_t i = 0; i < m; ++i)
      for (std::int32_t j = 0; j < n; ++j) {
        float sum = 0; // products of f16 are exact in f32; each is added in order
        for (std::int32_t l = 0; l < k; ++l)
          sum += static_cast<float>(wide(a.a[static_cast<std::size_t>(i * k + l)]) *
                                    wide(a.b[static_cast<std::size_t>(l * n + j)]));
        ASSERT_EQ(a.c[static_cast<std::size_t>(i * n + j)], half(static_cast<double>(sum)))
            << i << " " << j;
      }
  }
}

TEST(Kernels, bulk_copies_and_tensor_memory_give_the_bits_of_ttir) {
  constexpr std::int32_t m = 272, n = 144, k = 176;
  F16 a = random_halves(m * k, 11), b = random_halves(n * k, 12), expected(m * n);
  const auto arguments = [&](F16& c) {
    return std::vector<LaunchArgument>{buffer(a, false), buffer(b, false), buffer(c),
                                       scalar(m),        scalar(n),        scalar(k)};
  };
  run(dump("matmul_descriptors.ttir"), arguments(expected), {3, 3, 1});
  for (std::size_t i = 0; i < m; i += 37)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l) sum += wide(a[i * k + l]) * wide(b[j * k + l]);
      ASSERT_NEAR(wide(expected[i * n + j]), sum, 1e-3 * std::max(16.0, std::abs(sum)));
    }
  for (const char* name : {"matmul_descriptors_sm90.ttgir", "matmul_descriptors_sm100.ttgir"}) {
    F16 c(m * n);
    run(dump(name), arguments(c), {3, 3, 1}, 2);
    EXPECT_EQ(c, expected) << name;
  }
  F16 turned(k * n); // the host's descriptor shows b as k × n
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < k; ++j) turned[j * n + i] = b[i * k + j];
  for (const char* name : {"matmul_host_descriptors.ttir", "matmul_host_descriptors_sm100.ttgir"}) {
    F16 c(m * n);
    std::vector<LaunchArgument> all;
    const auto descriptor = [&](F16& values, std::int64_t rows, std::int64_t columns, bool out) {
      all.emplace_back(
          DescriptorArgument{buffer(values, out), {rows, columns}, {columns, 1}, false});
      for (const auto size : {rows, columns})
        all.emplace_back(scalar(static_cast<std::int32_t>(size)));
      for (const auto stride : {columns, std::int64_t{1}}) all.emplace_back(scalar(stride));
    };
    descriptor(a, m, k, false);
    descriptor(turned, k, n, false);
    descriptor(c, m, n, true);
    for (const auto size : {m, n, k}) all.emplace_back(scalar(size));
    run(dump(name), all, {3, 3, 1});
    EXPECT_EQ(c, expected) << name;
  }
}

TEST(Kernels, attention_is_right_and_the_same_for_every_board) {
  constexpr std::size_t length = 256, depth = 64;
  F16 q = random_halves(length * depth, 1), k = random_halves(length * depth, 2),
      v = random_halves(length * depth, 3), expected(length * depth);
  const auto arguments = [&](F16& o) {
    return std::vector<LaunchArgument>{buffer(q, false), buffer(k, false),
                                       buffer(v, false), buffer(o),
                                       scalar(0.18F),    scalar(static_cast<std::int32_t>(length))};
  };
  run(dump("attention.ttir"), arguments(expected), {4, 1, 1});
  for (const char* name : {"attention_sm90.ttgir", "attention_sm100.ttgir"}) {
    F16 o(length * depth);
    run(dump(name), arguments(o), {4, 1, 1}, 2);
    EXPECT_EQ(o, expected) << name;
  }
  for (std::size_t i = 0; i < length; i += 17) {
    std::vector<double> p(length);
    double most = -HUGE_VAL, sum = 0;
    for (std::size_t j = 0; j < length; ++j) {
      for (std::size_t d = 0; d < depth; ++d)
        p[j] += wide(q[i * depth + d]) * wide(k[j * depth + d]);
      most = std::max(most, p[j] *= 0.18);
    }
    for (double& x : p) sum += x = std::exp2(x - most);
    for (std::size_t d = 0; d < depth; ++d) {
      double o = 0;
      for (std::size_t j = 0; j < length; ++j) o += p[j] / sum * wide(v[j * depth + d]);
      ASSERT_NEAR(wide(expected[i * depth + d]), o, 1e-3);
    }
  }
}

TEST(Kernels, a_buffer_one_element_short_is_noticed) {
  LayerNorm a(3, 781);
  a.y.pop_back();
  const auto outcome = a.run(dump("ln_fwd.ttir"), 2);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().what, "tt.store (line 106) of program (2, 0, 0), element 780, writes 2 "
                                  "bytes at byte offset 4684 of 'Y', which has 4684 bytes");
}

TEST(Kernels, counts_of_layer_norm) {
  InterpretOptions options;
  options.count = true;
  LayerNorm a(3, 1000), b(3, 1000);
  const auto one = a.run(dump("ln_fwd.ttir"), 1, options),
             four = b.run(dump("ln_fwd.ttir"), 4, options);
  ASSERT_TRUE(one && four);
  const Counts& counts = *one->counts;
  EXPECT_EQ(to_json(counts), to_json(*four->counts));
  EXPECT_EQ(counts.programs, 3U);
  const auto& arguments = counts.arguments;
  ASSERT_EQ(arguments.size(), 6U);
  EXPECT_EQ(arguments[0].name, "X");
  EXPECT_EQ(arguments[0].loaded, 3 * 3 * 2000U); // three loops read every row
  EXPECT_EQ(arguments[0].unique_loaded, 3 * 2000U);
  EXPECT_EQ(arguments[0].stored, 0U);
  EXPECT_EQ(arguments[0].unique_sectors, (6000U + 31) / 32);
  EXPECT_EQ(arguments[1].stored, 6000U);
  EXPECT_EQ(arguments[1].unique_stored, 6000U);
  EXPECT_EQ(arguments[2].loaded, 3 * 2000U);
  EXPECT_EQ(arguments[2].unique_loaded, 2000U);
  EXPECT_EQ(arguments[4].stored, 12U);
  // Blocks of 8192: masked off elements are computed, but not loaded.
  using K = WorkKind;
  const auto operations = [&](K kind, const char* type) {
    const auto found = counts.operations.find({kind, type});
    return found == counts.operations.end() ? 0 : found->second;
  };
  EXPECT_EQ(operations(K::multiply, "f32"), 3U * 3 * 8192); // x*x, (x-m)*r, *w
  EXPECT_EQ(
      operations(K::add, "f32"),
      3U * (5 * 8192 + 2 * 8191 + 1)); // two loops: add; sub, add; sub, add; two reductions; + eps
  EXPECT_EQ(operations(K::divide, "f32"), 3U * 3);
  EXPECT_EQ(operations(K::sqrt, "f32"), 3U);
  EXPECT_EQ(operations(K::select, "f32"), 3U * 8192);
  EXPECT_EQ(counts.bytes_per_program.minimum, counts.bytes_per_program.maximum);
  EXPECT_EQ(counts.bytes_per_program.total, 3U * (3 * 2000 + 2 * 2000 + 2000 + 8));
  const auto& load = counts.accesses.front();
  EXPECT_EQ(load.op, "tt.load");
  EXPECT_EQ(load.argument, "X");
  EXPECT_EQ(load.counts.executions, 3U);
  EXPECT_EQ(load.counts.lanes, 3U * 8192);
  EXPECT_EQ(load.counts.active, 3000U);
  EXPECT_EQ(load.counts.bytes, 6000U);
  EXPECT_EQ(load.counts.sectors,
            3U * 63); // 2000 bytes: 62.5 sectors; the second row begins in the middle of one
}

TEST(Kernels, counts_of_a_pipelined_matmul) {
  InterpretOptions options;
  options.count = true;
  Matmul a(128, 128, 256);
  const auto outcome = a.run(dump("matmul.ttgir"), 1, options);
  ASSERT_TRUE(outcome);
  const Counts& counts = *outcome->counts;
  EXPECT_EQ(counts.operations.at({WorkKind::product, "f16"}), 128ULL * 128 * 256);
  EXPECT_EQ(counts.products_per_program.total, 128ULL * 128 * 256);
  EXPECT_EQ(counts.arguments[0].loaded, 128ULL * 256 * 2);
  EXPECT_EQ(counts.arguments[0].unique_loaded, 128ULL * 256 * 2);
  EXPECT_EQ(counts.arguments[2].stored, 128ULL * 128 * 2);
  // Four rounds read both tiles; the prologue and the rounds write six of each (two masked off in
  // full).
  EXPECT_EQ(counts.shared_read, 4ULL * (128 * 64 + 64 * 128) * 2);
  EXPECT_EQ(counts.shared_written, 6ULL * (128 * 64 + 64 * 128) * 2);
}

class LaunchFiles : public testing::Test {
protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("hebe-launch-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::filesystem::path folder_;
};

TEST_F(LaunchFiles, give_arguments_and_take_outputs) {
  const F32 x{1, 2, 3, 4};
  write("x.bin", {reinterpret_cast<const char*>(x.data()), 16});
  write("r.bin", std::string(16, '\0'));
  write(
      "launch.json",
      R"({"grid": [1], "args": [{"buffer": "x.bin", "name": "X"}, {"buffer": "r.bin", "out": true, "bytes": 16},
    {"scalar": "fp32", "value": 0.5}, {"scalar": "i64", "value": "-9007199254740993"}, {"scalar": "bf16", "value": "inf"}]})");
  auto file = LaunchFile::read(folder_ / "launch.json");
  ASSERT_TRUE(file) << to_text(file.error());
  const auto module =
      module_of(function("%xp: !tt.ptr<f32>, %rp: !tt.ptr<f32>, %f: f32, %n: i64, %h: bf16", R"(
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %xs = tt.splat %xp : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %xa = tt.addptr %xs, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %x = tt.load %xa : tensor<4x!tt.ptr<f32>>
    %fs = tt.splat %f : f32 -> tensor<4xf32>
    %r = arith.mulf %x, %fs : tensor<4xf32>
    %rs = tt.splat %rp : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %ra = tt.addptr %rs, %i : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %ra, %r : tensor<4x!tt.ptr<f32>>
)"));
  auto launched = file->launch(*module);
  ASSERT_TRUE(launched);
  EXPECT_EQ(std::get<ScalarArgument>(launched->arguments[3]).bits,
            static_cast<std::uint64_t>(-9007199254740993));
  EXPECT_EQ(std::get<ScalarArgument>(launched->arguments[4]).bits, 0x7f80U);
  const auto outcome = interpret(*module, "", *launched);
  ASSERT_TRUE(outcome) << to_text(outcome.error());
  const auto written = file->write_outputs();
  ASSERT_TRUE(written);
  EXPECT_EQ(*written, std::vector<std::filesystem::path>{folder_ / "r.bin.out"});
  const auto bytes = read_file(folder_ / "r.bin.out");
  F32 r(4);
  std::memcpy(r.data(), bytes->data(), 16);
  EXPECT_EQ(r, (F32{0.5F, 1, 1.5F, 2}));
  EXPECT_EQ(*read_file(folder_ / "r.bin"), std::string(16, '\0'));
}

TEST_F(LaunchFiles, say_what_is_wrong_and_where) {
  write("x.bin", "12345678");
  const auto said = [&](const std::string& json) {
    write("launch.json", json);
    const auto file = LaunchFile::read(folder_ / "launch.json");
    return file ? std::string("read") : file.error().what;
  };
  EXPECT_EQ(said(R"({"args": [{"scalar": "i7", "value": 1}]})"), "no scalar type \"i7\"");
  EXPECT_EQ(said(R"({"args": [{"scalar": "i8", "value": 300}]})"), "300 does not fit i8");
  EXPECT_EQ(said(R"({"args": [{"scalar": "i8", "value": 255}, {"scalar": "i8", "value": -128}]})"),
            "read");
  EXPECT_EQ(said(R"({"args": [{"scalar": "i32"}]})"), "a scalar without a value");
  EXPECT_EQ(said(R"({"args": [{"tensor": 1}]})"),
            "an argument is a \"buffer\", a \"scalar\" or a \"descriptor\"");
  EXPECT_EQ(said(R"({"grid": [1, 2, 3, 4], "args": []})"),
            "\"grid\" is a list of one to three sizes");
  EXPECT_NE(said(R"({"args": [{"buffer": "x.bin", "bytes": 4}]})").find("x.bin has 8 bytes, not 4"),
            std::string::npos);
  EXPECT_EQ(said(R"({"args": [{"descriptor": "x.bin", "shape": [2]}]})"),
            "a descriptor without strides");
}

TEST_F(LaunchFiles, expand_a_descriptor_to_the_arguments_behind_it) {
  write("d.bin", std::string(16, '\0'));
  write("launch.json",
        R"({"args": [{"descriptor": "d.bin", "shape": [2, 2], "strides": [2, 1]}]})");
  auto file = LaunchFile::read(folder_ / "launch.json");
  ASSERT_TRUE(file);
  const auto module = module_of(
      function("%d: !tt.tensordesc<tensor<2x2xf32>>, %s0: i32, %s1: i32, %t0: i64, %t1: i64", ""));
  const auto launched = file->launch(*module);
  ASSERT_TRUE(launched);
  ASSERT_EQ(launched->arguments.size(), 5U);
  EXPECT_EQ(std::get<ScalarArgument>(launched->arguments[3]).bits, 2U);
  EXPECT_TRUE(interpret(*module, "", *launched));
}

} // namespace
} // namespace hebe::ttgir
