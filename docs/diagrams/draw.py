#!/usr/bin/env python3
"""Draws the diagrams of the documents as SVG, with the standard library only.

  draw.py           writes docs/diagrams/*.svg
  draw.py --check   exits with status 1 if a file there differs from the one that would be written
"""

import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent

# One style: dark text on white; kinds of boxes differ in fill and border, so that they are distinct in grey prints.
TEXT, SHAPE, LINE = "#1a1a1a", "#555555", "#444444"
KINDS = {
    "input": {"fill": "#dfe9f2", "stroke": LINE, "stroke-width": "1"},
    "parameter": {"fill": "#ffffff", "stroke": LINE, "stroke-width": "1.2", "stroke-dasharray": "4 3"},
    "step": {"fill": "#ffffff", "stroke": LINE, "stroke-width": "1.2"},
    "output": {"fill": "#f2e3d0", "stroke": TEXT, "stroke-width": "2.2"},
}
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
HEIGHT, ROW, GAP, MARGIN, HEADING = 46, 64, 40, 14, 34


def text_width(text, size):
    """An upper estimate of the width of a text in DejaVu Sans."""
    narrow = sum(c in " ,.|()[]{}ijlt:;'ᵀ₁₂⁺½⁻ᵅ²·" for c in text)
    return size * (0.68 * (len(text) - narrow) + 0.40 * narrow)


class Box:
    """A step: its position (column, row), its equation, and the shape of its result."""

    def __init__(self, kind, column, row, title, shape=""):
        self.kind, self.column, self.row, self.title, self.shape = kind, column, row, title, shape
        self.width = max(64, 18 + max(text_width(title, 14), text_width(shape, 12)))

    def place(self, x, y):
        self.x, self.y = x, y

    def svg(self):
        style = " ".join(f'{key}="{value}"' for key, value in KINDS[self.kind].items())
        middle = self.x + self.width / 2
        lines = [f'<rect x="{self.x:.1f}" y="{self.y:.1f}" width="{self.width:.1f}" height="{HEIGHT}" rx="5" {style}/>',
                 f'<text x="{middle:.1f}" y="{self.y + (20 if self.shape else 28):.1f}" font-size="14" fill="{TEXT}" '
                 f'text-anchor="middle">{escape(self.title)}</text>']
        if self.shape:
            lines.append(f'<text x="{middle:.1f}" y="{self.y + 37:.1f}" font-size="12" fill="{SHAPE}" '
                         f'text-anchor="middle">{escape(self.shape)}</text>')
        return lines


def page(title, width, height, lines):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}">',
        f"<title>{escape(title)}</title>",
        f'<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0.5 L8 4 L0 7.5 z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="23" font-size="15" font-weight="bold" fill="{TEXT}">{escape(title)}</text>',
        *lines, "</svg>", ""])


def flow(title, boxes, arrows):
    """Boxes in columns from left to right. An arrow "a-b" leaves a at its right side and enters b at its left side; it runs
    in the row of a up to the column of b."""
    boxes = {name: Box(*box) for name, box in boxes.items()}
    columns = max(box.column for box in boxes.values()) + 1
    widths = [max((b.width for b in boxes.values() if b.column == c), default=0) for c in range(columns)]
    left = [MARGIN + sum(widths[:c]) + GAP * c for c in range(columns)]
    for box in boxes.values():
        box.place(left[box.column] + (widths[box.column] - box.width) / 2, HEADING + MARGIN / 2 + box.row * ROW)
    width = max(left[-1] + widths[-1], MARGIN + text_width(title, 16)) + MARGIN
    height = HEADING + MARGIN / 2 + max(box.row for box in boxes.values()) * ROW + HEIGHT + MARGIN

    pairs = [arrow.split("-") for arrow in arrows.split()]
    lines = []
    for source, target in pairs:
        a, b = boxes[source], boxes[target]
        entering = sorted((boxes[s].row, s) for s, t in pairs if t == target)
        place = [s for _, s in entering].index(source)
        x0, y0 = a.x + a.width, a.y + HEIGHT / 2
        x1, y1 = b.x, b.y + HEIGHT * (place + 1) / (len(entering) + 1)
        bend = left[b.column] - GAP + 4 if b.column > a.column + 1 else x0
        bend = max(bend, x0)
        straight = f"H{bend:.1f} " if bend > x0 else ""
        middle = (bend + x1) / 2
        lines.append(f'<path d="M{x0:.1f} {y0:.1f} {straight}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1 - 1:.1f} '
                     f'{y1:.1f}" fill="none" stroke="{LINE}" stroke-width="1.3" marker-end="url(#arrow)"/>')
    for box in boxes.values():
        lines += box.svg()
    return page(title, width, height, lines)


