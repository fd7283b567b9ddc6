// Elementwise arithmetic with broadcasting: add, sub, mul, div, neg, scale, and the operators + - * /.
//
// Shapes are broadcast by NumPy's rules: aligned at the last axis, sizes are equal or one of them is 1. The gradient of
// a repeated operand is summed over the repetitions. Incompatible shapes throw an Error that names both.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = a + b. da += dy, db += dy.
template <class T>
Var<T> add(Var<T> a, Var<T> b);

/// Computes y = a - b. da += dy, db -= dy.
template <class T>
Var<T> sub(Var<T> a, Var<T> b);

/// Computes y = a b elementwise. da += b dy, db += a dy.
template <class T>
Var<T> mul(Var<T> a, Var<T> b);

/// Computes y = a / b elementwise. da += dy / b, db -= y dy / b.
template <class T>
Var<T> div(Var<T> a, Var<T> b);

/// Computes y = -x. dx -= dy.
template <class T>
Var<T> neg(Var<T> x);

/// Computes y = factor x. dx += factor dy.
template <class T>
Var<T> scale(Var<T> x, double factor);

/// Operators for add, sub, mul, div and neg. A number as an operand is a scalar without a gradient.
template <class T>
Var<T> operator+(Var<T> a, Var<T> b) {
  return add(a, b);
}
template <class T>
Var<T> operator-(Var<T> a, Var<T> b) {
  return sub(a, b);
}
template <class T>
Var<T> operator*(Var<T> a, Var<T> b) {
  return mul(a, b);
}
template <class T>
Var<T> operator/(Var<T> a, Var<T> b) {
  return div(a, b);
}
template <class T>
Var<T> operator-(Var<T> x) {
  return neg(x);
}

template <class T>
Var<T> operator+(Var<T> a, double b) {
  return add(a, a.tape().constant(b));
}
template <class T>
Var<T> operator+(double a, Var<T> b) {
  return add(b.tape().constant(a), b);
}
template <class T>
Var<T> operator-(Var<T> a, double b) {
  return sub(a, a.tape().constant(b));
}
template <class T>
Var<T> operator-(double a, Var<T> b) {
  return sub(b.tape().constant(a), b);
}
template <class T>
Var<T> operator*(Var<T> a, double b) {
  return scale(a, b);
}
template <class T>
Var<T> operator*(double a, Var<T> b) {
  return scale(b, a);
}
template <class T>
Var<T> operator/(Var<T> a, double b) {
  return div(a, a.tape().constant(b));
}
template <class T>
Var<T> operator/(double a, Var<T> b) {
  return div(b.tape().constant(a), b);
}

}  // namespace heed
