"""Judges by counting: runs a small Vision Transformer on numbers that count their products."""

import math


class Counted:
    """A number without a value that counts operations: the counts must not depend on values."""

    products = exponentials = 0

    def __mul__(self, other):
        Counted.products += 1
        return self

    def __add__(self, other):
        return self

    def exp(self):
        Counted.exponentials += 1
        return self


def counted(run, kind="products"):
    """Number of products or exps in run()."""
    before = getattr(Counted, kind)
    run()
    return getattr(Counted, kind) - before


def matrix(rows, columns):
    return [[Counted() for _ in range(columns)] for _ in range(rows)]


def times_transposed(a, b):
    """a b^T"""
    return [[sum((x * y for x, y in zip(row, column)), Counted()) for column in b] for row in a]


def run_linear(x, outputs):
    return times_transposed(x, matrix(outputs, len(x[0])))


def run_attention(tokens, dim, heads):
    for _ in range(heads):
        q, k, v = (matrix(tokens, dim // heads) for _ in range(3))
        A = [[score.exp() for score in row] for row in times_transposed(q, k)]
        times_transposed(A, list(zip(*v)))


def run_layers(model):
    """Products of each kind of layer, summed over blocks."""
    side = model["image"] // model["patch"]
    patches, tokens, dim = side * side, side * side + 1, model["dim"]
    blocks = {"attn.qkv": lambda: run_linear(matrix(tokens, dim), 3 * dim),
              "attn": lambda: run_attention(tokens, dim, model["heads"]),
              "attn.proj": lambda: run_linear(matrix(tokens, dim), dim),
              "mlp.fc1": lambda: run_linear(matrix(tokens, dim), model["hidden"]),
              "mlp.fc2": lambda: run_linear(matrix(tokens, model["hidden"]), dim)}
    counts = {"patch_embed.proj": counted(
        lambda: run_linear(matrix(patches, model["channels"] * model["patch"] ** 2), dim))}
    for name, run in blocks.items():
        counts[name] = sum(counted(run) for _ in range(model["depth"]))
    counts["head"] = counted(lambda: run_linear(matrix(1, dim), model["classes"]))
    return counts


def made_tensors(model):
    """Shapes of all learned tensors."""
    dim, hidden = model["dim"], model["hidden"]
    tokens = (model["image"] // model["patch"]) ** 2 + 1

    def layer(inputs, outputs):
        return [(outputs, inputs), (outputs,)]

    block = [(dim,)] * 4 + layer(dim, 3 * dim) + layer(dim, dim) + layer(dim, hidden) + layer(hidden, dim)
    return (layer(model["channels"] * model["patch"] ** 2, dim) + [(dim,), (tokens, dim)] + block * model["depth"] +
            [(dim,)] * 2 + layer(dim, model["classes"]))


def draw_model(random):
    heads, patch = random.choice((1, 2, 3)), random.choice((2, 3))
    return {"image": patch * random.randint(2, 3), "channels": random.choice((1, 3)), "patch": patch,
            "dim": heads * random.randint(2, 4), "depth": random.randint(1, 3), "heads": heads,
            "hidden": random.randint(5, 17), "classes": random.randint(2, 11)}


def compare(result, expected, what):
    if isinstance(result, bool) or not isinstance(result, (int, float)):
        return f"{what}: expected a number"
    return None if result == expected else f"{what}: too {'many' if result > expected else 'few'}"


def draw_linear(random):
    return [random.randint(2, 7), random.randint(2, 9), random.randint(2, 9)]


def judge_linear(arguments, result):
    rows, inputs, outputs = arguments
    return compare(result, counted(lambda: run_linear(matrix(rows, inputs), outputs)), "multiplications")


def draw_attention(random):
    heads = random.choice((2, 3, 4))
    return [random.randint(3, 8), heads * random.randint(2, 5), heads]


def judge_attention(arguments, result):
    return compare(result, counted(lambda: run_attention(*arguments)), "multiplications")


def draw_exponentials(random):
    return [random.randint(3, 8), random.randint(2, 4)]


def judge_exponentials(arguments, result):
    tokens, heads = arguments
    return compare(result, counted(lambda: run_attention(tokens, heads, heads), "exponentials"), "exponentials")


def draw_layers(random):
    return [draw_model(random)]


def judge_layers(arguments, result):
    expected = run_layers(arguments[0])
    if not isinstance(result, dict) or set(result) != set(expected):
        return f"expected a dictionary with the keys {', '.join(expected)}"
    wrong = [name for name in expected if compare(result[name], expected[name], name)]
    return f"wrong: {', '.join(wrong)}" if wrong else None


def draw_parameters(random):
    return [draw_model(random)]


def judge_parameters(arguments, result):
    return compare(result, sum(math.prod(shape) for shape in made_tensors(arguments[0])), "parameters")


def draw_even(random):
    return [2 * random.randint(1, 4), random.randint(3, 12)]


def judge_even(arguments, result):
    dim, hidden = arguments
    if isinstance(result, bool) or not isinstance(result, (int, float)) or not result == int(result) or result < 1:
        return "expected a whole number of tokens, 1 or more"
    tokens = int(result)
    if tokens > 100:
        return "too many tokens"
    model = {"image": 1, "channels": 1, "patch": 1, "dim": dim, "depth": 1, "heads": 1, "hidden": hidden, "classes": 1}
    x = matrix(tokens, dim)
    attention = counted(lambda: run_attention(tokens, dim, 1))
    linear = counted(lambda: [run_linear(x, 3 * dim), run_linear(x, dim), run_linear(x, hidden),
                              run_linear(matrix(tokens, hidden), dim)])
    if attention == linear:
        return None
    return (f"at {tokens} tokens, attention takes {'more' if attention > linear else 'fewer'} multiplications than the "
            "linear layers")
