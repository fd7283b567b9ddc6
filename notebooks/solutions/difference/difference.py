"""Is a difference between two arms real? Values are a list per arm: an accuracy for each seed."""

import functools
import math


def tail(t, freedom):
    """The probability that Student's t with so many degrees of freedom, which need not be whole, is beyond t or -t."""
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
    """The t beyond which, or beyond -t, Student's t is with this probability: tail(t, freedom) = probability."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, freedom) > probability else (low, middle)
    return low


def mean(values):
    return sum(values) / len(values)


def deviation(values):
    """The standard deviation, its square an unbiased estimate of the variance."""
    centre = mean(values)
    return math.sqrt(sum((x - centre) ** 2 for x in values) / (len(values) - 1))


def interval(a, b):
    """Half of the width of the 95 % interval of mean(b) - mean(a), where both arms have the same variance."""
    freedom = len(a) + len(b) - 2
    pooled = ((len(a) - 1) * deviation(a) ** 2 + (len(b) - 1) * deviation(b) ** 2) / freedom
    return quantile(0.05, freedom) * math.sqrt(pooled * (1 / len(a) + 1 / len(b)))


def welch(a, b):
    """The probability of a difference of means as large as this one or larger, by chance alone. Each arm has a variance
    of its own."""
    of_a, of_b = deviation(a) ** 2 / len(a), deviation(b) ** 2 / len(b)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    return tail((mean(b) - mean(a)) / math.sqrt(of_a + of_b), freedom)


def paired(a, b):
    """The same from the differences seed by seed: a[i] and b[i] have the same seed."""
    differences = [y - x for x, y in zip(a, b)]
    return tail(mean(differences) / (deviation(differences) / math.sqrt(len(a))), len(a) - 1)


def seeds_needed(deviation, difference):
    """How many seeds each arm needs, so that a test at 5 % finds a true difference four times out of five."""
    # The difference of two means of n scatters by sqrt(2 / n) deviation. It is found if it is beyond 1.96 times that, and
    # lies above its true value less 0.84 times that in four of five cases.
    return math.ceil(2 * ((1.96 + 0.84) * deviation / difference) ** 2)
