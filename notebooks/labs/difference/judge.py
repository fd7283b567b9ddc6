"""Judges intervals and tests by their guarantees: on many pairs of arms with a known difference, 95 % of the intervals
must contain it, and a test at 5 % must give a false alarm in 5 % of the cases without a difference."""

import math

PAIRS, CALLS = 1500, 3


def arms(random, sizes, deviations, difference=0.0, shared=0.0):
    """Draws two arms with `sizes` seeds. `shared` is the standard deviation of each seed's effect on both arms."""
    common = [random.gauss(0, shared) for _ in range(max(sizes))]
    return [[centre + common[i] + random.gauss(0, deviation) for i in range(size)]
            for size, deviation, centre in zip(sizes, deviations, (0.0, difference))]


def numbers(result, count=PAIRS):
    return (isinstance(result, list) and len(result) == count and
            all(isinstance(x, (int, float)) and math.isfinite(x) for x in result))


def mean(values):
    return sum(values) / len(values)


def share(flags):
    return mean([bool(flag) for flag in flags])


def far(found, wanted, count):
    """True if a fraction of `count` cases differs from `wanted` by more than five standard deviations."""
    return abs(found - wanted) > 5 * math.sqrt(wanted * (1 - wanted) / count)


def judge_alarms(found):
    """Returns an error if a test at 5 % or at 50 % has too few or too many false alarms, or None."""
    if not all(0 <= p <= 1 for p in found):
        return "a probability is not between 0 and 1"
    for level in (0.05, 0.5):
        alarms = share(p < level for p in found)
        if far(alarms, level, len(found)):
            return f"false alarms in {alarms:.1%} of the cases without a difference; expected {level:.0%}"
    return None


def draw_deviation(random):
    values = [random.gauss(0, 1) for _ in range(random.choice((2, 3, 4)))]
    return [values]


def judge_deviation(arguments, result):
    """The unbiased variance is the mean of (x - y)^2 / 2 over all pairs."""
    values, = arguments
    if isinstance(result, bool) or not isinstance(result, (int, float)):
        return "expected a number"
    squares = [(x - y) ** 2 / 2 for i, x in enumerate(values) for y in values[:i]]
    if result < 0 or abs(result**2 - mean(squares)) > 1e-9:
        return f"for {len(values)} values, its square is not the mean of (x - y)^2 / 2 over all pairs x, y"
    return None


def draw_interval(random):
    """In the last two pairs one arm is constant; the other has four values of variance 4/3, or two of variance 2."""
    sizes = random.choice(((3, 3), (2, 4), (5, 3)))
    weights = [[[0, 0], [-1, 1, -1, 1]], [[-1, 1], [0, 0, 0, 0]]]
    return [[arms(random, sizes, (1, 1), 0.7) for _ in range(PAIRS)] + weights]


def judge_interval(arguments, result):
    if not numbers(result, PAIRS + 2):
        return "expected a number for each pair of arms"
    *halves, four, two = result
    if not math.isclose(four**2 * 2, two**2 * 4, rel_tol=1e-9):  # with 3 and 1 degrees of freedom: 3 * 4/3 to 1 * 2
        return "the pooled variance weights an arm of four seeds and an arm of two incorrectly"
    held = share(abs(mean(b) - mean(a) - 0.7) <= half for (a, b), half in zip(arguments[0], halves))
    return f"{held:.1%} of the intervals contain the true difference; expected 95 %" if far(held, 0.95, PAIRS) else None


def draw_welch(random):
    """Half of the pairs have no difference, the others a large one."""
    return [[arms(random, (4, 9), (1, 0.2), 0.0 if i % 2 == 0 else 4.0) for i in range(PAIRS)]]


def judge_welch(arguments, result):
    if not numbers(result):
        return "expected a number for each pair of arms"
    found = share(p < 0.05 for p in result[1::2])
    return judge_alarms(result[0::2]) or (
        None if found > 0.9 else f"a difference four times the deviation is found in only {found:.0%} of the cases")


def draw_paired(random):
    """Seeds have ten times the effect of the arms' own noise; every other pair has no true difference."""
    return [[arms(random, (5, 5), (0.1, 0.1), 0.0 if i % 2 == 0 else 0.4, shared=1.0) for i in range(PAIRS)]]


def judge_paired(arguments, result):
    if not numbers(result):
        return "expected a number for each pair of arms"
    found = share(p < 0.05 for p in result[1::2])
    missed = f"a difference that all seeds have in common is found in only {found:.0%} of the cases"
    return judge_alarms(result[0::2]) or (None if found > 0.9 else missed)


def draw_seeds_needed(random):
    deviation = random.uniform(0.2, 2)
    return [deviation, deviation * random.uniform(0.3, 0.8)]


def judge_seeds_needed(arguments, result):
    """Compares the power, the probability of a difference of means above 1.96 standard errors, with 80 %."""
    deviation, difference = arguments
    if isinstance(result, bool) or not isinstance(result, (int, float)) or result != int(result) or result < 1:
        return "expected a whole number, 1 or more"
    shift = difference / (deviation * math.sqrt(2 / result))
    power = 0.5 * math.erfc((1.96 - shift) / math.sqrt(2))
    if power < 0.79:
        return f"with so few seeds, the difference is found in {power:.0%} of the cases"
    return f"with this number of seeds, the difference is found in {power:.0%} of the cases" if power > 0.84 else None
