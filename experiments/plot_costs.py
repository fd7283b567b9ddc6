#!/usr/bin/python3
"""Draw how the cost of attention grows with tokens and width: runs `heed cost --scale` and marks where curves cross."""

import argparse
import csv
import io
import math
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What is drawn: the mechanism as `heed cost --attention` takes it, its name, colour (Okabe and Ito's) and line. Softmax is
# drawn wide, since SimA's first order costs nearly the same.
CURVES = (
    ("softmax", "softmax", "#b0b0b0", "-"),
    ("sima:order=qk_first", "SimA, (q kᵀ) v", "#0072b2", "-"),
    ("sima:order=kv_first", "SimA, q (kᵀ v)", "#56b4e9", "--"),
    ("soft:landmarks=49", "SOFT, 49 landmarks", "#009e73", "-"),
    ("aft", "AFT-full", "#d55e00", "-"),
    ("aft:variant=simple", "AFT-simple", "#e69f00", "--"),
)
CROSSINGS = (("sima:order=qk_first", "sima:order=kv_first"), ("softmax", "soft:landmarks=49"))


class BadInput(Exception):
    pass


def scaled(program, model, scale):
    """{mechanism: {column: values}} of attention in one image's forward pass, without a class token."""
    command = [program, "cost", model, "--set", "model.pool=mean", "--convention", "all", "--scale", scale,
               "--attention", ",".join(curve[0] for curve in CURVES)]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError as error:
        raise BadInput(f"{program}: {error.strerror}") from None
    if run.returncode != 0:
        raise BadInput(run.stderr.strip())
    table = {}
    for row in csv.DictReader(io.StringIO(run.stdout)):
        columns = table.setdefault(row["model"], {"tokens": [], "dim": [], "operations": [], "exp": []})
        columns["tokens"].append(int(row["tokens"]))
        columns["dim"].append(int(row["dim"]))
        columns["operations"].append(int(row["attention_mul"]) + int(row["attention_add"]))
        columns["exp"].append(int(row["attention_exp"]))
    return table


def crossing(x, a, b):
    """Where the curves a and b cross, by interpolation between sizes of the logarithms; None if they do not."""
    gaps = [math.log(p) - math.log(q) for p, q in zip(a, b)]
    for i in range(1, len(x)):
        if gaps[i - 1] * gaps[i] <= 0 and gaps[i - 1] != gaps[i]:
            t = gaps[i - 1] / (gaps[i - 1] - gaps[i])
            at = lambda values: math.exp((1 - t) * math.log(values[i - 1]) + t * math.log(values[i]))
            return at(x), at(a)
    return None


def draw_panel(axes, table, x, y, title):
    for mechanism, name, colour, line in CURVES:
        points = [(p, q) for p, q in zip(table[mechanism][x], table[mechanism][y]) if q > 0]
        if points:
            axes.plot(*zip(*points), color=colour, linestyle=line, linewidth=5 if name == "softmax" else 1.8, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_title(title)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def mark_crossings(axes, table, x):
    for first, second in CROSSINGS:
        cross = crossing(table[first][x], table[first]["operations"], table[second]["operations"])
        if cross is None:
            continue
        axes.plot(*cross, marker="o", markersize=8, markerfacecolor="none", markeredgecolor="#cc0000", markeredgewidth=1.8)
        axes.annotate(f"{cross[0]:.0f}", cross, xytext=(9, -13), textcoords="offset points", color="#cc0000")
        print(f"{first} and {second} cross at {x} = {cross[0]:.1f}")


def draw(tokens, dims, output):
    try:
        import matplotlib
    except ImportError:
        raise BadInput("matplotlib is missing; on Debian: apt-get install python3-matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 11, "svg.hashsalt": "heed", "axes.titlesize": 12, "axes.titlelocation": "left"})
    figure, (operations, exponentials, width) = pyplot.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    draw_panel(operations, tokens, "tokens", "operations", "multiplications and additions")
    draw_panel(exponentials, tokens, "tokens", "exp", "exponentials (SimA: none)")
    draw_panel(width, dims, "dim", "operations", f"multiplications and additions, {dims['softmax']['tokens'][0]} tokens")
    mark_crossings(operations, tokens, "tokens")
    mark_crossings(width, dims, "dim")
    for axes, label in ((operations, "tokens"), (exponentials, "tokens"), (width, "width of a token")):
        axes.set_xlabel(label)
    width.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, borderaxespad=0)
    # Whoever looks at the file meanwhile sees the old picture or the new one.
    temporary = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        figure.savefig(temporary, format=output.suffix[1:], dpi=110, metadata={"Date": None} if output.suffix == ".svg" else None)
        os.replace(temporary, output)
    except OSError as error:
        raise BadInput(f"{output}: cannot write: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; see {self.prog} --help")


def main():
    parser = Parser(description=__doc__, epilog="Counted are all operations of the mechanisms themselves, in all blocks of a "
                    "forward pass, without the projections around them.")
    parser.add_argument("model", nargs="?", default="models/deit-tiny.toml", help="default: models/deit-tiny.toml")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path("costs.png"), help="FILE.png or FILE.svg")
    parser.add_argument("--heed", default=str(ROOT / "build" / "heed"), help="the program; default: build/heed")
    arguments = parser.parse_args()
    if arguments.output.suffix not in (".png", ".svg"):
        raise BadInput(f"{arguments.output}: expected a name that ends in .png or .svg")
    program = str(Path(arguments.heed).resolve())
    draw(scaled(program, arguments.model, "tokens=49..4096"), scaled(program, arguments.model, "dim=96..1536"), arguments.output)
    print(arguments.output)


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        print(f"plot_costs.py: {error}", file=sys.stderr)
        sys.exit(2)
