"""Surrogate derivatives, ranks, and energies."""


def sign(u):
    """The derivative of |u|, 0 at 0."""
    return (u > 0) - (u < 0)


def hardtanh(u):
    """u, clamped to [-1, 1]."""
    return max(-1, min(1, u))


def huber(u):
    """The function whose derivative is hardtanh and whose value at 0 is 0."""
    return u * u / 2 if abs(u) < 1 else abs(u) - 1 / 2


def equivalent_rank(values, share):
    """The smallest number of singular values, the largest first, whose sum reaches `share` of the sum of all."""
    wanted, reached = share * sum(values), 0
    for count, value in enumerate(sorted(values, reverse=True), start=1):
        reached += value
        if reached >= wanted:
            return count
    return len(values)


def energies(tokens, dim, mul, add):
    """Energy of softmax attention and of adder attention in one block, (softmax, adder), if a multiplication takes
    the energy `mul` and an addition or subtraction `add`. Counted as in papers: a multiplication and an addition for
    each term of a product, a subtraction and an addition for each term of a distance; no exponentials, no divisions."""
    terms = tokens * tokens * dim  # of the scores; A v has the same number
    return 2 * terms * (mul + add), terms * (2 * add) + terms * (mul + add)
