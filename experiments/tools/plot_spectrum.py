#!/usr/bin/python3
"""Draw the singular values of attention maps, from the output of heed spectrum."""

from pathlib import Path

import figures
from figures import COLOURS, BadInput

SHARE = 0.9  # share of the sum of all singular values that defines the equivalent rank


class Curves:
    """One matrix of a run: by block, each head's cumulative singular values and equivalent rank."""

    def __init__(self, label, used):
        self.label = label
        self.used = used
        self.blocks = {}

    def add(self, row):
        cumulative, _ = self.blocks.setdefault(int(row["block"]), {}).setdefault(int(row["head"]), ([], row["rank"]))
        cumulative.append(row["cumulative"])

    def mean(self, block):
        heads = [cumulative for cumulative, _ in self.blocks[block].values()]
        return [sum(at) / len(at) for at in zip(*heads)]

    def ranks(self, block):
        return [rank for _, rank in self.blocks[block].values()]


def read(argument):
    """The matrices that the model uses, and A alone if it uses A + I."""
    name, _, path = argument.rpartition("=")
    curves = {}
    for line, row in figures.read_table(path, ("mechanism", "matrix", "used"), ("block", "head", "index", "cumulative", "rank")):
        if row["matrix"] not in ("A", "A+I"):
            raise BadInput(f"{path}:{line}: matrix is '{row['matrix']}'; expected A or A+I")
        used = row["used"] == "true"
        matrix = row["matrix"].replace("+", " + ")
        label = f"{name or row['mechanism']}: {matrix}" if used else f"{name or row['mechanism']}: {matrix} alone"
        curves.setdefault((row["matrix"], used), Curves(label, used)).add(row)  # blocks may use different ones
    if not curves:
        raise BadInput(f"{path}: holds no spectrum")
    return [c for (matrix, used), c in sorted(curves.items(), reverse=True) if used or matrix == "A"]


def draw(curves, output):
    pyplot = figures.load_pyplot()
    blocks = sorted({block for c in curves for block in c.blocks})
    figure, panels = pyplot.subplots(1, len(blocks) + 1, figsize=(3 * len(blocks) + 3, 3.9), layout="constrained", squeeze=False)
    *cumulative, ranks = panels[0]
    for axes, block in zip(cumulative, blocks):
        axes.axhline(SHARE, color="#666666", linewidth=0.8)
        for i, c in enumerate(curves):
            if block in c.blocks:
                y = c.mean(block)
                axes.plot(range(1, len(y) + 1), y, color=COLOURS[i % len(COLOURS)], linestyle="-" if c.used else "--", linewidth=1.8)
        axes.set_title(f"block {block}")
        axes.set_xlabel("singular values")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1.02)
        figures.tidy(axes)
    cumulative[0].set_ylabel("part of their sum")
    for axes in cumulative[1:]:
        axes.tick_params(labelleft=False)
    handles = []
    for i, c in enumerate(curves):
        shift = 0.12 * (i - (len(curves) - 1) / 2)
        points = [(block + shift, rank) for block in c.blocks for rank in c.ranks(block)]
        face = COLOURS[i % len(COLOURS)] if c.used else "none"
        handles += ranks.plot(*zip(*points), linestyle="", marker="o", markersize=4, color=COLOURS[i % len(COLOURS)],
                              markerfacecolor=face, label=c.label)
    ranks.set_title(f"equivalent rank at {SHARE}")
    ranks.set_xlabel("block; a point for each head")
    ranks.set_xticks(blocks)
    ranks.set_ylim(bottom=0)
    figures.tidy(ranks)
    ranks.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, borderaxespad=0)
    figures.save(figure, output, dpi=96)


def main():
    parser = figures.Parser(
        description="Draw the normalised cumulative singular values of attention maps, a panel for each block with the mean "
        "over its heads, and the equivalent rank of each head. Each file is a colour; where a model adds the identity to its "
        "map, the map by itself is drawn too.")
    parser.add_argument("files", metavar="[NAME=]FILE.csv", nargs="+", help="what heed spectrum wrote, and what to call it")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="FILE.png or FILE.svg; default: spectrum.png beside the first FILE.csv")
    arguments = parser.parse_args()
    output = arguments.output or Path(arguments.files[0].rpartition("=")[2]).with_name("spectrum.png")
    figures.check_name(output)
    draw([curves for argument in arguments.files for curves in read(argument)], output)
    print(output)


if __name__ == "__main__":
    figures.run(main)
