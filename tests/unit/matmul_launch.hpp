// The launch of a matrix product as a case would declare it. In: sizes, a type; out: a launch whose
// buffers come in the order a, c, b. Invariant: a and b hold other values where they are of one
// size.
#pragma once

#include "kernel/launch_spec.hpp"

namespace hebe::test {

inline Json matmul_buffer(const char* name, std::int64_t rows, std::int64_t columns,
                          const char* role, const std::string& dtype) {
  const Json init = std::string(role) == "in" ? Json{{"kind", "uniform"},
                                                     {"low", -1},
                                                     {"high", 1},
                                                     {"seed", std::string(name) == "b_ptr" ? 2 : 1}}
                                              : Json();
  return {{"name", name}, {"kind", "buffer"}, {"dtype", dtype}, {"shape", {rows, columns}},
          {"role", role}, {"init", init}};
}

inline kernel::LaunchSpec matmul_launch(std::int64_t m, std::int64_t n, std::int64_t k,
                                        const std::string& dtype = "fp16") {
  const Json json{
      {"schema", "hebe.launch/1"},
      {"name", "matmul"},
      {"parameters", {{"m", m}}},
      {"target", {{"backend", "cuda"}, {"arch", 90}, {"warp_size", 32}}},
      {"entry", "matmul_kernel"},
      {"grid", {8, 1, 1}},
      {"num_warps", 8},
      {"num_ctas", 1},
      {"shared_bytes", 4096},
      {"cooperative", false},
      {"pdl", false},
      {"global_scratch", {{"bytes", 0}, {"align", 1}}},
      {"profile_scratch", {{"bytes", 0}, {"align", 1}}},
      {"arguments",
       {matmul_buffer("a_ptr", m, k, "in", dtype), matmul_buffer("c_ptr", m, n, "out", dtype),
        matmul_buffer("b_ptr", k, n, "in", dtype)}},
      {"tolerance", {{"atol", 0}, {"rtol", 0}}},
      {"oracle", {{"kind", "none"}}},
      {"work", nullptr}};
  return *kernel::LaunchSpec::from_json(json, "the test");
}

} // namespace hebe::test