def qkv(q=0, k=1, v=2, tokens="M"):
    """The operands of one head, in the rows q, k and v; an operand whose row is None is omitted."""
    rows = {"q": (q, "N × d"), "k": (k, f"{tokens} × d"), "v": (v, f"{tokens} × e")}
    return {name: ("input", 0, row, name, shape) for name, (row, shape) in rows.items() if row is not None}


# The same letters as in src/attention: N queries, M keys, d channels of q and k, e of v; m landmarks or features.
MECHANISMS = {
    "softmax": ({**qkv(),
                 "S": ("step", 1, 0.5, "S = q kᵀ", "N × M"),
                 "A": ("step", 2, 0.5, "A = softmax(S / √d)", "rows of N × M"),
                 "out": ("output", 3, 1.25, "out = A v", "N × e")},
                "q-S k-S S-A A-out v-out"),
    "sima": ({**qkv(),
              "qn": ("step", 1, 0, "qn = q / |q|₁", "channel by channel, N × d"),
              "kn": ("step", 1, 1, "kn = k / |k|₁", "channel by channel, M × d"),
              "S": ("step", 2, 1.5, "S = knᵀ v", "d × e"),
              "out": ("output", 3, 0.75, "out = qn S", "N × e")},
             "q-qn k-kn kn-S v-S qn-out S-out"),
    "aft": ({**qkv(0, 1, 3), "w": ("parameter", 0, 2, "w", "N × M biases"),
             "g": ("step", 2, 0, "σ(q)", "N × d"),
             "E": ("step", 1, 1.5, "exp(k_s + w_ts)", "per channel"),
             "mean": ("step", 2, 2, "mean of v_s by these weights", "N × e"),
             "out": ("output", 3, 1, "out = σ(q) · mean", "N × e")},
            "q-g k-E w-E E-mean v-mean g-out mean-out"),
    "pointwise": ({**qkv(),
                   "S": ("step", 1, 0.5, "S = q kᵀ / √d", "N × M"),
                   "A": ("step", 2, 0.5, "A = φ(S) / Mᵅ", "element by element, N × M"),
                   "out": ("output", 3, 1.25, "out = A v", "N × e")},
                  "q-S k-S S-A A-out v-out"),
    "soft": ({**qkv(0.5, None, 2),
              "L": ("step", 1, 0, "L = landmarks of q", "m × d"),
              "P": ("step", 2, 1, "P = G(L, q)", "Gaussian kernel, m × N"),
              "A": ("step", 2, 0, "A = G(L, L)", "m × m"),
              "X": ("step", 3, 0, "X ≈ A⁺", "Newton-Raphson, m × m"),
              "Y": ("step", 3, 1.5, "P v", "m × e"),
              "out": ("output", 4, 0.75, "out = Pᵀ X (P v)", "N × e")},
             "q-L L-A L-P q-P A-X P-Y v-Y X-out Y-out"),
    "adder": ({**qkv(),
               "S": ("step", 1, 0.5, "S = -|q_i - k_j|₁ / √dₐ", "l1 distances, N × M"),
               "A": ("step", 2, 0.5, "A = softmax(S)", "rows of N × M"),
               "out": ("output", 3, 1.25, "out = (A + I) v", "N × e")},
              "q-S k-S S-A A-out v-out"),
    "linear": ({**qkv(),
                "fq": ("step", 1, 0, "φ(q) = elu(q) + 1", "N × d"),
                "fk": ("step", 1, 1, "φ(k) = elu(k) + 1", "M × d"),
                "S": ("step", 2, 2, "S = φ(k)ᵀ v", "d × e"),
                "z": ("step", 2, 1, "z = sum of φ(k)", "d"),
                "out": ("output", 3, 0.5, "out = φ(q) S / φ(q) z", "N × e")},
               "q-fq k-fk fk-S fk-z v-S fq-out S-out z-out"),
    "efficient": ({**qkv(),
                   "qn": ("step", 1, 0, "qn = softmax(q)", "over channels, N × d"),
                   "kn": ("step", 1, 1, "kn = softmax(k)", "over tokens, M × d"),
                   "S": ("step", 2, 1.5, "S = knᵀ v", "d × e"),
                   "out": ("output", 3, 0.75, "out = qn S", "N × e")},
                  "q-qn k-kn kn-S v-S qn-out S-out"),
    "linformer": ({**qkv(0, 1, 3), "e": ("parameter", 0, 2, "e, f", "m × M each"),
                   "kp": ("step", 1, 1, "kp = e k", "m × d"),
                   "vp": ("step", 1, 2.5, "vp = f v", "m × e"),
                   "A": ("step", 2, 0.5, "A = softmax(q kpᵀ / √d)", "rows of N × m"),
                   "out": ("output", 3, 1.5, "out = A vp", "N × e")},
                  "k-kp e-kp e-vp v-vp q-A kp-A A-out vp-out"),
    "nystrom": ({**qkv(0, 2, 3),
                 "ql": ("step", 1, 1, "ql, kl = landmarks", "m × d each"),
                 "F": ("step", 2, 0, "F = softmax(q klᵀ / √d)", "N × m"),
                 "A": ("step", 2, 1, "A = softmax(ql klᵀ / √d)", "m × m"),
                 "B": ("step", 2, 2, "B = softmax(ql kᵀ / √d)", "m × M"),
                 "Z": ("step", 3, 1, "Z ≈ A⁺", "m × m"),
                 "Y": ("step", 3, 2.5, "B v", "m × e"),
                 "out": ("output", 4, 1, "out = F Z (B v)", "N × e")},
                "q-ql k-ql q-F ql-F ql-A ql-B k-B A-Z B-Y v-Y F-out Z-out Y-out"),
    "cosformer": ({**qkv(),
                   "fq": ("step", 1, 0, "φ(q): relu(q) · (cos t, sin t)", "N × 2 d"),
                   "fk": ("step", 1, 1, "φ(k): relu(k) · (cos t, sin t)", "M × 2 d"),
                   "S": ("step", 2, 2, "S = φ(k)ᵀ v", "2 d × e"),
                   "z": ("step", 2, 1, "z = sum of φ(k)", "2 d"),
                   "out": ("output", 3, 0.5, "out = φ(q) S / φ(q) z", "N × e")},
                  "q-fq k-fk fk-S fk-z v-S fq-out S-out z-out"),
    "synthesizer": ({**qkv(0, None, 2), "w": ("parameter", 0, 1, "w1, w2", "d × d, d × M"),
                     "Y": ("step", 1, 0.5, "Y = relu(q w1 + b1)", "N × d"),
                     "S": ("step", 2, 0.5, "S = Y w2 + b2", "N × M"),
                     "A": ("step", 3, 0.5, "A = softmax(S)", "rows of N × M"),
                     "out": ("output", 4, 1.25, "out = A v", "N × e")},
                    "q-Y w-Y Y-S S-A A-out v-out"),
    "window": ({**qkv(tokens="N"),
                "S": ("step", 1, 0.5, "S = q kᵀ / √d", "pairs in a window, N × w"),
                "A": ("step", 2, 0.5, "A = softmax(S)", "rows of N × w"),
                "out": ("output", 3, 1.25, "out = A v", "N × e")},
               "q-S k-S S-A A-out v-out"),
    "xca": ({**qkv(tokens="N"),
             "qn": ("step", 1, 0, "qn = q / |q|₂", "channel by channel, N × d"),
             "kn": ("step", 1, 1, "kn = k / |k|₂", "channel by channel, N × d"),
             "A": ("step", 2, 0.5, "A = softmax(τ qnᵀ kn)", "among channels, d × d"),
             "out": ("output", 3, 1.25, "out = v Aᵀ", "N × d")},
            "q-qn k-kn qn-A kn-A A-out v-out"),
    "lambda": ({"q": ("input", 0, 0, "q", "H × N × c"), "k": ("input", 0, 1, "k", "M × c"),
                "v": ("input", 0, 2, "v", "M × e"), "E": ("parameter", 0, 3, "E", "N × M × c"),
                "ks": ("step", 1, 1, "softmax(k)", "over tokens, M × c"),
                "L": ("step", 2, 1.25, "L = softmax(k)ᵀ v", "content, c × e"),
                "P": ("step", 2, 2.5, "E[n]ᵀ v", "position, c × e for each n"),
                "F": ("step", 3, 1.75, "λ_n = L + E[n]ᵀ v", "N × c × e"),
                "out": ("output", 4, 0.75, "out_n = q_n λ_n", "H × N × e")},
               "k-ks ks-L v-L v-P E-P L-F P-F q-out F-out"),
    "performer": ({**qkv(0, 1, 3), "o": ("parameter", 0, 2, "ω", "m × d, random"),
                   "fq": ("step", 1, 0, "φ(q) = exp(ω q' - |q'|² / 2)", "N × m"),
                   "fk": ("step", 1, 1.5, "φ(k) = exp(ω k' - |k'|² / 2)", "M × m"),
                   "z": ("step", 2, 1.5, "z = sum of φ(k)", "m"),
                   "S": ("step", 2, 2.75, "S = φ(k)ᵀ v", "m × e"),
                   "out": ("output", 3, 0.75, "out = φ(q) S / φ(q) z", "N × e")},
                  "q-fq o-fq o-fk k-fk fk-S v-S fk-z fq-out S-out z-out"),
    "reformer": ({**qkv(0, None, 2, "N"), "r": ("parameter", 0, 1, "rotations", "random"),
                  "h": ("step", 1, 0.5, "hash, sort, cut", "chunks of tokens"),
                  "S": ("step", 2, 0.5, "S = q (q / |q|)ᵀ / √d", "chunk × 2 chunk"),
                  "A": ("step", 3, 0.5, "A = softmax(S)", "in each round"),
                  "O": ("step", 4, 1.25, "A v", "N × e per round"),
                  "out": ("output", 5, 1.25, "out = weighted rounds", "N × e")},
                 "q-h r-h h-S S-A A-O v-O O-out"),
}

