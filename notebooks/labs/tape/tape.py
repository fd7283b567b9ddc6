"""Notebook 2: a tape. Operations compute, and record how to undo themselves; backward() runs that in reverse.

A matrix is a list of rows, a row a list of floats.
"""


def zeros_like(matrix):
    return [[0.0] * len(row) for row in matrix]


class Var:
    """A matrix, and the gradient of the result by it, which is zero until backward() has run."""

    def __init__(self, tape, value):
        self.tape, self.value, self.grad = tape, value, zeros_like(value)

    def accumulate(self, gradient):
        """grad += gradient. A matrix that is used twice gets two gradients, which add up."""
        for row, added in zip(self.grad, gradient):
            for j, number in enumerate(added):
                row[j] += number


class Tape:
    def __init__(self):
        self.steps = []  # functions that undo, in the order of what they undo

    def var(self, value):
        return Var(self, value)

    def record(self, value, undo):
        """A new Var; undo(dout) will get the gradient by it, and hands it on to the operands."""
        out = Var(self, value)
        self.steps.append(lambda: undo(out.grad))
        return out

    def backward(self, result):
        """Fills in all gradients of `result`, a matrix of one row and one column."""
        raise NotImplementedError("not yet")


def add(a, b):
    """a + b, element by element."""

    def undo(dout):
        raise NotImplementedError("not yet")

    return a.tape.record([[x + y for x, y in zip(*rows)] for rows in zip(a.value, b.value)], undo)


def times(a, b):
    """The product of two lists of rows, element by element."""
    return [[x * y for x, y in zip(*rows)] for rows in zip(a, b)]


def mul(a, b):
    """a b, element by element."""

    def undo(dout):
        raise NotImplementedError("not yet")

    return a.tape.record(times(a.value, b.value), undo)


def transposed(a):
    return [list(column) for column in zip(*a)]


def product(a, b):
    """The matrix product of two lists of rows."""
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def matmul(a, b):
    """The matrix product a b."""

    def undo(dout):
        raise NotImplementedError("not yet")

    return a.tape.record(product(a.value, b.value), undo)


def relu(a):
    """max(a, 0), element by element. Its derivative is 1 where a > 0, else 0: an example, complete."""

    def undo(dout):
        a.accumulate([[d if x > 0 else 0.0 for d, x in zip(*rows)] for rows in zip(dout, a.value)])

    return a.tape.record([[max(x, 0.0) for x in row] for row in a.value], undo)


def total(a):
    """The sum of all elements, [1, 1]. Each gets the gradient of the sum: an example, complete."""

    def undo(dout):
        a.accumulate([[dout[0][0]] * len(row) for row in a.value])

    return a.tape.record([[sum(map(sum, a.value))]], undo)
