// A made libcublasLt for tests: the entry points of a plain matrix product, with "device" memory
// that is the host's. In: calls; out: the product, a log of the calls, failures that were asked
// for. Invariant: it computes what its descriptors say by the real library's rules (column by
// column, operands transposed where asked), so that a wrong descriptor gives a wrong product.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

namespace {

struct Thing {
  char kind = 0; // handle, product, matrix, preference
  int type = 0, scale = 0, transpose_a = 0, transpose_b = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  std::uint64_t workspace = 0;
};
struct Algorithm {
  std::uint64_t data[8];
};
struct Result {
  Algorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

std::map<std::string, int> failures;
std::string log_text;
int live = 0;
int heuristic_count = 3;

int say(const char* call, const std::string& more = {}) {
  log_text += std::string(call) + more + "\n";
  const auto hit = failures.find(call);
  return hit == failures.end() ? 0 : hit->second;
}

int make(const char* call, void** out, Thing thing, const std::string& more) {
  if (const int failed = say(call, more)) return failed;
  *out = new Thing(thing);
  ++live;
  return 0;
}

int unmake(const char* call, void* thing) {
  say(call);
  delete static_cast<Thing*>(thing);
  --live;
  return 0;
}

const Thing& at(void* thing) { return *static_cast<Thing*>(thing); }

float value(const void* memory, std::size_t index, int type) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(memory) + 2 * index, 2);
  if (type == 14) { // bf16: the upper half of a float
    const auto wide = static_cast<std::uint32_t>(bits) << 16;
    float out = 0;
    std::memcpy(&out, &wide, 4);
    return out;
  }
  _Float16 half = 0;
  std::memcpy(&half, &bits, 2);
  return static_cast<float>(half);
}

void keep(void* memory, std::size_t index, int type, float value) {
  std::uint16_t bits = 0;
  if (type == 14) {
    std::uint32_t wide = 0;
    std::memcpy(&wide, &value, 4);
    bits = static_cast<std::uint16_t>(wide >> 16); // tests use values that are exact
  } else {
    const auto half = static_cast<_Float16>(value);
    std::memcpy(&bits, &half, 2);
  }
  std::memcpy(static_cast<char*>(memory) + 2 * index, &bits, 2);
}

} // namespace

