"""Runs the student's functions on test functions with given coefficients."""

import math


def polynomial(coefficients):
    """x -> sum over i of a x_i + b x_i^2 + c x_i^3, with a, b, c for each i."""
    return lambda x: sum(a * t + b * t**2 + c * t**3 for (a, b, c), t in zip(coefficients, x))


def run_central_difference(student, arguments):
    coefficients, x, i, h = arguments
    f, before = polynomial(coefficients), list(x)
    return [student.central_difference(f, x, i, h), x == before]


def run_gradient(student, arguments):
    rates, x = arguments
    return student.gradient(lambda x: sum(math.sin(rate * t) for rate, t in zip(rates, x)), x)


def squares(x):
    """f_i = x_i^2 + x_i sum_j x_j."""
    total = sum(x)
    return [t * t + t * total for t in x]


def squares_backward(x, cotangent):
    """df_j / dx_i = (2 x_i + total) [i = j] + x_j."""
    total, inner = sum(x), sum(c * t for c, t in zip(cotangent, x))
    return [c * (2 * t + total) + inner for c, t in zip(cotangent, x)]


def run_gradcheck(student, arguments):
    """The backward pass is correct except at the indices `wrong`, where its result is multiplied by `factor`."""
    x, cotangent, wrong, factor = arguments

    def backward(x, cotangent):
        return [d * factor if i in wrong else d for i, d in enumerate(squares_backward(x, cotangent))]

    return list(student.gradcheck(squares, backward, x, cotangent))
