"""Derivatives that are none, ranks, and energies."""


def sign(u):
    """The derivative of |u|, 0 at 0."""
    raise NotImplementedError("not yet")


def hardtanh(u):
    """u, but never below -1 or above 1."""
    raise NotImplementedError("not yet")


def huber(u):
    """The function whose derivative hardtanh is, 0 at 0."""
    raise NotImplementedError("not yet")


def equivalent_rank(values, share):
    """How many of the largest singular values it takes until their sum is at least `share` of the sum of all."""
    raise NotImplementedError("not yet")


def energies(tokens, dim, mul, add):
    """Energy of softmax attention and of adder attention in one block, (softmax, adder), where a multiplication takes
    mul and an addition or subtraction add. Counted as papers do: a multiplication and an addition for each term of a
    product, a subtraction and an addition for each term of a distance; no exponentials, no divisions."""
    raise NotImplementedError("not yet")
