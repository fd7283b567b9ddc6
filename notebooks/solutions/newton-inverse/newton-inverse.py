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
    X = combined(a, A, 0, A)
    for _ in range(steps):
        X = combined(2, X, -1, product(product(X, A), X))
    return X


def residual(l, a, steps):
    """1 - l x_steps, where x_k is the eigenvalue of X_k for an eigenvalue l of A: a formula, without a loop."""
    return (1 - a * l * l) ** 2**steps  # 1 - l (2 x - x l x) = (1 - l x)^2


def steps(condition, tolerance):
    """The number of steps until |1 - l x| <= tolerance for all eigenvalues l from |A| / condition to |A|, with the
    starting factor a = 1.8 / |A|^2."""
    # Initially 1 - l x is 1 - 1.8 / condition^2 for the smallest eigenvalue, and -0.8 for the largest.
    worst, count = max(abs(1 - 1.8 / condition**2), 0.8), 0
    while worst > tolerance:
        worst, count = worst * worst, count + 1
    return count


def implicit(X, dX):
    """dA from dX = d(loss)/dX, where X is the inverse of A: the gradient of the true inverse."""
    T = transposed(X)
    return combined(-1, product(product(T, dX), T), 0, X)


def unrolled(A, a, steps, dX):
    """dA from dX = d(loss)/dX_steps: the gradient of newton(A, a, steps), where a is a constant."""
    iterates = [newton(A, a, k) for k in range(steps)]
    dA = combined(0, A, 0, A)
    for X in reversed(iterates):
        # X_next = 2 X - X A X
        XT, AT = transposed(X), transposed(A)
        dA = combined(1, dA, -1, product(product(XT, dX), XT))
        left, right = product(product(dX, XT), AT), product(product(AT, XT), dX)
        dX = combined(1, combined(2, dX, -1, left), -1, right)
    return combined(1, dA, a, dX)  # X_0 = a A
