"""Surrogate derivatives, ranks, and energies."""


def sign(u):
    """The derivative of |u|, 0 at 0."""
    raise NotImplementedError("not yet")


def hardtanh(u):
    """u, clamped to [-1, 1]."""
    raise NotImplementedError("not yet")


def huber(u):
    """The function whose derivative is hardtanh and whose value at 0 is 0."""
    raise NotImplementedError("not yet")


def equivalent_rank(values, share):
    """The smallest number of singular values, the largest first, whose sum reaches `share` of the sum of all."""
    raise NotImplementedError("not yet")


def energies(tokens, dim, mul, add):
    """Energy of softmax attention and of adder attention in one block, (softmax, adder), if a multiplication takes
    the energy `mul` and an addition or subtraction `add`. Counted as in papers: a multiplication and an addition for
    each term of a product, a subtraction and an addition for each term of a distance; no exponentials, no divisions."""
    raise NotImplementedError("not yet")
