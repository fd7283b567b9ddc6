// Operations for self-distillation (DINO): normalisation and concatenation of rows, and the loss.
// arXiv:2104.14294v2, Section 3.1.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Divides each row of x [..., D] by its length (kernels/rows/unit_rows.h, with the gradient).
template <class T>
Var<T> unit_rows(Var<T> x);

/// Computes y = [a; b]: a [m, D], b [n, D], y [m + n, D].
template <class T>
Var<T> join_rows(Var<T> a, Var<T> b);

/// Computes the cross entropy between a teacher's two views of each image and the student's V views, summed over images
/// and over pairs of view i of the teacher and view j of the student, j != i:
///
///   loss = -1 / divisor sum of q_i . log p_j,   p = softmax(logits / temperature),
///
/// a scalar. logits [V B, K]: rows 2 b and 2 b + 1 are views 0 and 1 of image b; its other V - 2 views begin at row
/// 2 B + (V - 2) b. q [B, 2, K] belongs to the caller and must outlive the pass; its rows sum to one, hence -q_i . log
/// p_j = log sum exp(x_j) - q_i . x_j with x = logits / temperature, and for a view with n pairs
///
///   dlogits_j += (n p_j - sum of the q_i of its pairs) dloss / (divisor temperature).
template <class T>
Var<T> dino_loss(Var<T> logits, ViewFor<T> q, double temperature, Index divisor);

}  // namespace heed
