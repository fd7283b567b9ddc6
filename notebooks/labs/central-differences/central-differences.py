"""Notebook 1: a gradient by central differences, and a check of hand-written gradients with it.

A vector is a list of floats.
"""

import sys

EPSILON = sys.float_info.epsilon  # 2.2e-16


def central_difference(f, x, i, h):
    """(f(x + h e_i) - f(x - h e_i)) / 2h: approximates f's derivative with respect to x[i]. Leaves x unchanged."""
    raise NotImplementedError("not yet")


def gradient(f, x):
    """The derivatives of f with respect to each x[i], as a list; steps are cbrt(EPSILON) max(1, |x[i]|)."""
    raise NotImplementedError("not yet")


def worst(got, expected):
    """(i, error): the index of the largest error of `got`, and that error. The error of an element is |got - expected|
    divided by |expected|, or by 1e-3 of the largest |expected| if that is more."""
    raise NotImplementedError("not yet")


def gradcheck(f, backward, x, cotangent):
    """The indices i at which a hand-written backward pass is wrong, as a list in ascending order.

    f(x) is a list, and backward(x, cotangent) should be the gradient of sum_j cotangent[j] f(x)[j] with respect to x.
    An element is wrong if its error, as in `worst`, exceeds 1e-6.
    """
    raise NotImplementedError("not yet")
