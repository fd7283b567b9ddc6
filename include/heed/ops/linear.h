// linear and matmul: products of matrices.
#pragma once

#include "heed/kernels/gemm_bf16.h"
#include "heed/ops/linear_parts.h"

namespace heed {

/// Cost of a linear layer over `rows` rows; where no `input_gradient` is wanted, without dx.
inline Cost linear_cost(Index rows, Index in, Index out, bool bias, bool residual = false, bool input_gradient = true) {
  Cost cost;
  cost.forward = product_counts(rows, out, in) + Counts{.add = (bias + residual) * rows * out};
  cost.backward = product_counts(out, in, rows) + Counts{.add = bias ? (rows - 1) * out : 0};
  if (input_gradient) cost.backward += product_counts(rows, in, out);
  cost.forward_contractions = product_contractions(rows, out, in);
  cost.backward_contractions = (input_gradient ? 2 : 1) * cost.forward_contractions;
  return cost;
}

/// y = x W^T + b + r over the last axis: x [..., I], W [O, I], bias b [O] and residual r [..., O] or left out,
/// y [..., O].
///
///   dx += dy W,  dW += dy^T x,  db += sum over rows of dy,  dr += dy
template <class T>
Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {}) {
  Tape<T>& tape = tape_of("linear", x, weight, bias, residual);
  const auto [rows, in, out, shape] = detail::linear_sizes("linear", x, weight, bias);
  require(!residual || residual.shape() == shape, "[linear] the residual has shape {}; expected {}",
          residual ? residual.shape() : Shape{}, shape);

  const Products products = tape.pass().products;
  [[maybe_unused]] const kernels::PackedWeight* const packed = tape.packed(weight);
  return tape.record(
      {"linear", linear_cost(rows, in, out, static_cast<bool>(bias), static_cast<bool>(residual), tape.wanted(x))},
      shape, {x, weight, bias, residual},
      [=](T* y) {
        const T *px = x.data(), *pw = weight.data();
        const T *pb = bias ? bias.data() : nullptr, *pr = residual ? residual.data() : nullptr;
        for_product_parts<T>(rows, out, in, [=](Index row, Index last_row, Index column, Index last_column) {
          if constexpr (std::is_same_v<T, float> && kernels::packs_weights)
            if (packed && pb)
              return kernels::addmm(last_row - row, column, last_column, px + row * in, in, *packed, pb,
                                    pr ? pr + row * out : nullptr, out, y + row * out, out);
          const Index place = row * out + column;
          kernels::addmm(products, Transpose::no, Transpose::yes, last_row - row, last_column - column, in,
                         px + row * in, in, pw + column * in, in, pb ? pb + column : nullptr, pr ? pr + place : nullptr,
                         out, y + place, out);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *px = x.data(), *pw = weight.data(), *pdy = dy.data();
        detail::bias_backward(tape, bias, rows, out, pdy);
        if (const auto dw = tape.target(weight))
          for_product_ranges<T>(out, in * rows / 8, [=](Index begin, Index end) {
            kernels::gemm(products, Transpose::yes, Transpose::no, end - begin, in, rows, pdy + begin, out, px, in,
                          dw.update, dw.data + begin * in, in);
          });
        if (const auto dx = tape.target(x))
          for_product_ranges<T>(rows, in * out / 8, [=](Index begin, Index end) {
            kernels::gemm(products, Transpose::no, Transpose::no, end - begin, in, out, pdy + begin * out, out, pw, in,
                          dx.update, dx.data + begin * in, in);
          });
        if (residual) dy.give_to(residual);
      });
}

/// y = a b, matrix by matrix: a [..., m, k], b [..., k, n] with equal leading axes, y [..., m, n].
///
///   da += dy b^T,  db += a^T dy
template <class T>
Var<T> matmul(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("matmul", a, b);
  const Shape &as = a.shape(), &bs = b.shape();
  const int rank = as.rank();
  require(rank >= 2 && bs.rank() == rank && std::equal(as.begin(), as.end() - 2, bs.begin()) && as[-1] == bs[-2],
          "[matmul] a has shape {}, b has {}; expected [..., m, k] and [..., k, n]", as, bs);
  const Index m = as[-2], k = as[-1], n = bs[-1], count = m * k == 0 ? 0 : as.elements() / (m * k);
  Index sizes[Shape::max_rank];
  std::copy(as.begin(), as.end(), sizes);
  sizes[rank - 1] = n;

  Cost cost;
  cost.forward = count * product_counts(m, n, k);
  cost.backward = count * (product_counts(m, k, n) + product_counts(k, n, m));
  cost.forward_contractions = count * product_contractions(m, n, k);
  cost.backward_contractions = 2 * cost.forward_contractions;
  return tape.record(
      {"matmul", cost}, Shape(sizes, rank), {a, b},
      [=](T* y) {
        const T *pa = a.data(), *pb = b.data();
        parallel_for(count, [=](Index i) {
          kernels::gemm(Transpose::no, Transpose::no, m, n, k, pa + i * m * k, k, pb + i * k * n, n, Update::assign,
                        y + i * m * n, n);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *pa = a.data(), *pb = b.data(), *pdy = dy.data();
        if (const auto da = tape.target(a))
          parallel_for(count, [=](Index i) {
            kernels::gemm(Transpose::no, Transpose::yes, m, k, n, pdy + i * m * n, n, pb + i * k * n, n, da.update,
                          da.data + i * m * k, k);
          });
        if (const auto db = tape.target(b))
          parallel_for(count, [=](Index i) {
            kernels::gemm(Transpose::yes, Transpose::no, k, n, m, pa + i * m * k, k, pdy + i * m * n, n, db.update,
                          db.data + i * k * n, n);
          });
      });
}

}  // namespace heed
