// A made OpenBLAS for tests: one product, the slow way. `made_idle(1)` makes it do nothing, as a
// library that refuses a shape does.
extern "C" {
static int idle = 0;
static long done = 0;
void made_idle(int on) { idle = on; }
long made_products() { return done; }
const char* openblas_get_config() { return "OpenBLAS 0.0.0 MADE"; }
int openblas_get_num_threads() { return 3; }
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a,
                 int lda, const float* b, int ldb, float, float* c, int ldc) {
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
