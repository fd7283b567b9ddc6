// Non-owning matrices, the operands of kernels and mechanisms.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>

namespace heed {

/// A non-owning row-major matrix: element (r, c) is data[r stride + c]. A column vector has one column.
template <class T>
struct Matrix {
  T* data = nullptr;
  Index rows = 0, columns = 0;
  Index stride = 0;  ///< elements from one row to the next

  Matrix() = default;
  Matrix(T* data, Index rows, Index columns) : Matrix(data, rows, columns, columns) {}
  Matrix(T* data, Index rows, Index columns, Index stride) : data(data), rows(rows), columns(columns), stride(stride) {}

  /// Copies field by field. This makes the copy constructor non-trivial, so a matrix is passed to functions by its
  /// address. Trivial copies would be passed on the stack, by a wide load of fields that were just stored individually,
  /// which stalls (about 10 ns per call).
  Matrix(const Matrix& other) : Matrix(other.data, other.rows, other.columns, other.stride) {}
  Matrix& operator=(const Matrix&) = default;

  /// Converts a Matrix<T> to a Matrix<const T>.
  template <class U>
  requires(std::is_same_v<const U, T>) Matrix(const Matrix<U>& other)
      : Matrix(other.data, other.rows, other.columns, other.stride) {}

  /// Returns true unless the matrix is empty; omitted optional operands are empty.
  explicit operator bool() const { return data != nullptr; }

  /// Returns the start of a row.
  T* operator[](Index row) const { return data + row * stride; }
  T& operator()(Index row, Index column) const { return data[row * stride + column]; }

  /// Return the rows, or the columns, [first, first + count).
  Matrix middle_rows(Index first, Index count) const { return {data + first * stride, count, columns, stride}; }
  Matrix middle_columns(Index first, Index count) const { return {data + first, rows, count, stride}; }
  Matrix top_rows(Index count) const { return {data, count, columns, stride}; }

  Index size() const { return rows * columns; }

  /// Returns the matrix as a single row if its rows are contiguous, for element-wise operations.
  Matrix joined() const { return stride == columns ? Matrix(data, 1, size()) : *this; }
};

/// A matrix to be read as its transpose.
template <class T>
struct Transposed {
  Matrix<T> matrix;
};

/// Returns the transpose of m as an operand; no data moves.
template <class T>
Transposed<T> transposed(Matrix<T> m) {
  return {m};
}

/// An operand of a product: a matrix or a transposed one. `rows` and `columns` are the operand's.
template <class T>
struct Operand {
  const T* data = nullptr;
  Index rows = 0, columns = 0;
  Index stride = 0;         ///< stride of the matrix in memory
  bool transposed = false;  ///< true if the matrix in memory is the transpose of the operand

  Operand(const Operand& other)  // copies field by field, like Matrix
      : Operand(other.data, other.rows, other.columns, other.stride, other.transposed) {}
  Operand& operator=(const Operand&) = default;

  Operand(Matrix<const T> m) : data(m.data), rows(m.rows), columns(m.columns), stride(m.stride) {}
  Operand(Matrix<T> m) : Operand(Matrix<const T>(m)) {}
  Operand(Transposed<const T> t)
      : data(t.matrix.data),
        rows(t.matrix.columns),
        columns(t.matrix.rows),
        stride(t.matrix.stride),
        transposed(true) {}
  Operand(Transposed<T> t) : Operand(Transposed<const T>{t.matrix}) {}

  /// Return the distance in elements to the element below, and to the element to the right.
  Index down() const { return transposed ? 1 : stride; }
  Index across() const { return transposed ? stride : 1; }
  const T& operator()(Index row, Index column) const { return data[row * down() + column * across()]; }

  /// Return the rows, or the columns, [first, first + count).
  Operand middle_rows(Index first, Index count) const {
    return {data + first * down(), count, columns, stride, transposed};
  }
  Operand middle_columns(Index first, Index count) const {
    return {data + first * across(), rows, count, stride, transposed};
  }

 private:
  Operand(const T* data, Index rows, Index columns, Index stride, bool transposed)
      : data(data), rows(rows), columns(columns), stride(stride), transposed(transposed) {}
};

/// Non-deduced types, so that T is deduced from the result alone: gemm(q, transposed(k), S) with S a Matrix<float>.
template <class T>
using OperandFor = Operand<std::type_identity_t<T>>;
template <class T>
using MatrixFor = Matrix<const std::type_identity_t<T>>;

/// Sets every element to `value`.
template <class T>
void fill(Matrix<T> m, std::type_identity_t<T> value) {
  for (Index r = 0; r < m.rows; ++r) std::fill_n(m[r], m.columns, value);
}

/// Prefetches the elements of m into the cache. Always inlined: GCC treats a function that only prefetches as having no
/// effect and drops calls to it.
template <class T>
[[gnu::always_inline]] inline void fetch(Matrix<T> m) {
  constexpr Index line = 64 / sizeof(T) > 0 ? 64 / sizeof(T) : 1;
  for (Index r = 0; r < m.rows; ++r)
    for (Index i = 0; i < m.columns; i += line) __builtin_prefetch(m[r] + i);
}

}  // namespace heed
