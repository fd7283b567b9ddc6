// OpenBLAS functions that heed calls; the first call loads the library. If it were linked, every command would start
// the library's threads before main, and would hang if there is no memory for their buffers, as under `ulimit -v`.
#ifndef HEED_NO_BLAS

#include "heed/base/error.h"

#include <cblas.h>
#include <dlfcn.h>

namespace {

void* library() {
  static void* const loaded = [] {
    void* const found = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) heed::fail("OpenBLAS cannot be loaded: {}", dlerror());
    return found;
  }();
  return loaded;
}

/// Returns the library's function of this name; null if there is none.
template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(library(), name));
}

template <class Function>
Function* own(const char* name) {
  Function* const found = find<Function>(name);
  heed::require(found != nullptr, "OpenBLAS lacks the function {}", name);
  return found;
}

}  // namespace

extern "C" {

void cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE a_form, CBLAS_TRANSPOSE b_form, blasint m, blasint n, blasint k,
                 float alpha, const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c,
                 blasint ldc) {
  static auto* const f = own<decltype(cblas_sgemm)>("cblas_sgemm");
  f(order, a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE a_form, CBLAS_TRANSPOSE b_form, blasint m, blasint n, blasint k,
                 double alpha, const double* a, blasint lda, const double* b, blasint ldb, double beta, double* c,
                 blasint ldc) {
  static auto* const f = own<decltype(cblas_dgemm)>("cblas_dgemm");
  f(order, a_form, b_form, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void dgesvd_(const char* jobu, const char* jobvt, const blasint* m, const blasint* n, double* a, const blasint* lda,
             double* s, double* u, const blasint* ldu, double* vt, const blasint* ldvt, double* work,
             const blasint* lwork, blasint* info, std::size_t jobu_length, std::size_t jobvt_length) {
  static auto* const f = own<decltype(dgesvd_)>("dgesvd_");
  f(jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, info, jobu_length, jobvt_length);
}

void dposv_(const char* uplo, const blasint* n, const blasint* nrhs, double* a, const blasint* lda, double* b,
            const blasint* ldb, blasint* info, std::size_t uplo_length) {
  static auto* const f = own<decltype(dposv_)>("dposv_");
  f(uplo, n, nrhs, a, lda, b, ldb, info, uplo_length);
}

void openblas_set_num_threads(int count) { own<void(int)>("openblas_set_num_threads")(count); }
char* openblas_get_config() { return own<char*()>("openblas_get_config")(); }
char* openblas_get_corename() { return own<char*()>("openblas_get_corename")(); }

// Other BLAS libraries lack these two (kernels/products/gemm_buffers.h).
void* blas_memory_alloc(int kind) {
  static auto* const f = find<void*(int)>("blas_memory_alloc");
  return f != nullptr ? f(kind) : nullptr;
}
void blas_memory_free(void* buffer) {
  static auto* const f = find<void(void*)>("blas_memory_free");
  if (f != nullptr) f(buffer);
}

}  // extern "C"

#endif
