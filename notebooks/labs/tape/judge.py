"""Judges gradients by central differences of the operation."""

import math

STEP = 6e-6


def matrix(random, rows, columns):
    """No element is near 0, where relu has its kink."""
    return [[random.choice([-1, 1]) * random.uniform(0.3, 2) for _ in range(columns)] for _ in range(rows)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def inner(a, b):
    return sum(x * y for rows in zip(a, b) for x, y in zip(*rows))


def differences(g, operands, which):
    """Gradient of the scalar g(operands) with respect to one of them."""

    def at(i, j, h):
        moved = [[list(row) for row in operand] for operand in operands]
        moved[which][i][j] += h
        return g(*moved)

    return [[(at(i, j, STEP) - at(i, j, -STEP)) / (2 * STEP) for j in range(len(row))]
            for i, row in enumerate(operands[which])]


def judge_gradients(g, operands, names, got, there):
    """Returns the error of a gradient, or None. The first gradient must be added to its initial value, `there`."""
    for which, name in enumerate(names):
        expected = differences(g, operands, which)
        shape = [len(row) for row in expected]
        try:
            if [len(row) for row in got[which]] != shape:
                return f"the gradient of {name} has a different shape from {name}"
            beside = there if which == 0 else 0
            wrong = sum(not math.isclose(x, y + beside, rel_tol=1e-6, abs_tol=1e-6)
                        for rows in zip(got[which], expected) for x, y in zip(*rows))
            alone = all(math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-6)
                        for rows in zip(got[which], expected) for x, y in zip(*rows))
        except (TypeError, IndexError, KeyError):
            return f"the gradient of {name} is not a matrix of numbers"
        if wrong and alone:
            return f"the gradient of {name} is assigned, not added to the existing one"
        if wrong:
            said = looks((x - beside, y) for rows in zip(got[which], expected) for x, y in zip(*rows))
            return f"the gradient of {name} is wrong in {wrong} of {sum(shape)} elements{said}"
    return None


def draw_elementwise(random):
    rows, columns = random.randint(1, 3), random.randint(2, 4)
    return [matrix(random, rows, columns) for _ in range(3)] + [random.uniform(1, 2)]


def judge_operation(operation, arguments, result):
    a, b, cotangent, there = arguments
    return judge_gradients(lambda a, b: inner(operation(a, b), cotangent), [a, b], "ab", result, there)


def draw_add(random):
    return draw_elementwise(random)


def judge_add(arguments, result):
    return judge_operation(lambda a, b: [[x + y for x, y in zip(*rows)] for rows in zip(a, b)], arguments, result)


def draw_mul(random):
    return draw_elementwise(random)


def judge_mul(arguments, result):
    return judge_operation(lambda a, b: [[x * y for x, y in zip(*rows)] for rows in zip(a, b)], arguments, result)


def draw_matmul(random):
    m, k, n = random.sample(range(1, 6), 3)
    return [matrix(random, m, k), matrix(random, k, n), matrix(random, m, n), random.uniform(1, 2)]


def judge_matmul(arguments, result):
    return judge_operation(product, arguments, result)


def draw_backward(random):
    while True:
        x, w = matrix(random, 2, 3), matrix(random, 3, 4)
        if all(abs(y) > 0.01 for row in product(x, w) for y in row):  # relu's kink
            return [x, w]


def judge_backward(arguments, result):
    def g(x, w):
        return sum(max(y, 0) + 2 * y for row in product(x, w) for y in row)

    return judge_gradients(g, arguments, "xw", result, 0)
