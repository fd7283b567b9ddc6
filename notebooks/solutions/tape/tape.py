"""Notebook 2: a tape. Operations compute, and record their backward steps; backward() runs these in reverse.

A matrix is a list of rows, a row a list of floats.
"""


def zeros_like(matrix):
    return [[0.0] * len(row) for row in matrix]


class Var:
    """A matrix, and the gradient of the result with respect to it, which is zero before backward()."""

    def __init__(self, tape, value):
        self.tape, self.value, self.grad = tape, value, zeros_like(value)

    def accumulate(self, gradient):
        """grad += gradient. A matrix that is used twice gets two gradients, which are added."""
        for row, added in zip(self.grad, gradient):
            for j, number in enumerate(added):
                row[j] += number


class Tape:
    def __init__(self):
        self.steps = []  # backward steps, in the order of the operations

    def var(self, value):
        return Var(self, value)

    def record(self, value, undo):
        """Returns a new Var; undo(dout) receives the gradient with respect to it and adds the operands' gradients."""
        out = Var(self, value)
        self.steps.append(lambda: undo(out.grad))
        return out

    def backward(self, result):
        """Computes all gradients of `result`, a matrix of one row and one column."""
        result.grad = [[1.0]]
        for step in reversed(self.steps):
            step()


def add(a, b):
    """a + b, element-wise."""

    def undo(dout):
        a.accumulate(dout)
        b.accumulate(dout)

    return a.tape.record([[x + y for x, y in zip(*rows)] for rows in zip(a.value, b.value)], undo)


def times(a, b):
    """The element-wise product of two lists of rows."""
    return [[x * y for x, y in zip(*rows)] for rows in zip(a, b)]


def mul(a, b):
    """a b, element-wise."""

    def undo(dout):
        a.accumulate(times(dout, b.value))
        b.accumulate(times(dout, a.value))

    return a.tape.record(times(a.value, b.value), undo)


def transposed(a):
    return [list(column) for column in zip(*a)]


def product(a, b):
    """The matrix product of two lists of rows."""
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def matmul(a, b):
    """The matrix product a b."""

    def undo(dout):
        a.accumulate(product(dout, transposed(b.value)))
        b.accumulate(product(transposed(a.value), dout))

    return a.tape.record(product(a.value, b.value), undo)


def relu(a):
    """max(a, 0), element-wise. Its derivative is 1 where a > 0, else 0: a complete example."""

    def undo(dout):
        a.accumulate([[d if x > 0 else 0.0 for d, x in zip(*rows)] for rows in zip(dout, a.value)])

    return a.tape.record([[max(x, 0.0) for x in row] for row in a.value], undo)


def total(a):
    """The sum of all elements, [1, 1]. Each element gets the gradient of the sum: a complete example."""

    def undo(dout):
        a.accumulate([[dout[0][0]] * len(row) for row in a.value])

    return a.tape.record([[sum(map(sum, a.value))]], undo)
