"""Is a difference between two arms real? Each arm is a list of values, e.g. one accuracy per seed."""

import functools
import math


def tail(t, freedom):
    """The probability that Student's t with `freedom` degrees of freedom (may be fractional) exceeds t in magnitude."""
    x = freedom / (freedom + t * t)
    a, b = freedom / 2, 1 / 2
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    return _beta(x, a, b)


def _beta(x, a, b):
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x in (0, 1):
        return float(x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 200):
        for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * value / a


@functools.cache
def quantile(probability, freedom):
    """The t that Student's t exceeds in magnitude with this probability: tail(t, freedom) = probability."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > probability else (low, middle)
    return low


def mean(values):
    return sum(values) / len(values)


def deviation(values):
    """The standard deviation, from the unbiased estimate of the variance."""
    raise NotImplementedError("not yet")


def interval(a, b):
    """Half of the width of the 95 % interval of mean(b) - mean(a), if both arms have the same variance."""
    raise NotImplementedError("not yet")


def welch(a, b):
    """The p-value of the difference of means: the probability of a difference at least as large if the true one is 0.
    Each arm has its own variance."""
    raise NotImplementedError("not yet")


def paired(a, b):
    """The p-value of the differences seed by seed: a[i] and b[i] have the same seed."""
    raise NotImplementedError("not yet")


def seeds_needed(deviation, difference):
    """The number of seeds per arm with which a test at 5 % finds a true difference in four of five cases."""
    raise NotImplementedError("not yet")
