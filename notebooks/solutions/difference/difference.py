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
    centre = mean(values)
    return math.sqrt(sum((x - centre) ** 2 for x in values) / (len(values) - 1))


def interval(a, b):
    """Half of the width of the 95 % interval of mean(b) - mean(a), if both arms have the same variance."""
    freedom = len(a) + len(b) - 2
    pooled = ((len(a) - 1) * deviation(a) ** 2 + (len(b) - 1) * deviation(b) ** 2) / freedom
    return quantile(0.05, freedom) * math.sqrt(pooled * (1 / len(a) + 1 / len(b)))


def welch(a, b):
    """The p-value of the difference of means: the probability of a difference at least as large if the true one is 0.
    Each arm has its own variance."""
    of_a, of_b = deviation(a) ** 2 / len(a), deviation(b) ** 2 / len(b)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    return tail((mean(b) - mean(a)) / math.sqrt(of_a + of_b), freedom)


def paired(a, b):
    """The p-value of the differences seed by seed: a[i] and b[i] have the same seed."""
    differences = [y - x for x, y in zip(a, b)]
    return tail(mean(differences) / (deviation(differences) / math.sqrt(len(a))), len(a) - 1)


def seeds_needed(deviation, difference):
    """The number of seeds per arm with which a test at 5 % finds a true difference in four of five cases."""
    # The standard error of a difference of two means of n is sqrt(2 / n) deviation. The test requires 1.96 of it, and
    # in four of five cases the difference exceeds its true value minus 0.84 of it.
    return math.ceil(2 * ((1.96 + 0.84) * deviation / difference) ** 2)