# Notes on diagrams of several heads or of one setting among several.
SCOPES = {"aft": "one head of all channels", "lambda": "all heads", "synthesizer": "one head, kind=dense",
          "cosformer": "one head, reweight=1d", "linear": "one head, not causal", "performer": "one head, not causal"}

STEP = ({"batch": ("input", 0, 1.5, "batch", "B images"),
         **{f"a{i}": ("step", 1, i, f"microbatch {2 * i}", "forward, backward") for i in range(4)},
         **{f"b{i}": ("step", 2, i, f"microbatch {2 * i + 1}", "forward, backward") for i in range(4)},
         **{f"l{i}": ("step", 3, i, f"gradient of lane {i}", "sum in order") for i in range(4)},
         "s0": ("step", 4, 0.5, "lanes 0 + 1", "tree sum"), "s1": ("step", 4, 2.5, "lanes 2 + 3", "tree sum"),
         "g": ("step", 5, 1.5, "gradient of the batch", "of all weights"),
         "w": ("output", 6, 1.5, "optimiser", "changes the weights")},
        " ".join(f"batch-a{i} a{i}-b{i} b{i}-l{i} l{i}-s{i // 2}" for i in range(4)) + " s0-g s1-g g-w")

# Rows from the lowest up. A layer uses the layers of lower rows and, in its own row, those to its left.
LAYERS = [["base"], ["cost"], ["kernels", "io"], ["attention", "tape"], ["ops", "config"], ["nn"],
          ["checks", "analysis", "data"], ["train"], ["selftest", "apps/grading", "draw", "apps/web", "bench"], ["apps/cli"]]
