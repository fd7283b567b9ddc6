#!/usr/bin/python3
"""Draw the growth of attention's time and memory with the number of tokens, from the output of heed scaling."""

import math
import textwrap
from pathlib import Path

import figures
from figures import BadInput

PASSES = ("forward", "backward")
PANELS = (  # pass, column, the column's unit, title, name of the unit
    ("forward", "seconds", 1e-3, "time of the forward pass", "ms"),
    ("backward", "seconds", 1e-3, "time of the backward pass", "ms"),
    ("backward", "bytes", 2**20, "memory for both passes", "MB"),
)


def number(text, where, least=-math.inf):
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not least < value < math.inf:
        raise BadInput(f"{where} is '{text or ''}'; expected a number{' above 0' if least == 0 else ''}")
    return value


def read(path):
    """Returns {mechanism: {pass: [rows by tokens]}}, and a text for each mechanism with omitted sizes."""
    curves, left_out = {}, {}
    columns = ("mechanism", "tokens", "pass", "seconds", "bytes", "time_exponent", "memory_exponent", "skipped")
    for line, row in figures.read_table(path, texts=columns, numbers=()):
        if row["pass"] not in PASSES:
            raise BadInput(f"{path}:{line}: pass is '{row['pass']}'; expected forward or backward")
        if row["skipped"]:
            left_out.setdefault(row["mechanism"], f"{row['mechanism']} from {row['tokens']} tokens ({row['skipped']})")
            continue
        for name in ("tokens", "seconds", "bytes"):
            row[name] = number(row[name], f"{path}:{line}: {name}", least=0)
        for name in ("time_exponent", "memory_exponent"):
            row[name] = number(row[name], f"{path}:{line}: {name}") if row[name] else None
        curves.setdefault(row["mechanism"], {name: [] for name in PASSES})[row["pass"]].append(row)
    if not curves:
        raise BadInput(f"{path}: has no measured sizes")
    return curves, list(left_out.values())


def label_of(mechanism, passes):
    """Returns the name and the exponents of time forward, time backward, and memory."""
    exponents = [passes[name][0][column] for name, column in
                 (("forward", "time_exponent"), ("backward", "time_exponent"), ("backward", "memory_exponent")) if passes[name]]
    return f"{mechanism}  ({', '.join(f'{e:.2f}' if e is not None else '-' for e in exponents)})"


def groups(curves):
    """Returns groups of curves, one per column of the picture: linear and quadratic time, by their exponents."""
    def is_square(passes):
        return any(passes[name] and (passes[name][0]["time_exponent"] or 0) > 1.5 for name in PASSES)

    split = [{m: p for m, p in curves.items() if is_square(p) == square} for square in (False, True)]
    return [group for group in split if group]


def draw_column(panels, curves, styles, title):
    for axes, (name, column, unit, _, _) in zip(panels, PANELS):
        for mechanism, passes in curves.items():
            rows = passes[name]
            axes.plot([row["tokens"] for row in rows], [row[column] / unit for row in rows], **styles[mechanism])
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        tokens = sorted({row["tokens"] for passes in curves.values() for row in passes[name]})
        axes.set_xticks(tokens[:: math.ceil(len(tokens) / 4)])
        axes.xaxis.set_major_formatter("{x:.0f}")
        figures.tidy(axes)
    panels[0].set_title(title)
    panels[-1].set_xlabel("tokens")


def draw(curves, left_out, output):
    pyplot = figures.load_pyplot()
    from matplotlib.lines import Line2D

    columns = groups(curves)
    styles = dict(zip(curves, figures.line_styles(curves)))
    figure, panels = pyplot.subplots(len(PANELS), len(columns), figsize=(figures.WIDTH, 3.2 * len(PANELS) + 0.23 * len(curves) + 0.4 * len(left_out)),
                                     layout="constrained", squeeze=False)
    for column, group in zip(panels.T, columns):
        square = any(e > 1.5 for p in group.values() for n in PASSES for e in [p[n][0]["time_exponent"] or 0] if p[n])
        draw_column(column, group, styles, "quadratic time" if square else "linear time")
    for row, (_, _, _, title, unit) in zip(panels, PANELS):
        row[0].set_ylabel(f"{title}, {unit}")
    handles = [Line2D([], [], **styles[mechanism], label=label_of(mechanism, curves[mechanism])) for group in columns for mechanism in group]
    if left_out:
        handles.append(Line2D([], [], linestyle="", label="\n".join(textwrap.wrap("not measured: " + ", ".join(left_out), 66))))
    figures.legend_below(figure, handles, title="exponents of N: time forward, backward, memory")
    figures.save(figure, output, dpi=96)


def main():
    parser = figures.Parser(description=__doc__)
    parser.add_argument("file", metavar="FILE.csv", type=Path, help="output of heed scaling or experiments/tools/scaling")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="FILE.png or FILE.svg; default: scaling.png beside FILE.csv")
    arguments = parser.parse_args()
    output = arguments.output or arguments.file.with_name("scaling.png")
    figures.check_name(output)
    draw(*read(arguments.file), output)
    print(output)


if __name__ == "__main__":
    figures.run(main)
