// add, mul, scale: element by element.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// y = a + b, of equal shapes. da += dy, db += dy.
template <class T>
Var<T> add(Var<T> a, Var<T> b);

/// y = a b element by element, of equal shapes. da += b dy, db += a dy.
template <class T>
Var<T> mul(Var<T> a, Var<T> b);

/// y = factor x. dx += factor dy.
template <class T>
Var<T> scale(Var<T> x, double factor);

}  // namespace heed
