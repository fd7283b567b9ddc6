#!/usr/bin/python3
"""Draw the convergence of SOFT's Newton-Raphson iteration, from the output of heed residual."""

from pathlib import Path

import figures
from figures import BadInput

STARTS = {
    "damped": "damped: a = 1.8 / |A|²",
    "plain": "plain: a = 2 / |A|²",
    "backtrack": "backtrack: a = 2 bⁿ / |A|²",
}
RESIDUALS = {"relative": "|A Xₖ A − A| / |A|", "identity": "|I − A Xₖ|"}
LEAST = 1e-8  # smaller residuals are only rounding error


def read(path):
    """Returns {(init, dtype, block): {head: [rows by iteration]}}"""
    numbers = ["block", "head", "iteration"]
    numbers += [f"{kind}_{which}" for kind in RESIDUALS for which in ("median", "worst")]
    curves = {}
    for line, row in figures.read_table(path, ("init", "dtype"), numbers):
        if row["init"] not in STARTS:
            raise BadInput(f"{path}:{line}: init is '{row['init']}'; expected one of {', '.join(STARTS)}")
        curves.setdefault((row["init"], row["dtype"], int(row["block"])), {}).setdefault(int(row["head"]), []).append(row)
    if not curves:
        raise BadInput(f"{path}: has no residuals")
    return curves


def draw_block(axes, heads, kind, style):
    """Draws each head's median residual, and the largest residual of the block."""
    clip = lambda rows, name: [max(row[f"{kind}_{name}"], LEAST) for row in rows]
    for rows in heads.values():
        axes.plot([row["iteration"] for row in rows], clip(rows, "median"), **style | dict(linewidth=1, alpha=0.8),
                  **figures.mark_some(len(rows)))
    worst = [max(at) for at in zip(*(clip(rows, "worst") for rows in heads.values()))]
    axes.plot(range(len(worst)), worst, **style | dict(linestyle="--", marker=""))


def draw(curves, dtype, output):
    pyplot = figures.load_pyplot()
    from matplotlib.lines import Line2D

    figure, grid = pyplot.subplots(len(STARTS), len(RESIDUALS), figsize=(figures.WIDTH, 9), sharex=True, sharey=True, layout="constrained")
    blocks = sorted({block for _, _, block in curves})
    styles = figures.line_styles([f"block {block}" for block in blocks])
    for row, (start, title) in zip(grid, STARTS.items()):
        for axes, (kind, symbol) in zip(row, RESIDUALS.items()):
            axes.set_yscale("log")
            axes.axhline(1e-3, color="#666666", linewidth=0.8)
            axes.axvline(20, color="#666666", linewidth=0.8)
            for block, style in zip(blocks, styles):
                draw_block(axes, curves.get((start, dtype, block), {}), kind, style)
            figures.tidy(axes)
            axes.set_title(symbol if start != next(iter(STARTS)) else f"residual {symbol}")
        row[0].set_ylabel(title)
    grid[0, 0].set_ylim(LEAST, 10)
    for axes in grid[-1]:
        axes.set_xlabel("iteration k")
    entries = [Line2D([], [], **style, label=f"block {block}") for block, style in zip(blocks, styles)]
    entries += [Line2D([], [], color="#666666", label="median, each head"),
                Line2D([], [], color="#666666", linestyle="--", linewidth=1.6, label="worst of the block")]
    figures.legend_below(figure, entries, columns=3)
    figures.save(figure, output, dpi=96)


def main():
    parser = figures.Parser(
        description="Draw the residuals of SOFT's Newton-Raphson inverse by iteration, a row for each start: the "
        "paper's residual on the left, the residual of the inverse on the right. Grey lines mark 0.001 and 20 iterations.")
    parser.add_argument("file", metavar="FILE.csv", type=Path, help="output of heed residual")
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32", help="number type of the iteration; default: f32")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="FILE.png or FILE.svg; default: residual.png beside FILE.csv")
    arguments = parser.parse_args()
    output = arguments.output or arguments.file.with_name("residual.png")
    figures.check_name(output)
    draw(read(arguments.file), arguments.dtype, output)
    print(output)


if __name__ == "__main__":
    figures.run(main)
