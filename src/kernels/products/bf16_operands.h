// Operands of products in bfloat16.
//
// The instruction VDPBF16PS multiplies two pairs of bfloat16 and adds both products to a float. So two neighbours along
// k are packed into a word as wide as a float. A product of words uses the tiles of pair_sums.h and takes half as many
// steps as a product of floats. Builds and CPUs without the instruction multiply rounded copies as floats.
#pragma once

#include "heed/kernels/products/gemm_bf16.h"

#include <vector>

#if defined(__AVX512BF16__) && !defined(HEED_NO_SIMD)
#define HEED_BF16_WORDS
#include "pair_sums.h"

#include <immintrin.h>
#endif

namespace heed::kernels {

/// True if this build and this CPU have the instruction.
inline bool has_bf16_instruction() {
#ifdef HEED_BF16_WORDS
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

/// A copy of x with rounded elements.
class Rounded {
 public:
  explicit Rounded(const Operand<float>& x) : rows_(x.rows), columns_(x.columns) {
    for (Index i = 0; i < rows_; ++i)
      for (Index j = 0; j < columns_; ++j) values_.push_back(round_to_bf16(x(i, j)));
  }
  Matrix<const float> matrix() const { return {values_.data(), rows_, columns_}; }

 private:
  Index rows_, columns_;
  std::vector<float> values_;
};

}  // namespace heed::kernels

#ifdef HEED_BF16_WORDS

namespace heed::kernels::simd {

static_assert(lanes == 16);

struct AddProductsOfPairs {
  static constexpr int registers = 0;

  Vector operator()(Vector sum, Broadcast a, Vector b) const {
    return Vector{
        _mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(a.vector().raw), reinterpret_cast<__m512bh>(b.raw))};
  }
};

inline Vector words(__m512bh pairs) { return Vector{reinterpret_cast<__m512>(pairs)}; }

/// Packs `from` [rows, k] into `to` [rows, (k + 1) / 2]: word l of a row holds its elements 2 l and 2 l + 1.
inline void pair_columns(Matrix<const float> from, float* to) {
  const Index k = from.columns;
  for (Index r = 0; r < from.rows; ++r, to += (k + 1) / 2)
    for_each_vector((k + 1) / 2, [&](Index l, auto use) {
      const auto load = [&](Index at) {
        if (at + lanes <= k) return AllLanes{}.load(from[r] + at);
        return at < k ? FirstLanes(k - at).load(from[r] + at) : hn::Zero(tag);
      };
      use.store(words(_mm512_cvtne2ps_pbh(load(2 * l + lanes).raw, load(2 * l).raw)), to + l);
    });
}

/// Packs `from` [k, columns] into `to` [(k + 1) / 2, columns]: row l holds the elements of rows 2 l and 2 l + 1.
inline void pair_rows(Matrix<const float> from, float* to) {
  alignas(alignment) static constexpr std::uint16_t order[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                               21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                               11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i alternate = _mm512_load_si512(order);
  for (Index l = 0; l < from.rows; l += 2, to += from.columns)
    for_each_vector(from.columns, [&](Index j, auto use) {
      const Vector first = use.load(from[l] + j);
      const Vector second = l + 1 < from.rows ? use.load(from[l + 1] + j) : hn::Zero(tag);
      const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second.raw, first.raw));
      use.store(words(reinterpret_cast<__m512bh>(_mm512_permutexvar_epi16(alternate, both))), to + j);
    });
}

/// Returns the operand as words that pair the columns or the rows of its matrix in memory. The words are in `memory`,
/// which the thread's next product overwrites.
inline Operand<float> words_of(const Operand<float>& x, bool pair_the_columns, Buffer<float>& memory) {
  const Index rows = x.transposed ? x.columns : x.rows, columns = x.transposed ? x.rows : x.columns;
  const Index word_rows = pair_the_columns ? rows : (rows + 1) / 2;
  const Index word_columns = pair_the_columns ? (columns + 1) / 2 : columns;
  if (memory.size() < word_rows * word_columns) memory = Buffer<float>(word_rows * word_columns);
  const Matrix<const float> from(x.data, rows, columns, x.stride), to(memory.data(), word_rows, word_columns);
  if (pair_the_columns)
    pair_columns(from, memory.data());
  else
    pair_rows(from, memory.data());
  return x.transposed ? Operand<float>(transposed(to)) : Operand<float>(to);
}

/// Return A [m, k] as [m, (k + 1) / 2] words, and B [k, n] as [(k + 1) / 2, n] words.
inline Operand<float> words_along_columns(const Operand<float>& a, Buffer<float>& memory) {
  return words_of(a, !a.transposed, memory);
}
inline Operand<float> words_along_rows(const Operand<float>& b, Buffer<float>& memory) {
  return words_of(b, b.transposed, memory);
}

}  // namespace heed::kernels::simd
#endif
