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

namespace detail {

/// The products of a linear layer with its weight W [out, in], by the arranged copies of it where there are any.
template <class T>
class LinearProducts {
 public:
  LinearProducts(Tape<T>& tape, Index in, Index out, Var<T> weight)
      : in_(in), out_(out), products_(tape.pass().products), weight_(weight.data()), packed_(tape.packed(weight)) {}

  /// y = x W^T + b + r: x [rows, in]; bias [out] and residual [rows, out], each or nullptr; y [rows, out].
  void forward(Index rows, const T* x, const T* bias, const T* residual, T* y) const {
    for_product_parts<T>(rows, out_, in_, [=, *this](Index row, Index last_row, Index column, Index last_column) {
      const T* const from = x + row * in_;
      if constexpr (std::is_same_v<T, float> && kernels::packs_weights)
        if (packed_ && bias)
          return kernels::addmm(last_row - row, column, last_column, from, in_, packed_->forward, bias,
                                residual ? residual + row * out_ : nullptr, out_, y + row * out_, out_);
      const Index place = row * out_ + column;
      kernels::addmm(products_, Transpose::no, Transpose::yes, last_row - row, last_column - column, in_, from, in_,
                     weight_ + column * in_, in_, bias ? bias + column : nullptr, residual ? residual + place : nullptr,
                     out_, y + place, out_);
    });
  }

  /// dx (+)= dy W
  void input_gradient(Index rows, const T* dy, Update update, T* dx) const {
    for_product_ranges<T>(rows, in_ * out_ / 8, [=, *this](Index begin, Index end) {
      if constexpr (std::is_same_v<T, float> && kernels::packs_weights)
        if (packed_ && packed_->backward.data())
          return kernels::gemm(end - begin, 0, in_, dy + begin * out_, out_, packed_->backward, update,
                               dx + begin * in_, in_);
      kernels::gemm(products_, Transpose::no, Transpose::no, end - begin, in_, out_, dy + begin * out_, out_, weight_,
                    in_, update, dx + begin * in_, in_);
    });
  }

  /// dW (+)= dy^T x, if that is wanted.
  void weight_gradient(Index rows, const T* x, const T* dy, const typename Tape<T>::Target& dw) const {
    if (!dw) return;
    for_product_ranges<T>(out_, in_ * rows / 8, [=, *this](Index begin, Index end) {
      kernels::gemm(products_, Transpose::yes, Transpose::no, end - begin, in_, rows, dy + begin, out_, x, in_,
                    dw.update, dw.data + begin * in_, in_);
    });
  }

 private:
  Index in_, out_;
  Products products_;
  const T* weight_;
  const LinearWeight* packed_;
};

}  // namespace detail

/// y = x W^T + b + r over the last axis: x [..., I], W [O, I], bias b [O] and residual r [..., O] or left out,
/// y [..., O].
///
///   dx += dy W,  dW += dy^T x,  db += sum over rows of dy,  dr += dy
template <class T>
Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {}) {
  Tape<T>& tape = tape_of("linear", x, weight, bias, residual);
  const auto [rows, in, out, shape] = detail::linear_sizes("linear", x, weight, bias, residual);
  const detail::LinearProducts<T> products(tape, in, out, weight);
  return tape.record(
      {"linear", linear_cost(rows, in, out, static_cast<bool>(bias), static_cast<bool>(residual), tape.wanted(x))},
      shape, {x, weight, bias, residual},
      [=](T* y) {
        products.forward(rows, x.data(), bias ? bias.data() : nullptr, residual ? residual.data() : nullptr, y);
      },
      [=, &tape](const Adjoint<T>& dy) {
        detail::bias_backward(tape, bias, rows, out, dy.data());
        products.weight_gradient(rows, x.data(), dy.data(), tape.target(weight));
        if (const auto dx = tape.target(x)) products.input_gradient(rows, dy.data(), dx.update, dx.data);
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
