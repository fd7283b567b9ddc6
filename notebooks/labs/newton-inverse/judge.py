"""Judges iterates by their residuals, a formula by its recursion, and gradients by central differences."""

import math

H = 1e-5  # as in calls.py


def gram(random, size):
    """A Gaussian kernel matrix of random points: symmetric, positive definite, between 0 and 1."""
    points = [[random.gauss(0, 1) for _ in range(4)] for _ in range(size)]
    return [[math.exp(-sum((x - y) ** 2 for x, y in zip(a, b)) / 4) for b in points] for a in points]


def largest_sum(A):
    return max(map(sum, A))


def random_matrix(random, size):
    return [[random.gauss(0, 1) for _ in range(size)] for _ in range(size)]


def inner(X, Y):
    return sum(x * y for row, other in zip(X, Y) for x, y in zip(row, other))


def is_matrix(X, size):
    return (isinstance(X, list) and len(X) == size and
            all(isinstance(row, list) and len(row) == size for row in X) and
            all(isinstance(x, (int, float)) and math.isfinite(x) for row in X for x in row))


def inverse(A):
    """Gauss-Jordan elimination with pivoting."""
    size = len(A)
    rows = [row + [float(i == j) for j in range(size)] for i, row in enumerate(A)]
    for c in range(size):
        pivot = max(range(c, size), key=lambda r: abs(rows[r][c]))
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(size):
            if r != c:
                rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c])]
    return [row[size:] for row in rows]


def differs(gradient, expected, size):
    """Returns an error message for a gradient with `size` rows, or None."""
    if not is_matrix(gradient, size):
        return f"expected a matrix of {size} rows of {size} numbers"
    largest = max(abs(x) for row in expected for x in row)
    wrong = sum(abs(x - y) > 1e-6 * (largest + 1) for row, other in zip(gradient, expected)
                for x, y in zip(row, other))
    said = looks((x, y) for row, other in zip(gradient, expected) for x, y in zip(row, other))
    return f"{wrong} of {size * size} elements differ from central differences{said}" if wrong else None


def draw_newton(random):
    A = gram(random, random.choice((2, 3, 4)))
    return [A, random.choice((1.0, 1.8)) / largest_sum(A) ** 2, random.choice((0, 1, 40))]


def matrix_product(X, Y):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*Y)] for row in X]


def judge_newton(arguments, X):
    """Each step squares the residual, I - A X_{k+1} = (I - A X_k)^2, beginning with X_0 = a A."""
    A, a, steps = arguments
    size = len(A)
    if not is_matrix(X, size):
        return f"expected a matrix of {size} rows of {size} numbers"

    def missing(X):
        return [[(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(matrix_product(A, X))]

    expected = missing([[a * x for x in row] for row in A])
    for _ in range(steps):
        expected = matrix_product(expected, expected)
    error = max(abs(x - y) for row, other in zip(missing(X), expected) for x, y in zip(row, other))
    if error < 1e-6:
        return None
    return {0: "without a step, X is not a A", 1: "X is wrong after one step"}.get(
        steps, f"after {steps} steps A X is not the identity" if steps > 9 else f"X is wrong after {steps} steps")


def draw_residual(random):
    l = random.uniform(0.3, 3)
    return [l, random.uniform(0.2, 1.8) / (l * l), random.randint(0, 6)]


def judge_residual(arguments, result):
    l, a, steps = arguments
    if not isinstance(result, (int, float)):
        return "expected a number"
    x = a * l
    for _ in range(steps):
        x = 2 * x - x * l * x
    return None if abs(result - (1 - l * x)) < 1e-9 else f"the recursion gives another number after {steps} steps"


def draw_steps(random):
    return [random.choice((1, 2, 10, 100, 1000)), random.choice((1e-2, 1e-3, 1e-6))]


def judge_steps(arguments, result):
    condition, tolerance = arguments
    if not isinstance(result, (int, float)) or result != int(result) or not 0 <= result <= 1000:
        return "expected a whole number from 0 to 1000"

    def converged(steps):
        """True if eigenvalues 1 / condition and 1 have converged, for |A| = 1."""
        for l in (1 / condition, 1.0):
            x = 1.8 * l
            for _ in range(steps):
                x = 2 * x - x * l * x
            if abs(1 - l * x) > tolerance:
                return False
        return True

    if not converged(int(result)):
        return "too few"
    return "too many" if result > 0 and converged(int(result) - 1) else None


def draw_implicit(random):
    size = random.choice((2, 3))
    A = [[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(random_matrix(random, size))]
    if max(abs(x) for row in inverse(A) for x in row) > 4:
        return draw_implicit(random)
    return [inverse(A), random_matrix(random, size)]


def judge_implicit(arguments, dA):
    X, dX = arguments
    size, A = len(X), inverse(X)

    def loss(i, j, step):
        return inner(dX, inverse([[x + step * (r == i and c == j) for c, x in enumerate(row)]
                                  for r, row in enumerate(A)]))

    expected = [[(loss(i, j, H) - loss(i, j, -H)) / (2 * H) for j in range(size)] for i in range(size)]
    return differs(dA, expected, size)


def draw_unrolled(random):
    A = gram(random, random.choice((2, 3)))
    return [A, 1.8 / largest_sum(A) ** 2, random.choice((0, 1, 2, 3)), random_matrix(random, len(A))]


def judge_unrolled(arguments, result):
    A, a, steps, dX = arguments
    size = len(A)
    places = [(i, j) for i in range(size) for j in range(size)]
    for side, step in ("above", H), ("below", -H):
        for (i, j), X in zip(places, result[side]):
            near = [[x + step * (r == i and c == j) for c, x in enumerate(row)] for r, row in enumerate(A)]
            if judge_newton([near, a, steps], X):
                return "newton is not right yet"
    slopes = [(inner(dX, above) - inner(dX, below)) / (2 * H)
              for above, below in zip(result["above"], result["below"])]
    said = differs(result["gradient"], [slopes[i * size:(i + 1) * size] for i in range(size)], size)
    return said and f"after {steps} steps, {said}"
