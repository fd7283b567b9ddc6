// Functions common to the headers of all definitions. EPS is replaced by the definition's eps.
#pragma once

namespace heed {

inline constexpr const char* shared_functions = R"(
  /// y = function(x), element by element.
  template <class T, class Function>
  static void map(Matrix<const T> x, Matrix<T> y, const Function& function) {
    for (Index i = 0; i < x.rows; ++i)
      for (Index c = 0; c < x.columns; ++c) y(i, c) = function(x(i, c));
  }

  /// y = y function(x).
  template <class T, class Function>
  static void gate(Matrix<const T> x, Matrix<T> y, const Function& function) {
    for (Index i = 0; i < x.rows; ++i)
      for (Index c = 0; c < x.columns; ++c) y(i, c) = y(i, c) * function(x(i, c));
  }

  /// Computes the gradients of z = y function(x): dx = dz y slope(x), dy = dz function(x), which may overwrite dz.
  template <class T, class Function, class Slope>
  static void undo_gate(Matrix<const T> x, Matrix<const T> y, Matrix<const T> dz, const Function& function,
                        const Slope& slope, Update update, Matrix<T> dx, Matrix<T> dy) {
    for (Index i = 0; i < x.rows; ++i)
      for (Index c = 0; c < x.columns; ++c) {
        write(update, dx(i, c), dz(i, c) * y(i, c) * slope(x(i, c)));
        dy(i, c) = dz(i, c) * function(x(i, c));
      }
  }

  /// dx = dy slope(x).
  template <class T, class Slope>
  static void chain(Matrix<const T> x, Matrix<T> dy, const Slope& slope, Update update, Matrix<T> dx) {
    for (Index i = 0; i < dy.rows; ++i)
      for (Index c = 0; c < dy.columns; ++c) write(update, dx(i, c), dy(i, c) * slope(x(i, c)));
  }

  template <class T>
  static void normalise_tokens(Matrix<const T> x, Matrix<T> y, T* lengths) {
    using std::sqrt;
    for (Index i = 0; i < x.rows; ++i) {
      T squares(EPS);
      for (Index c = 0; c < x.columns; ++c) squares += x(i, c) * x(i, c);
      lengths[i] = sqrt(squares);
      for (Index c = 0; c < x.columns; ++c) y(i, c) = x(i, c) / lengths[i];
    }
  }
  template <class T>
  static void normalise_channels(Matrix<const T> x, Matrix<T> y, T* lengths) {
    using std::sqrt;
    for (Index c = 0; c < x.columns; ++c) {
      T squares(EPS);
      for (Index i = 0; i < x.rows; ++i) squares += x(i, c) * x(i, c);
      lengths[c] = sqrt(squares);
      for (Index i = 0; i < x.rows; ++i) y(i, c) = x(i, c) / lengths[c];
    }
  }

  /// Overwrites dy with dx.
  template <class T>
  static void undo_tokens(Matrix<const T> y, const T* lengths, Matrix<T> dy) {
    for (Index i = 0; i < y.rows; ++i) {
      T inner = y(i, 0) * dy(i, 0);
      for (Index c = 1; c < y.columns; ++c) inner += y(i, c) * dy(i, c);
      for (Index c = 0; c < y.columns; ++c) dy(i, c) = (dy(i, c) - y(i, c) * inner) / lengths[i];
    }
  }
  template <class T>
  static void undo_channels(Matrix<const T> y, const T* lengths, Matrix<T> dy) {
    for (Index c = 0; c < y.columns; ++c) {
      T inner = y(0, c) * dy(0, c);
      for (Index i = 1; i < y.rows; ++i) inner += y(i, c) * dy(i, c);
      for (Index i = 0; i < y.rows; ++i) dy(i, c) = (dy(i, c) - y(i, c) * inner) / lengths[c];
    }
  })";

}  // namespace heed