WORDS = {"base": "tensors, threads, random numbers", "cost": "counts, energy", "kernels": "arithmetic on arrays",
         "io": "files of weights", "attention": "17 mechanisms", "tape": "records, runs backward",
         "ops": "operations with gradients", "config": "experiments as TOML", "nn": "layers, blocks, models",
         "checks": "gradients, costs", "analysis": "cost, spectra, statistics", "data": "images, sequences, batches",
         "train": "a step, optimisers, runs", "selftest": "hashes of bits",
         "apps/grading": "course labs", "draw": "maps, charts",
         "apps/web": "page in a browser", "bench": "limits, speed", "apps/cli": "the program heed"}


def layers():
    row_height, width, boxes = 58, 800, []
    for level, names in enumerate(LAYERS):
        y = HEADING + MARGIN / 2 + (len(LAYERS) - 1 - level) * row_height
        each = (width - 2 * MARGIN - 12 * (len(names) - 1)) / len(names)
        for i, name in enumerate(names):
            box = Box("output" if name == "attention" else "input" if name.startswith("apps/") else "step", 0, 0, name,
                      WORDS[name])
            assert box.width <= each, name
            box.width = each
            box.place(MARGIN + i * (each + 12), y)
            boxes += box.svg()
    return page("Layers: a layer may use those below it, and those to its left", width,
                HEADING + MARGIN / 2 + len(LAYERS) * row_height + 2, boxes)


def diagrams():
    """The SVG text of each file."""
    drawn = {f"{name}.svg": flow(f"{name}: {SCOPES.get(name, 'one head')}", *flow_of) for name, flow_of in MECHANISMS.items()}
    drawn["step.svg"] = flow("A training step: eight microbatches in four lanes", *STEP)
    drawn["layers.svg"] = layers()
    return drawn


def main():
    stale = [name for name, text in diagrams().items()
             if not (HERE / name).exists() or (HERE / name).read_text(encoding="utf-8") != text]
    unknown = [path.name for path in HERE.glob("*.svg") if path.name not in diagrams()]
    if sys.argv[1:] == ["--check"]:
        for name in stale + unknown:
            print(f"docs/diagrams/{name}: not what docs/diagrams/draw.py draws; run it", file=sys.stderr)
        return 1 if stale or unknown else 0
    for name in stale:
        (HERE / name).write_text(diagrams()[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
