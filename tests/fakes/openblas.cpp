// A made OpenBLAS for tests: one product, the slow way. In: calls; out: the product, and a word to
// whoever watches (`made_watch`) for every call. `made_idle(1)` makes it do nothing, as a library
// that refuses a shape does; `made_idle_after(n)` after n calls more.
extern "C" {
using Watch = void (*)(void* context);
static int idle = 0;
static long idle_after = -1;
static long done = 0;
static Watch watch = nullptr;
static void* watch_context = nullptr;
void made_idle(int on) {
  idle = on;
  idle_after = -1;
}
void made_idle_after(long calls) { idle_after = calls; }
void made_watch(Watch to, void* context) {
  watch = to;
  watch_context = context;
}
long made_products() { return done; }
const char* openblas_get_config() { return "OpenBLAS 0.0.0 MADE"; }
int openblas_get_num_threads() { return 3; }
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                 int lda, const float* b, int ldb, float, float* c, int ldc) {
  if (watch != nullptr) watch(watch_context);
  if (idle_after >= 0 && idle_after-- == 0) idle = 1;
  if (idle != 0 || order != 101 || ta != 111 || tb != 111) return;
  ++done;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int x = 0; x < k; ++x) sum += a[i * lda + x] * b[x * ldb + j];
      c[i * ldc + j] = alpha * sum;
    }
}
}
