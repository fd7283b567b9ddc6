#!/usr/bin/python3
"""Draw the singular values of attention maps, from the output of heed spectrum."""

from pathlib import Path

import figures
from figures import BadInput

SHARE = 0.9  # share of the sum of all singular values that defines the equivalent rank


class Curves:
    """One matrix of a run: by block, each head's cumulative singular values and equivalent rank."""

    def __init__(self, name, matrix, used):
        self.name = name
        self.matrix = matrix.replace("+", " + ") + ("" if used else " alone")
        self.mechanisms = {}  # in the order of the blocks
        self.blocks = {}

    @property
    def label(self):
        return f"{self.name or ', '.join(self.mechanisms)}: {self.matrix}"

    def add(self, row):
        self.mechanisms[row["mechanism"]] = True
        cumulative, _ = self.blocks.setdefault(int(row["block"]), {}).setdefault(int(row["head"]), ([], row["rank"]))
        cumulative.append(row["cumulative"])

    def mean(self, block):
        heads = [cumulative for cumulative, _ in self.blocks[block].values()]
        return [sum(at) / len(at) for at in zip(*heads)]

    def ranks(self, block):
        return [rank for _, rank in self.blocks[block].values()]


def label_and_path(argument):
    """Splits [NAME=]FILE.csv; FILE.csv is the longest end of the argument that is an existing path."""
    parts = argument.split("=")
    splits = [("=".join(parts[:i]), "=".join(parts[i:])) for i in range(len(parts))]
    return next((one for one in splits if Path(one[1]).exists()), splits[-1])


def read(argument):
    """Returns the curves of the matrices that the model uses, and of A if the model uses A + I."""
    name, path = label_and_path(argument)
    curves = {}
    for line, row in figures.read_table(path, ("mechanism", "matrix", "used"), ("block", "head", "index", "cumulative", "rank")):
        if row["matrix"] not in ("A", "A+I"):
            raise BadInput(f"{path}:{line}: matrix is '{row['matrix']}'; expected A or A+I")
        key = (row["matrix"], row["used"] == "true")  # blocks may use different matrices
        curves.setdefault(key, Curves(name, *key)).add(row)
    if not curves:
        raise BadInput(f"{path}: has no spectrum")
    return [c for (matrix, used), c in sorted(curves.items(), reverse=True) if used or matrix == "A"]


def draw(curves, output):
    pyplot = figures.load_pyplot()
    from matplotlib.lines import Line2D

    blocks = sorted({block for c in curves for block in c.blocks})
    height = len(blocks) // 2 + 1
    figure, panels = pyplot.subplots(height, 2, figsize=(figures.WIDTH, 3.2 * height + 0.8), layout="constrained", squeeze=False)
    cumulative, ranks = panels.flat[: len(blocks)], panels.flat[len(blocks)]
    for axes in panels.flat[len(blocks) + 1 :]:
        axes.set_visible(False)
    styles = figures.line_styles([c.label for c in curves])
    for axes, block in zip(cumulative, blocks):
        axes.axhline(SHARE, color="#666666", linewidth=0.8)
        for c, style in zip(curves, styles):
            if block in c.blocks:
                y = c.mean(block)
                axes.plot(range(1, len(y) + 1), y, **style, **figures.mark_some(len(y)))
        axes.set_title(f"block {block}")
        axes.set_xlabel("singular values")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1.02)
        figures.tidy(axes)
    for axes in cumulative[::2]:
        axes.set_ylabel("share of their sum")
    handles = []
    for i, (c, style) in enumerate(zip(curves, styles)):
        shift = 0.12 * (i - (len(curves) - 1) / 2)
        points = [(block + shift, rank) for block in c.blocks for rank in c.ranks(block)]
        ranks.plot(*zip(*points), **style | dict(linestyle=""))
        handles.append(Line2D([], [], **style, label=c.label))
    ranks.set_title(f"equivalent rank at {SHARE}")
    ranks.set_xlabel("block; a point for each head")
    ranks.set_xticks(blocks)
    ranks.set_ylim(bottom=0)
    figures.tidy(ranks)
    figures.legend_below(figure, handles)
    figures.save(figure, output, dpi=96)


def main():
    parser = figures.Parser(
        description="Draw the normalised cumulative singular values of attention maps, a panel for each block with the mean "
        "over its heads, and the equivalent rank of each head. Each file has its own colour or dashes; if a model adds the identity to its "
        "map, the map without it is also drawn.")
    parser.add_argument("files", metavar="[NAME=]FILE.csv", nargs="+", help="output of heed spectrum, with an optional label")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="FILE.png or FILE.svg; default: spectrum.png beside the first FILE.csv")
    arguments = parser.parse_args()
    output = arguments.output or Path(label_and_path(arguments.files[0])[1]).with_name("spectrum.png")
    figures.check_name(output)
    draw([curves for argument in arguments.files for curves in read(argument)], output)
    print(output)


if __name__ == "__main__":
    figures.run(main)
