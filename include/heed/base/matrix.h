// A matrix in memory that belongs to somebody else. Kernels take such matrices, and mechanisms are written in terms of
// them.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>

namespace heed {

/// Row-major: element (r, c) is data[r stride + c]. A column of values is a matrix of one column.
template <class T>
struct Matrix {
  T* data = nullptr;
  Index rows = 0, columns = 0;
  Index stride = 0;  ///< numbers from one row to the next, in every kernel

  Matrix() = default;
  Matrix(T* data, Index rows, Index columns) : Matrix(data, rows, columns, columns) {}
  Matrix(T* data, Index rows, Index columns, Index stride) : data(data), rows(rows), columns(columns), stride(stride) {}

  /// Copied number by number, so that functions get the address of a matrix. A trivial copy goes onto the stack
  /// instead: one wide read of four numbers just written one by one, which has to wait for them (some 10 ns a call).
  Matrix(const Matrix& other) : Matrix(other.data, other.rows, other.columns, other.stride) {}
  Matrix& operator=(const Matrix&) = default;

  /// A Matrix<T> serves wherever a Matrix<const T> is asked for.
  template <class U>
  requires(std::is_same_v<const U, T>) Matrix(const Matrix<U>& other)
      : Matrix(other.data, other.rows, other.columns, other.stride) {}

  /// Is there one? Operands that may be left out are empty.
  explicit operator bool() const { return data != nullptr; }

  /// The start of a row.
  T* operator[](Index row) const { return data + row * stride; }
  T& operator()(Index row, Index column) const { return data[row * stride + column]; }

  /// Its rows [first, first + count), and its columns likewise.
  Matrix middle_rows(Index first, Index count) const { return {data + first * stride, count, columns, stride}; }
  Matrix middle_columns(Index first, Index count) const { return {data + first, rows, count, stride}; }
  Matrix top_rows(Index count) const { return {data, count, columns, stride}; }

  Index size() const { return rows * columns; }

  /// The same numbers as a single row where nothing lies between rows: for what is done to each number by itself.
  Matrix joined() const { return stride == columns ? Matrix(data, 1, size()) : *this; }
};

/// A matrix read as its transpose.
template <class T>
struct Transposed {
  Matrix<T> matrix;
};

/// The transpose of m, for products; nothing is moved.
template <class T>
Transposed<T> transposed(Matrix<T> m) {
  return {m};
}

/// An operand of a product: a matrix, or the transpose of one. rows and columns are those of what it stands for.
template <class T>
struct Operand {
  const T* data = nullptr;
  Index rows = 0, columns = 0;
  Index stride = 0;         ///< of the matrix in memory
  bool transposed = false;  ///< is that matrix the transpose of the operand?

  Operand(const Operand& other)  // as a Matrix is, and for the same reason
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

  /// Numbers from an element to the one below it, and to the one beside it.
  Index down() const { return transposed ? 1 : stride; }
  Index across() const { return transposed ? stride : 1; }
  const T& operator()(Index row, Index column) const { return data[row * down() + column * across()]; }

  /// Its rows [first, first + count), and its columns likewise.
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

/// So that the type of an operand follows from the result: gemm(q, transposed(k), S) with S a Matrix<float>.
template <class T>
using OperandFor = Operand<std::type_identity_t<T>>;
template <class T>
using MatrixFor = Matrix<const std::type_identity_t<T>>;

/// Sets every element.
template <class T>
void fill(Matrix<T> m, std::type_identity_t<T> value) {
  for (Index r = 0; r < m.rows; ++r) std::fill_n(m[r], m.columns, value);
}

/// Asks the cache for the numbers of m, and does not wait for them. (Inline always: what does nothing but this, GCC
/// takes for a function without effect, and leaves out its calls.)
template <class T>
[[gnu::always_inline]] inline void fetch(Matrix<T> m) {
  constexpr Index line = 64 / sizeof(T) > 0 ? 64 / sizeof(T) : 1;
  for (Index r = 0; r < m.rows; ++r)
    for (Index i = 0; i < m.columns; i += line) __builtin_prefetch(m[r] + i);
}

}  // namespace heed
