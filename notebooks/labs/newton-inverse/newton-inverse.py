"""The inverse of a symmetric matrix by Newton-Raphson steps, and its gradient. Matrices are lists of rows."""


def product(X, Y):
    """X Y"""
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*Y)] for row in X]


def transposed(X):
    return [list(column) for column in zip(*X)]


def combined(a, X, b, Y):
    """a X + b Y"""
    return [[a * x + b * y for x, y in zip(*rows)] for rows in zip(X, Y)]


def newton(A, a, steps):
    """X_steps, with X_0 = a A, X_{k+1} = 2 X_k - X_k A X_k."""
    raise NotImplementedError("not yet")


def residual(l, a, steps):
    """1 - l x_steps, where x_k is the eigenvalue of X_k for an eigenvalue l of A: a formula, without a loop."""
    raise NotImplementedError("not yet")


def steps(condition, tolerance):
    """The number of steps until |1 - l x| <= tolerance for all eigenvalues l from |A| / condition to |A|, with the
    starting factor a = 1.8 / |A|^2."""
    raise NotImplementedError("not yet")


def implicit(X, dX):
    """dA from dX = d(loss)/dX, where X is the inverse of A: the gradient of the true inverse."""
    raise NotImplementedError("not yet")


def unrolled(A, a, steps, dX):
    """dA from dX = d(loss)/dX_steps: the gradient of newton(A, a, steps), where a is a constant."""
    raise NotImplementedError("not yet")
