#include "heed/kernels/rows/rows.h"

#ifndef HEED_NO_SIMD

#include "heed/kernels/shared/simd.h"

namespace heed::kernels {

using namespace simd;

void row_dots(Matrix<const float> a, Matrix<const float> b, float* out) {
  for (Index r = 0; r < a.rows; ++r) {
    const float *const ar = a[r], *const br = b[r];
    Vector total = hn::Zero(tag);
    for_each_vector(a.columns,
                    [&](Index i, auto use) { total = hn::MulAdd(use.load(ar + i), use.load(br + i), total); });
    out[r] = sum(total);
  }
}

void row_dots_of_differences(Index count, Index n, const RowTriple<float>* rows, float* out) {
  for (Index r = 0; r < count; ++r) {
    const float *const a = rows[r].a, *const b = rows[r].b, *const c = rows[r].c;
    Vector total = hn::Zero(tag);
    for_each_vector(n, [&](Index i, auto use) {
      total = hn::MulAdd(use.load(a + i), hn::Sub(use.load(b + i), use.load(c + i)), total);
    });
    out[r] = sum(total);
  }
}

void weighted_rows(Index count, Index n, const float* weights, const float* const* rows, Update update, float* out) {
  const auto columns = [=]<Index vectors>(std::integral_constant<Index, vectors>, Index i, auto use) {
    Vector sums[vectors];
    for (Vector& s : sums) s = hn::Zero(tag);
    for (Index r = 0; r < count; ++r) {
      const Vector weight = set(weights[r]);
#pragma GCC unroll 4
      for (Index v = 0; v < vectors; ++v) sums[v] = hn::MulAdd(weight, use.load(rows[r] + i + v * lanes), sums[v]);
    }
    for (Index v = 0; v < vectors; ++v) write(update, use, sums[v], out + i + v * lanes);
  };
  constexpr std::integral_constant<Index, 4> four;
  constexpr std::integral_constant<Index, 1> one;
  Index i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) columns(four, i, AllLanes{});
  for_each_vector(n - i, [&](Index j, auto use) { columns(one, i + j, use); });
}

void column_sums(Matrix<const float> a, Update update, float* out) {
  // Four vectors of columns at a time stay in registers over all rows: 256 bytes of each row with AVX-512.
  const Index block = 4 * lanes;
  Index i = 0;
  for (; i + block <= a.columns; i += block) {
    const float* row = a.data + i;
    Vector s0 = hn::Zero(tag), s1 = s0, s2 = s0, s3 = s0;
    for (Index r = 0; r < a.rows; ++r, row += a.stride) {
      s0 = hn::Add(s0, hn::LoadU(tag, row));
      s1 = hn::Add(s1, hn::LoadU(tag, row + lanes));
      s2 = hn::Add(s2, hn::LoadU(tag, row + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(tag, row + 3 * lanes));
    }
    write(update, AllLanes{}, s0, out + i);
    write(update, AllLanes{}, s1, out + i + lanes);
    write(update, AllLanes{}, s2, out + i + 2 * lanes);
    write(update, AllLanes{}, s3, out + i + 3 * lanes);
  }
  for_each_vector(a.columns - i, [&](Index j, auto use) {
    Vector s = hn::Zero(tag);
    for (Index r = 0; r < a.rows; ++r) s = hn::Add(s, use.load(a[r] + i + j));
    write(update, use, s, out + i + j);
  });
}

}  // namespace heed::kernels

#endif