extern "C" {

void made_reset() {
  failures.clear();
  log_text.clear();
  heuristic_count = 3;
}
void made_fail(const char* call, int status) { failures[call] = status; }
void made_heuristics(int count) { heuristic_count = count; }
const char* made_log() { return log_text.c_str(); }
int made_live() { return live; } // objects that nobody destroyed

std::size_t cublasLtGetVersion() { return 130102; }
const char* cublasLtGetStatusName(int status) {
  return status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_MADE";
}
const char* cublasLtGetStatusString(int) { return "as the test asked"; }

int cublasLtCreate(void** handle) { return make("cublasLtCreate", handle, {'h'}, {}); }
int cublasLtDestroy(void* handle) { return unmake("cublasLtDestroy", handle); }

int cublasLtMatmulDescCreate(void** out, int compute, int scale) {
  return make("cublasLtMatmulDescCreate", out, {'p', compute, scale},
              " compute " + std::to_string(compute) + " scale " + std::to_string(scale));
}
int cublasLtMatmulDescDestroy(void* p) { return unmake("cublasLtMatmulDescDestroy", p); }
int cublasLtMatmulDescSetAttribute(void* p, int attribute, const void* value, std::size_t bytes) {
  std::int32_t operation = 0;
  if (bytes != sizeof operation) return 7;
  std::memcpy(&operation, value, bytes);
  (attribute == 3 ? static_cast<Thing*>(p)->transpose_a : static_cast<Thing*>(p)->transpose_b) =
      operation;
  return say("cublasLtMatmulDescSetAttribute",
             " " + std::to_string(attribute) + " = " + std::to_string(operation));
}

int cublasLtMatrixLayoutCreate(void** out, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading) {
  Thing t{'m', type};
  t.rows = rows, t.columns = columns, t.leading = leading;
  if (leading < static_cast<std::int64_t>(rows)) return 7; // columns would overlap
  return make("cublasLtMatrixLayoutCreate", out, t,
              " type " + std::to_string(type) + " " + std::to_string(rows) + " x " +
                  std::to_string(columns) + " leading " + std::to_string(leading));
}
int cublasLtMatrixLayoutDestroy(void* m) { return unmake("cublasLtMatrixLayoutDestroy", m); }

int cublasLtMatmulPreferenceCreate(void** out) {
  return make("cublasLtMatmulPreferenceCreate", out, {'f'}, {});
}
int cublasLtMatmulPreferenceDestroy(void* f) {
  return unmake("cublasLtMatmulPreferenceDestroy", f);
}
int cublasLtMatmulPreferenceSetAttribute(void* f, int attribute, const void* value,
                                         std::size_t bytes) {
  if (attribute != 1 || bytes != sizeof(std::uint64_t)) return 7;
  std::memcpy(&static_cast<Thing*>(f)->workspace, value, bytes);
  return say("cublasLtMatmulPreferenceSetAttribute",
             " workspace " + std::to_string(at(f).workspace));
}

int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void* preference,
                                   int requested, Result* results, int* found) {
  if (const int failed = say("cublasLtMatmulAlgoGetHeuristic", " " + std::to_string(requested)))
    return failed;
  *found = requested < heuristic_count ? requested : heuristic_count;
  for (int i = 0; i < *found; ++i) {
    const auto u = static_cast<std::uint64_t>(i);
    results[i].algorithm = {{66, 20 + u, 1 + u, 0xffffffffffffffff, 0, 0, 0, 0xabcd}};
    results[i].workspace = i == 1 ? at(preference).workspace : 0;
    results[i].state = i == 2 ? 15 : 0; // the library may give some that cannot run
  }
  return 0;
}
int cublasLtMatmulAlgoCheck(void*, void*, void*, void*, void*, void*, const Algorithm* algorithm,
                            Result* result) {
  if (const int failed = say("cublasLtMatmulAlgoCheck")) return failed;
  *result = {*algorithm, algorithm->data[1] == 21 ? std::size_t{1} << 20 : 0, 0, 1, {}};
  return algorithm->data[0] == 66 ? 0 : 15;
}
int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value,
                                         std::size_t bytes, std::size_t* written) {
  const bool is_short = attribute == 7 || attribute == 8;
  if (bytes != (is_short ? 2U : 4U) || attribute == 8) return 7; // an older one has no clusters
  const std::uint32_t small = static_cast<std::uint32_t>(attribute == 0   ? algorithm->data[0]
                                                         : attribute == 1 ? algorithm->data[1]
                                                         : attribute == 2 ? algorithm->data[2]
                                                                          : 0);
  std::memcpy(value, &small, bytes);
  *written = bytes;
  return 0;
}

int cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* layout_a,
                   const void* b, void* layout_b, const void* beta, const void*, void*, void* d,
                   void* layout_d, const Algorithm*, void* workspace, std::size_t workspace_bytes,
                   void* stream) {
  if (const int failed =
          say("cublasLtMatmul", " workspace " + std::to_string(workspace_bytes) + " at " +
                                    std::to_string(reinterpret_cast<std::uintptr_t>(workspace)) +
                                    " stream " +
                                    std::to_string(reinterpret_cast<std::uintptr_t>(stream))))
    return failed;
  float scale = 0, old = 0;
  std::memcpy(&scale, alpha, 4);
  std::memcpy(&old, beta, 4);
  const auto &p = at(product), &la = at(layout_a), &lb = at(layout_b), &ld = at(layout_d);
  if (p.type != 68 || p.scale != 0 || old != 0) return 7;
  const auto inner = p.transpose_a != 0 ? la.rows : la.columns;
  if (inner != (p.transpose_b != 0 ? lb.columns : lb.rows)) return 7;
  const auto of = [](const Thing& l, std::uint64_t row, std::uint64_t column, bool transposed) {
    return transposed ? column + row * static_cast<std::uint64_t>(l.leading)
                      : row + column * static_cast<std::uint64_t>(l.leading);
  };
  for (std::uint64_t column = 0; column < ld.columns; ++column)
    for (std::uint64_t row = 0; row < ld.rows; ++row) {
      float sum = 0;
      for (std::uint64_t i = 0; i < inner; ++i)
        sum += value(a, of(la, row, i, p.transpose_a != 0), la.type) *
               value(b, of(lb, i, column, p.transpose_b != 0), lb.type);
      keep(d, of(ld, row, column, false), ld.type, scale * sum);
    }
  return 0;
}

} // extern "C"
