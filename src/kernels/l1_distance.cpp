// Distances: a tile of rows of x and rows of w at a time, so that each vector loaded serves several pairs. Gradients: a
// vector of a few rows of dx stays in registers while all terms pass by.
#include "heed/kernels/l1_distance.h"

#ifndef HEED_REFERENCE

#include "simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// s[r,c] (+)= -|x_r - w_c|_1 for R x C pairs: R C sums, R rows of x and one of w must fit into 16 registers.
template <Index R, Index C>
void distance_tile(Index width, const float* x, Index ldx, const float* w, Index ldw, Update update, float* s,
                   Index lds) {
  Vector sums[R][C];
  for (auto& row : sums)
    for (Vector& sum : row) sum = hn::Zero(tag);
  for_each_vector(width, [&](Index i, auto use) {
    Vector xs[R];
    for (Index r = 0; r < R; ++r) xs[r] = use.load(x + r * ldx + i);
    for (Index c = 0; c < C; ++c) {
      const Vector wc = use.load(w + c * ldw + i);  // beyond the row both are zero, and so is their distance
      for (Index r = 0; r < R; ++r) sums[r][c] = hn::Add(sums[r][c], hn::AbsDiff(xs[r], wc));
    }
  });
  for (Index r = 0; r < R; ++r)
    for (Index c = 0; c < C; ++c) heed::write(update, s[r * lds + c], -sum(sums[r][c]));
}

template <Index R>
void distance_rows(Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw, Update update,
                   float* s, Index lds) {
  Index c = 0;
  for (; c + 2 <= columns; c += 2) distance_tile<R, 2>(width, x, ldx, w + c * ldw, ldw, update, s + c, lds);
  if (c < columns) distance_tile<R, 1>(width, x, ldx, w + c * ldw, ldw, update, s + c, lds);
}

struct Sign {
  /// sum + g sign(w - x)
  Vector operator()(Vector sum, Vector g, Vector w, Vector x) const {
    sum = hn::Add(sum, hn::IfThenElseZero(hn::Gt(w, x), g));
    return hn::Sub(sum, hn::IfThenElseZero(hn::Lt(w, x), g));
  }
};

struct Hardtanh {
  Vector one = constant(1.0f), minus_one = constant(-1.0f);

  /// sum + g clamp(w - x, -1, 1)
  Vector operator()(Vector sum, Vector g, Vector w, Vector x) const {
    return hn::MulAdd(g, hn::Min(hn::Max(hn::Sub(w, x), minus_one), one), sum);
  }
};

/// dx[r,i] (+)= sum_t g[r,t] f(w[t,i] - x[r,i]) for R rows.
template <Index R, class F>
void gradient_rows(Index terms, Index width, const float* x, Index ldx, const float* w, Index ldw, const float* g,
                   Index g_row, Index g_term, Update update, float* dx, Index lddx, const F& add_term) {
  for_each_vector(width, [&](Index i, auto use) {
    Vector xs[R], sums[R];
    for (Index r = 0; r < R; ++r) xs[r] = use.load(x + r * ldx + i), sums[r] = hn::Zero(tag);
    for (Index t = 0; t < terms; ++t) {
      const Vector wt = use.load(w + t * ldw + i);
      for (Index r = 0; r < R; ++r) sums[r] = add_term(sums[r], set(g[r * g_row + t * g_term]), wt, xs[r]);
    }
    for (Index r = 0; r < R; ++r) write(update, use, sums[r], dx + r * lddx + i);
  });
}

template <class F>
void gradient_of(Index rows, Index terms, Index width, const float* x, Index ldx, const float* w, Index ldw,
                 const float* g, Index g_row, Index g_term, Update update, float* dx, Index lddx, const F& add_term) {
  Index r = 0;
  for (; r + 4 <= rows; r += 4)
    gradient_rows<4>(terms, width, x + r * ldx, ldx, w, ldw, g + r * g_row, g_row, g_term, update, dx + r * lddx, lddx,
                     add_term);
  for (; r < rows; ++r)
    gradient_rows<1>(terms, width, x + r * ldx, ldx, w, ldw, g + r * g_row, g_row, g_term, update, dx + r * lddx, lddx,
                     add_term);
}

}  // namespace

void negative_l1(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                 Update update, float* s, Index lds) {
  Index r = 0;
  for (; r + 4 <= rows; r += 4) distance_rows<4>(columns, width, x + r * ldx, ldx, w, ldw, update, s + r * lds, lds);
  for (; r < rows; ++r) distance_rows<1>(columns, width, x + r * ldx, ldx, w, ldw, update, s + r * lds, lds);
}

void negative_l1_gradient(DistanceGradient gradient, Transpose transpose_g, Index rows, Index terms, Index width,
                          const float* x, Index ldx, const float* w, Index ldw, const float* g, Index ldg,
                          Update update, float* dx, Index lddx) {
  const Index g_row = transpose_g == Transpose::no ? ldg : 1, g_term = transpose_g == Transpose::no ? 1 : ldg;
  if (gradient == DistanceGradient::sign)
    gradient_of(rows, terms, width, x, ldx, w, ldw, g, g_row, g_term, update, dx, lddx, Sign{});
  else if (gradient == DistanceGradient::hardtanh)
    gradient_of(rows, terms, width, x, ldx, w, ldw, g, g_row, g_term, update, dx, lddx, Hardtanh{});
  else  // a matrix product, and a correction that the compiler vectorises
    negative_l1_gradient<float>(gradient, transpose_g, rows, terms, width, x, ldx, w, ldw, g, ldg, update, dx, lddx);
}

}  // namespace heed::kernels

#endif
