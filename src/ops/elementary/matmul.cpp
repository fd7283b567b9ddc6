#include "heed/ops/elementary/matmul.h"

#include "strided.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/products/gemm.h"

namespace heed {

namespace {

/// Memory layout of an operand's matrices.
struct Matrices {
  Index rows, columns;
  bool transposed;

  template <class T>
  Matrix<T> at(T* data, Index offset) const {
    return {data + offset, rows, columns};
  }
  /// Returns the matrix to multiply, or with `other_way` its transpose.
  template <class T>
  Operand<T> operand(const T* data, Index offset, bool other_way = false) const {
    const Matrix<const T> matrix = at(data, offset);
    return transposed != other_way ? heed::transposed(matrix) : Operand<T>(matrix);
  }
};

/// A tensor, or the transpose of one.
template <class T>
struct Factor {
  Var<T> x;
  bool transposed = false;
};

template <class T>
Var<T> product(Factor<T> a, Factor<T> b) {
  Tape<T>& tape = tape_of("matmul", a.x, b.x);
  const Shape &as = a.x.shape(), &bs = b.x.shape();
  require(as.rank() >= 2 && bs.rank() >= 2 && as[a.transposed ? -2 : -1] == bs[b.transposed ? -1 : -2],
          "[matmul] a has shape {}{}, b has {}{}; expected [..., m, k] and [..., k, n]", as,
          a.transposed ? " transposed" : "", bs, b.transposed ? " transposed" : "");
  const Matrices ma{as[-2], as[-1], a.transposed}, mb{bs[-2], bs[-1], b.transposed};
  const Index m = as[a.transposed ? -1 : -2], k = as[a.transposed ? -2 : -1], n = bs[b.transposed ? -2 : -1];
  const Shape batch_a(as.begin(), as.rank() - 2), batch_b(bs.begin(), bs.rank() - 2);
  const auto common_batch = [&] {
    try {
      return broadcast_shape("matmul", batch_a, batch_b);
    } catch (const Error&) {
      fail("[matmul] a has shape {}, b has {}; their leading axes {} and {} cannot be broadcast", as, bs, batch_a,
           batch_b);
    }
  };
  const Shape batch = common_batch();
  Strides sizes{};
  std::copy(batch.begin(), batch.end(), sizes.begin());
  require(batch.rank() + 2 <= Shape::max_rank, "[matmul] shapes {} and {}; the product has too many axes", as, bs);
  sizes.data()[batch.rank()] = m, sizes.data()[batch.rank() + 1] = n;
  const Shape shape(sizes.data(), batch.rank() + 2);
  // Loop over the indices of the matrices of y, a and b.
  const StridedLoop<3> loop(batch,
                            {strides_of(batch), broadcast_strides(batch_a, batch), broadcast_strides(batch_b, batch)});
  const Index count = batch.elements();

  Cost cost;
  cost.forward = count * product_counts(m, n, k);
  cost.forward_contractions = count * product_contractions(m, n, k);
  const auto add_gradient = [&](Var<T> x, const Counts& product, Index elements) {
    if (!tape.wanted(x)) return;
    cost.backward += count * product + broadcast_sum_counts(count * elements, x.size());
    cost.backward_contractions += cost.forward_contractions;
  };
  add_gradient(a.x, product_counts(m, k, n), m * k);
  add_gradient(b.x, product_counts(k, n, m), k * n);
  cost.backward += repeated_counts(tape, a.x, b.x);

  /// Calls f(offset in y, offset in a, offset in b, first use of a's matrix, first use of b's matrix) for each product:
  /// on all threads if `apart`, otherwise in order.
  const auto for_products = [=](bool apart, const auto& f) {
    const auto each = [&](const auto& run) {
      for (Index j = 0; j < run.count; ++j)
        f(run.at(0, j) * m * n, run.at(1, j) * m * k, run.at(2, j) * k * n, run.visits_first(1, j),
          run.visits_first(2, j));
    };
    if (apart)
      for_row_ranges(count, m * n * k, [&](Index begin, Index end) { loop.for_runs(begin, end, each); });
    else
      loop.for_runs(0, count, each);
  };
  return tape.record(
      {"matmul", cost}, shape, {a.x, b.x},
      [=](T* y) {
        for_products(true, [=, pa = a.x.data(), pb = b.x.data()](Index at_y, Index at_a, Index at_b, bool, bool) {
          kernels::gemm(ma.operand(pa, at_a), mb.operand(pb, at_b), Matrix<T>(y + at_y, m, n));
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T* const pdy = dy.data();
        // If there are no products, the gradients are zero.
        const auto clear_unused = [&](const typename Tape<T>::Target& d, Index size) {
          if (count == 0 && d.update == Update::assign) std::fill_n(d.data, size, T(0));
        };
        if (const auto da = tape.target(a.x)) {
          clear_unused(da, a.x.size());
          for_products(batch_a == batch, [=, pb = b.x.data()](Index at_y, Index at_a, Index at_b, bool first, bool) {
            const Matrix<const T> mdy(pdy + at_y, m, n);
            const Update update = first ? da.update : Update::accumulate;
            const Matrix<T> to = ma.at(da.data, at_a);
            if (a.transposed)  // d(a^T) = b dy^T
              kernels::gemm(mb.operand(pb, at_b), heed::transposed(mdy), update, to);
            else
              kernels::gemm(mdy, mb.operand(pb, at_b, true), update, to);
          });
        }
        if (const auto db = tape.target(b.x)) {
          clear_unused(db, b.x.size());
          for_products(batch_b == batch, [=, pa = a.x.data()](Index at_y, Index at_a, Index at_b, bool, bool first) {
            const Matrix<const T> mdy(pdy + at_y, m, n);
            const Update update = first ? db.update : Update::accumulate;
            const Matrix<T> to = mb.at(db.data, at_b);
            if (b.transposed)  // d(b^T) = dy^T a
              kernels::gemm(heed::transposed(mdy), ma.operand(pa, at_a), update, to);
            else
              kernels::gemm(ma.operand(pa, at_a, true), mdy, update, to);
          });
        }
      });
}

}  // namespace

template <class T>
Var<T> matmul(Var<T> a, Var<T> b) {
  return product<T>({a}, {b});
}

template <class T>
Var<T> matmul(Var<T> a, TransposedVar<T> b) {
  return product<T>({a}, {b.of, true});
}

template <class T>
Var<T> matmul(TransposedVar<T> a, Var<T> b) {
  return product<T>({a.of, true}, {b});
}

template <class T>
Var<T> matmul(TransposedVar<T> a, TransposedVar<T> b) {
  return product<T>({a.of, true}, {b.of, true});
}

#define INSTANTIATE(T)                              \
  template Var<T> matmul(Var<T>, Var<T>);           \
  template Var<T> matmul(Var<T>, TransposedVar<T>); \
  template Var<T> matmul(TransposedVar<T>, Var<T>); \
  template Var<T> matmul(TransposedVar<T>, TransposedVar<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
