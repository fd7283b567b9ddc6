// Pairs of bfloat16 as words.
//
// An instruction multiplies pairs of bfloat16 and adds both products to a float. So a pair that follows each other
// along k is made one word as wide as a float; what remains is a product of words with half as many steps, for which
// the tiles of pair_sums.h serve.
#pragma once

#include "pair_sums.h"

#include <immintrin.h>

namespace heed::kernels::simd {

static_assert(lanes == 16);

struct AddProductsOfPairs {
  Vector operator()(Vector sum, Broadcast a, Vector b) const {
    return Vector{
        _mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(a.vector().raw), reinterpret_cast<__m512bh>(b.raw))};
  }
};

inline Vector words(__m512bh pairs) { return Vector{reinterpret_cast<__m512>(pairs)}; }

/// to [rows, (k + 1) / 2]: word l of a row holds its elements 2 l and 2 l + 1. from [rows, k].
inline void pair_columns(Index rows, Index k, const float* from, Index ld, float* to) {
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
inline void pair_rows(Index k, Index columns, const float* from, Index ld, float* to) {
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

}  // namespace heed::kernels::simd
