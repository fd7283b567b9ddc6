"""Judges by properties of central differences: exact for parabolas, with an error of c h^2 for c x^3."""

import math


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def vector(random, n, low=-2.0, high=2.0):
    return [random.uniform(low, high) for _ in range(n)]


def draw_central_difference(random):
    n = random.randint(2, 5)
    return [[vector(random, 3) for _ in range(n)], vector(random, n), random.randrange(n), random.uniform(0.1, 0.5)]


def judge_central_difference(arguments, result):
    coefficients, x, i, h = arguments
    value, intact = result
    (a, b, c), t = coefficients[i], x[i]
    if not is_number(value):
        return "it does not return a finite number"
    if not intact:
        return "it changes x"
    if math.isclose(value, a + 2 * b * t + c * (3 * t * t + h * h), rel_tol=1e-9, abs_tol=1e-9):
        return None
    if math.isclose(value, a + b * (2 * t + h) + c * (3 * t * t + 3 * t * h + h * h), rel_tol=1e-9, abs_tol=1e-9):
        return "this is a one-sided difference"
    return f"for {a:.3g} x + {b:.3g} x^2 + {c:.3g} x^3 at x = {t:.3g} with h = {h:.3g} it gives {value:.6g}"


def draw_gradient(random):
    """One large element, with a larger step than the others, and one near 0, whose step is not smaller."""
    n = random.randint(2, 5)
    x = vector(random, n)
    large, small = random.sample(range(n), 2)
    x[large] *= 1000
    x[small] *= 1e-6
    return [[random.uniform(0.5, 1.5) / max(1, abs(t)) for t in x], x]


def judge_gradient(arguments, result):
    rates, x = arguments
    if not isinstance(result, list) or len(result) != len(x) or not all(map(is_number, result)):
        return f"for {len(x)} numbers it does not return {len(x)} finite numbers"
    for rate, t, got in zip(rates, x, result):
        error = abs(got - rate * math.cos(rate * t))
        if error > 1e-9 * rate:
            return f"the derivative of sin({rate:.3g} x) at x = {t:.4g} is off by {error:.1g}"
    return None


def draw_worst(random):
    n = random.randint(4, 8)
    expected = vector(random, n)
    expected[random.randrange(n)] *= 1e-5
    return [[e + random.uniform(-1, 1) * 1e-4 for e in expected], expected]


def judge_worst(arguments, result):
    got, expected = arguments
    least = 1e-3 * max(map(abs, expected))
    errors = [abs(g - e) / max(abs(e), least) for g, e in zip(got, expected)]
    if not isinstance(result, list) or len(result) != 2:
        return "it does not return a pair: the index and the error"
    if result[0] != errors.index(max(errors)):
        return "it names another index"
    if not is_number(result[1]) or not math.isclose(result[1], max(errors), rel_tol=1e-9):
        return "the index is right, the error is not"
    return None


def draw_gradcheck(random):
    """One of the correct elements is 0, where a purely relative error is meaningless."""
    n = random.randint(4, 7)
    x = [random.choice([-1, 1]) * random.uniform(0.5, 2) for _ in range(n)]
    cotangent, zero = vector(random, n), random.randrange(n)
    others = [i for i in range(n) if i != zero]
    slope = 3 * x[zero] + sum(x)  # the factor of the element's own cotangent in its gradient, see calls.py
    if abs(slope) < 0.5:
        return draw_gradcheck(random)
    cotangent[zero] = -sum(cotangent[i] * x[i] for i in others) / slope
    return [x, cotangent, sorted(random.sample(others, random.randint(0, 3))),
            random.choice([-1.0, 0.0, 2.0, 1.00003])]


def judge_gradcheck(arguments, result):
    x, cotangent, wrong, factor = arguments
    if result == wrong:
        return None
    if not wrong:
        return "it finds errors in a gradient that is right everywhere"
    named = len(result) if isinstance(result, list) else "no list"
    return (f"{len(wrong)} of {len(x)} elements of a gradient were multiplied by {factor:g}; expected their indices, "
            f"found {f'{named} indices' if isinstance(result, list) else named}")
