// What kernels over all pairs of a row of x and a row of w share. Sums over a pair's elements: a tile of rows of x and
// rows of w at a time, so that each vector loaded serves several pairs. Sums over the rows of w: a vector of a few rows
// of the result stays in registers while all rows of w pass by.
#pragma once

#include "simd.h"

namespace heed::kernels::simd {

/// Calls result(r, c, sum over i of term(x[r,i], w[c,i])) for R x C pairs: R C sums, R rows of x and one of w must fit
/// into 16 registers. add_term(sum, x, w) is to leave a sum as it is where x and w are both zero.
template <Index R, Index C, class AddTerm, class Result>
void sum_tile(Index width, const float* x, Index ldx, const float* w, Index ldw, const AddTerm& add_term,
              const Result& result) {
  Vector sums[R][C];
  for (auto& row : sums)
    for (Vector& sum : row) sum = hn::Zero(tag);
  for_each_vector(width, [&](Index i, auto use) {
    Vector xs[R];
    for (Index r = 0; r < R; ++r) xs[r] = use.load(x + r * ldx + i);
    for (Index c = 0; c < C; ++c) {
      const Vector wc = use.load(w + c * ldw + i);
      for (Index r = 0; r < R; ++r) sums[r][c] = add_term(sums[r][c], xs[r], wc);
    }
  });
  for (Index r = 0; r < R; ++r)
    for (Index c = 0; c < C; ++c) result(r, c, sum(sums[r][c]));
}

/// The same for all pairs of `rows` rows of x and `columns` rows of w.
template <class AddTerm, class Result>
void sum_over_elements(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                       const AddTerm& add_term, const Result& result) {
  const auto some_rows = [&]<Index R>(std::integral_constant<Index, R>, Index r) {
    const auto tile = [&]<Index C>(std::integral_constant<Index, C>, Index c) {
      sum_tile<R, C>(width, x + r * ldx, ldx, w + c * ldw, ldw, add_term,
                     [&](Index i, Index j, float sum) { result(r + i, c + j, sum); });
    };
    Index c = 0;
    for (; c + 2 <= columns; c += 2) tile(std::integral_constant<Index, 2>{}, c);
    if (c < columns) tile(std::integral_constant<Index, 1>{}, c);
  };
  Index r = 0;
  for (; r + 4 <= rows; r += 4) some_rows(std::integral_constant<Index, 4>{}, r);
  for (; r < rows; ++r) some_rows(std::integral_constant<Index, 1>{}, r);
}

/// out[r,i] (+)= sum_t f(weight(r, t), w[t,i], x[r,i]) for all rows r; add_term(sum, weight, w, x) adds a term.
template <class Weight, class AddTerm>
void sum_over_rows(Index rows, Index terms, Index width, const float* x, Index ldx, const float* w, Index ldw,
                   const Weight& weight, Update update, float* out, Index ldout, const AddTerm& add_term) {
  const auto some_rows = [&]<Index R>(std::integral_constant<Index, R>, Index first) {
    for_each_vector(width, [&](Index i, auto use) {
      Vector xs[R], sums[R];
      for (Index r = 0; r < R; ++r) xs[r] = use.load(x + (first + r) * ldx + i), sums[r] = hn::Zero(tag);
      for (Index t = 0; t < terms; ++t) {
        const Vector wt = use.load(w + t * ldw + i);
        for (Index r = 0; r < R; ++r) sums[r] = add_term(sums[r], set(weight(first + r, t)), wt, xs[r]);
      }
      for (Index r = 0; r < R; ++r) write(update, use, sums[r], out + (first + r) * ldout + i);
    });
  };
  Index r = 0;
  for (; r + 4 <= rows; r += 4) some_rows(std::integral_constant<Index, 4>{}, r);
  for (; r < rows; ++r) some_rows(std::integral_constant<Index, 1>{}, r);
}

}  // namespace heed::kernels::simd
