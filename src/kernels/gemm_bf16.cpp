#include "heed/kernels/gemm_bf16.h"

#include <bit>
#include <cmath>
#include <vector>

#if defined(__AVX512BF16__) && !defined(HEED_REFERENCE)
#include "pair_sums.h"

#include <immintrin.h>
#endif

namespace heed::kernels {

float round_to_bf16(float x) {
  if (std::isnan(x)) return x;
  if (std::abs(x) < 0x1p-126f) return std::copysign(0.0f, x);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

#if defined(HEED_REFERENCE)

namespace {

/// op(X) [rows, columns], rounded.
std::vector<float> rounded(Transpose transpose, Index rows, Index columns, const float* from, Index ld) {
  std::vector<float> to;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      to.push_back(round_to_bf16(transpose == Transpose::no ? from[i * ld + j] : from[j * ld + i]));
  return to;
}

}  // namespace

const char* bf16_obstacle() { return nullptr; }

void gemm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
               const float* b, Index ldb, Update update, float* c, Index ldc) {
  gemm(Transpose::no, Transpose::no, m, n, k, rounded(transpose_a, m, k, a, lda).data(), k,
       rounded(transpose_b, k, n, b, ldb).data(), n, update, c, ldc);
}

void addmm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
                const float* b, Index ldb, const float* bias, const float* addend, Index ldd, float* c, Index ldc) {
  addmm(Transpose::no, Transpose::no, m, n, k, rounded(transpose_a, m, k, a, lda).data(), k,
        rounded(transpose_b, k, n, b, ldb).data(), n, bias, addend, ldd, c, ldc);
}

#elif defined(__AVX512BF16__)

using namespace simd;

// An instruction multiplies pairs of bfloat16 and adds both products to a float. So a pair that follows each other
// along k is made one word as wide as a float; what remains is a product of words with half as many steps, for which
// the tiles of pair_sums.h serve.

namespace {

static_assert(lanes == 16);

struct AddProductsOfPairs {
  Vector operator()(Vector sum, Broadcast a, Vector b) const {
    return Vector{
        _mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(a.vector().raw), reinterpret_cast<__m512bh>(b.raw))};
  }
};

Vector words(__m512bh pairs) { return Vector{reinterpret_cast<__m512>(pairs)}; }

/// to [rows, (k + 1) / 2]: word l of a row holds its elements 2 l and 2 l + 1. from [rows, k].
void pair_columns(Index rows, Index k, const float* from, Index ld, float* to) {
  for (Index r = 0; r < rows; ++r, from += ld, to += (k + 1) / 2)
    for_each_vector((k + 1) / 2, [&](Index l, auto use) {
      const auto load = [&](Index at) {
        if (at + lanes <= k) return AllLanes{}.load(from + at);
        return at < k ? FirstLanes(k - at).load(from + at) : hn::Zero(tag);
      };
      use.store(words(_mm512_cvtne2ps_pbh(load(2 * l + lanes).raw, load(2 * l).raw)), to + l);
    });
}

/// to [(k + 1) / 2, columns]: row l holds rows 2 l and 2 l + 1, element by element. from [k, columns].
void pair_rows(Index k, Index columns, const float* from, Index ld, float* to) {
  alignas(alignment) static constexpr std::uint16_t order[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                               21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                               11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i alternate = _mm512_load_si512(order);
  for (Index l = 0; l < k; l += 2, from += 2 * ld, to += columns)
    for_each_vector(columns, [&](Index j, auto use) {
      const Vector first = use.load(from + j), second = l + 1 < k ? use.load(from + ld + j) : hn::Zero(tag);
      const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.raw, first.raw));
      use.store(words(reinterpret_cast<__m512bh>(_mm512_permutexvar_epi16(alternate, both))), to + j);
    });
}

/// An operand as words, in memory that the thread keeps for its next product. op(X) has `outer` rows (of A) or columns
/// (of B), and k of the others; pairs lie along k.
class Words {
 public:
  Words(bool k_is_contiguous, Index outer, Index k, const float* from, Index ld, Buffer<float>& memory)
      : ld_(k_is_contiguous ? (k + 1) / 2 : outer) {
    if (memory.size() < outer * ((k + 1) / 2)) memory = Buffer<float>(outer * ((k + 1) / 2));
    data_ = memory.data();
    if (k_is_contiguous)
      pair_columns(outer, k, from, ld, data_);
    else
      pair_rows(k, outer, from, ld, data_);
  }
  const float* data() const { return data_; }
  Index ld() const { return ld_; }

 private:
  float* data_;
  Index ld_;
};

template <bool starts>
void product(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
             const float* b, Index ldb, Update update, float* c, Index ldc, const Start& start = {}) {
  thread_local Buffer<float> memory_a, memory_b;
  const Words wa(transpose_a == Transpose::no, m, k, a, lda, memory_a);
  const Words wb(transpose_b == Transpose::yes, n, k, b, ldb, memory_b);
  sum_pairs<AddProductsOfPairs, starts>(transpose_a, transpose_b, m, n, (k + 1) / 2, wa.data(), wa.ld(), wb.data(),
                                        wb.ld(), update, c, ldc, start);
}

}  // namespace

const char* bf16_obstacle() { return nullptr; }

void gemm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
               const float* b, Index ldb, Update update, float* c, Index ldc) {
  product<false>(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, update, c, ldc);
}

void addmm_bf16(Transpose transpose_a, Transpose transpose_b, Index m, Index n, Index k, const float* a, Index lda,
                const float* b, Index ldb, const float* bias, const float* addend, Index ldd, float* c, Index ldc) {
  if (bias == nullptr || k == 0) {
    addmm<float>(transpose_a, transpose_b, m, n, 0, a, lda, b, ldb, bias, addend, ldd, c, ldc);
    return gemm_bf16(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, Update::accumulate, c, ldc);
  }
  product<true>(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, Update::assign, c, ldc,
                {bias, nullptr, addend, ldd});
}

#else

const char* bf16_obstacle() { return "it needs a CPU with AVX512-BF16 and a build for it, this one is for " HEED_ARCH; }

void gemm_bf16(Transpose, Transpose, Index, Index, Index, const float*, Index, const float*, Index, Update, float*,
               Index) {
  HEED_ASSERT(false);
}

void addmm_bf16(Transpose, Transpose, Index, Index, Index, const float*, Index, const float*, Index, const float*,
                const float*, Index, float*, Index) {
  HEED_ASSERT(false);
}

#endif

}  // namespace heed::kernels
