// A launch spec as the compile worker writes it: out = x + y over n fp32 elements. In: n and the
// work to declare; out: JSON of schema hebe.launch/1.
#pragma once

#include "core/json.hpp"

namespace hebe::test {

inline Json vector_launch(std::int64_t elements = 1024, double declared_bytes = 1e8) {
  const auto buffer = [&](const char* name, const char* role, Json init) {
    return Json{{"name", name},        {"kind", "buffer"}, {"dtype", "fp32"},
                {"shape", {elements}}, {"role", role},     {"init", std::move(init)}};
  };
  const auto uniform = [](int seed) {
    return Json{{"kind", "uniform"}, {"low", -1.0}, {"high", 1.0}, {"seed", seed}};
  };
  return {{"schema", "hebe.launch/1"},
          {"name", "vector_add"},
          {"parameters", {{"n", elements}}},
          {"target", {{"backend", "cuda"}, {"arch", 90}, {"warp_size", 32}}},
          {"entry", "add_kernel"},
          {"grid", {(elements + 1023) / 1024, 1, 1}},
          {"num_warps", 4},
          {"num_ctas", 1},
          {"shared_bytes", 0},
          {"cooperative", false},
          {"pdl", false},
          {"global_scratch", {{"bytes", 0}, {"align", 1}}},
          {"profile_scratch", {{"bytes", 0}, {"align", 1}}},
          {"arguments",
           {buffer("x_ptr", "in", uniform(1)),
            buffer("y_ptr", "in", uniform(2)),
            buffer("out_ptr", "out", nullptr),
            {{"name", "n"}, {"kind", "scalar"}, {"dtype", "i32"}, {"value", elements}}}},
          {"tolerance", {{"atol", 0.0}, {"rtol", 0.0}}},
          {"oracle", {{"kind", "case-reference"}}},
          {"work",
           {{"bytes_read", static_cast<std::int64_t>(declared_bytes * 2 / 3)},
            {"bytes_written", static_cast<std::int64_t>(declared_bytes / 3)},
            {"operations", {{"fp32_add", elements}}}}}};
}

} // namespace hebe::test
