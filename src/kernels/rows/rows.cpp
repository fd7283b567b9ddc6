#include "heed/kernels/rows/rows.h"

#ifndef HEED_NO_SIMD

#include "src/kernels/shared/channel_blocks.h"

namespace heed::kernels {

using namespace simd;

void row_dots(Matrix<const float> a, Matrix<const float> b, float* out) {
  for (Index r = 0; r < a.rows; ++r) {
    const float *const ar = a[r], *const br = b[r];
    RowSum sum;
    for_each_part(a.columns, [&](auto part, Index i, auto use) {
      sum[part] = hn::MulAdd(use.load(ar + i), use.load(br + i), sum[part]);
    });
    out[r] = sum.total();
  }
}

void row_dots_of_differences(Index count, Index n, const RowTriple<float>* rows, float* out) {
  for (Index r = 0; r < count; ++r) {
    const float *const a = rows[r].a, *const b = rows[r].b, *const c = rows[r].c;
    RowSum sum;
    for_each_part(n, [&](auto part, Index i, auto use) {
      sum[part] = hn::MulAdd(use.load(a + i), hn::Sub(use.load(b + i), use.load(c + i)), sum[part]);
    });
    out[r] = sum.total();
  }
}

void weighted_rows(Index count, Index n, const float* weights, const float* const* rows, Update update, float* out) {
  for_each_block<4>(n, [=](Index i, auto vectors, auto use) {
    Vector sums[vectors];
    for (Vector& s : sums) s = hn::Zero(tag);
    for (Index r = 0; r < count; ++r) {
      const Vector weight = set(weights[r]);
      for (int v = 0; v < vectors; ++v) sums[v] = hn::MulAdd(weight, use.load(rows[r] + i + v * lanes), sums[v]);
    }
    for (int v = 0; v < vectors; ++v) write(update, use, sums[v], out + i + v * lanes);
  });
}

void column_sums(Matrix<const float> a, Update update, float* out) {
  for_each_block<4>(a.columns, [=](Index i, auto vectors, auto use) {
    Vector sums[vectors];
    for (Vector& s : sums) s = hn::Zero(tag);
    const float* row = a.data + i;
    for (Index r = 0; r < a.rows; ++r, row += a.stride) {
      for (int v = 0; v < vectors; ++v) sums[v] = hn::Add(sums[v], use.load(row + v * lanes));
    }
    for (int v = 0; v < vectors; ++v) write(update, use, sums[v], out + i + v * lanes);
  });
}

}  // namespace heed::kernels

#endif
