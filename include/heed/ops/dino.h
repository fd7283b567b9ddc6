// What self-supervision by a teacher needs: rows of unit length, and the loss. arXiv:2104.14294v2, Section 3.1.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Each row of x [..., D] divided by its length (kernels/rows/unit_rows.h, with the gradient).
template <class T>
Var<T> unit_rows(Var<T> x);

/// y = [a; b]: a [m, D], b [n, D], y [m + n, D].
template <class T>
Var<T> join_rows(Var<T> a, Var<T> b);

/// How well a student's views of images agree with a teacher's two: with V views, the sum over images and over pairs of
/// a teacher's view i and another view j of the student's,
///
///   loss = -1 / divisor sum of q_i . log p_j,   p = softmax(logits / temperature),
///
/// a scalar. logits [V B, K]: rows 2 b and 2 b + 1 are the views 0 and 1 of image b, rows 2 B + (V - 2) b and so on its
/// others. q [B, 2, K], rows that sum to one, belongs to the caller and must outlive the pass. Since they do,
/// -q_i . log p_j = log sum exp(x_j) - q_i . x_j with x = logits / temperature, and for a view with n pairs
///
///   dlogits_j = (n p_j - sum of its q_i) dloss / (divisor temperature).
template <class T>
Var<T> dino_loss(Var<T> logits, View<const T> q, double temperature, Index divisor);

}  // namespace heed
