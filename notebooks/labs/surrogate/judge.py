"""Judges functions by their slopes, a rank by its definition, energies by counting loops."""

import math

H = 1e-5


def number(result):
    return not isinstance(result, bool) and isinstance(result, (int, float)) and math.isfinite(result)


def draw_sign(random):
    return [random.choice((0, random.uniform(-3, 3)))]


def judge_sign(arguments, result):
    u, = arguments
    if not number(result):
        return "expected a number"
    if u == 0:
        return None if result == 0 else "wrong at 0"
    slope = (abs(u + H * u) - abs(u - H * u)) / (2 * H * u)
    return None if abs(result - slope) < 1e-6 else "not the slope of |u|"


def draw_hardtanh(random):
    return [random.uniform(-3, 3)]


def judge_hardtanh(arguments, result):
    u, = arguments
    if not number(result):
        return "expected a number"
    if not -1 <= result <= 1:
        return "outside -1 to 1"
    return None if result == u or (abs(u) > 1 and result * u == abs(u)) else f"wrong where u is {u:.1f}"


def draw_huber(random):
    """0, and three adjacent points: around 0, 1, -1 or a random number."""
    centre = random.choice((0, 1, -1, random.uniform(-3, 3)))
    return [[0, centre - 2 * H, centre, centre + 2 * H]]


def judge_huber(arguments, result):
    """The slope at u is hardtanh(u), from both sides."""
    (_, below, u, above), (zero, low, middle, high) = arguments[0], result
    if not all(map(number, result)):
        return "expected numbers"
    if zero != 0:
        return "not 0 at 0"
    wanted = max(-1, min(1, u))
    for slope, side in (((middle - low) / (u - below), "below"), ((high - middle) / (above - u), "above")):
        if abs(slope - wanted) > 1e-4:
            return f"the slope {side} {u:.1f} is not hardtanh's"
    return None


def draw_equivalent_rank(random):
    values = [abs(random.gauss(0, 1)) * random.choice((0.1, 1, 10)) for _ in range(random.randint(1, 12))]
    return [values, random.choice((0.5, 0.9, 0.99))]


def judge_equivalent_rank(arguments, result):
    values, share = arguments
    if not number(result) or not 1 <= result <= len(values) or result != int(result):
        return f"expected a whole number from 1 to {len(values)}"
    values = sorted(values, reverse=True)
    if sum(values[:int(result)]) < share * sum(values) * (1 - 1e-12):
        return "too few"
    return "too many" if sum(values[:int(result) - 1]) > share * sum(values) * (1 + 1e-12) else None


class Priced:
    """A number without a value that adds the cost of each operation to `spent`."""

    spent = mul = add = 0.0

    def __mul__(self, other):
        Priced.spent += Priced.mul
        return self

    def __add__(self, other):
        Priced.spent += Priced.add
        return self

    __sub__ = __add__

    def __abs__(self):
        return self


def price(run):
    before = Priced.spent
    run()
    return Priced.spent - before


def sums(rows, columns, terms, term):
    """rows x columns sums with `terms` terms, each added to a running total."""
    for _ in range(rows * columns):
        total = Priced()
        for _ in range(terms):
            total = total + term(Priced(), Priced())


def draw_energies(random):
    return [random.randint(2, 7), random.randint(2, 9), random.choice((0.2, 1.1, 3.7)), random.choice((0.03, 0.4, 0.9))]


def judge_energies(arguments, result):
    tokens, dim, Priced.mul, Priced.add = arguments
    if not isinstance(result, list) or len(result) != 2 or not all(map(number, result)):
        return "expected two numbers"
    map_times_v = price(lambda: sums(tokens, dim, tokens, lambda a, v: a * v))
    right = (price(lambda: sums(tokens, tokens, dim, lambda q, k: q * k)) + map_times_v,
             price(lambda: sums(tokens, tokens, dim, lambda q, k: abs(q - k))) + map_times_v)
    wrong = [name for name, mine, wanted in zip(("softmax", "adder"), result, right)
             if abs(mine - wanted) > 1e-9 * wanted]
    return f"wrong for {' and '.join(wrong)}" if wrong else None
