#!/usr/bin/python3
"""Draw the growth of attention's cost with tokens and width: runs `heed cost --scale` and marks where curves cross the first."""

import csv
import io
import math
import subprocess
from pathlib import Path

import figures
from figures import BadInput

ROOT = Path(__file__).resolve().parents[2]


def output_of(program, *arguments):
    try:
        run = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError as error:
        raise BadInput(f"{program}: {error.strerror}") from None
    if run.returncode != 0:
        raise BadInput(run.stderr.strip())
    return run.stdout


def settings(program):
    """Returns {NAME:OPTION=VALUE...: label} of the settings in heed's comparisons."""
    rows = csv.reader(io.StringIO(output_of(program, "list", "--settings")), delimiter="\t")
    return {mechanism: label for label, growth, mechanism in rows}


def scaled(program, model, mechanism, scale):
    """Returns {column: values} of a mechanism in one image's forward pass, without a class token."""
    lines = output_of(program, "cost", model, "--set", "model.pool=mean", "--convention", "all", "--scale", scale,
                      "--attention", mechanism)
    columns = {"tokens": [], "dim": [], "operations": [], "exp": []}
    for row in csv.DictReader(io.StringIO(lines)):
        columns["tokens"].append(int(row["tokens"]))
        columns["dim"].append(int(row["dim"]))
        columns["operations"].append(int(row["attention_mul"]) + int(row["attention_add"]))
        columns["exp"].append(int(row["attention_exp"]))
    return columns


def curves(program, model, labels):
    """Returns {mechanism: columns} by tokens and by width, for the mechanisms that support all sizes."""
    tokens, dims, left_out = {}, {}, {}
    for mechanism, label in labels.items():
        try:
            grown = [scaled(program, model, mechanism, scale) for scale in ("tokens=49..4096", "dim=96..1536")]
        except BadInput as error:
            left_out[label] = error
            continue
        tokens[mechanism], dims[mechanism] = grown
    if not tokens:
        raise next(iter(left_out.values()))
    for label, error in left_out.items():
        print(f"{label} is left out: {error}")
    return tokens, dims


def crossing(x, a, b):
    """Returns the intersection of the curves a and b, by logarithmic interpolation; None if there is none."""
    gaps = [math.log(p) - math.log(q) for p, q in zip(a, b)]
    for i in range(1, len(x)):
        if gaps[i - 1] * gaps[i] <= 0 and gaps[i - 1] != gaps[i]:
            t = gaps[i - 1] / (gaps[i - 1] - gaps[i])
            at = lambda values: math.exp((1 - t) * math.log(values[i - 1]) + t * math.log(values[i]))
            return at(x), at(a)
    return None


def draw_panel(axes, labels, styles, table, x, y, title, unit):
    for (mechanism, label), style in zip(labels.items(), styles):
        if mechanism not in table:
            continue
        points = [(p, q) for p, q in zip(table[mechanism][x], table[mechanism][y]) if q > 0]
        if points:
            axes.plot(*zip(*points), **style, **figures.mark_some(len(points)), label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_title(title)
    axes.set_ylabel(unit)
    figures.tidy(axes)


def mark_crossings(axes, labels, table, x):
    first, *others = table
    for other in others:
        cross = crossing(table[first][x], table[first]["operations"], table[other]["operations"])
        if cross is None:
            continue
        axes.plot(*cross, marker="o", markersize=8, markerfacecolor="none", markeredgecolor="#cc0000", markeredgewidth=1.8)
        print(f"{labels[other]} crosses {labels[first]} at {x} = {cross[0]:.1f}")


def draw(labels, styles, tokens, dims, output):
    pyplot = figures.load_pyplot()
    figure, (operations, exponentials, width) = pyplot.subplots(3, 1, figsize=(figures.WIDTH, 16), layout="constrained")
    count = next(iter(dims.values()))["tokens"][0]
    counted, unit = "multiplications and additions of attention", "operations per image"
    draw_panel(operations, labels, styles, tokens, "tokens", "operations", counted, unit)
    draw_panel(exponentials, labels, styles, tokens, "tokens", "exp", "exponentials of attention, where there are any",
               "exponentials per image")
    draw_panel(width, labels, styles, dims, "dim", "operations", f"{counted}, {count} tokens", unit)
    mark_crossings(operations, labels, tokens, "tokens")
    mark_crossings(width, labels, dims, "dim")
    for axes, label in ((operations, "tokens"), (exponentials, "tokens"), (width, "width of a token")):
        axes.set_xlabel(label)
    figures.legend_below(figure, width.get_legend_handles_labels()[0], columns=3)
    figures.save(figure, output, dpi=110)


def main():
    parser = figures.Parser(description=__doc__, epilog="Counts all operations of the mechanisms themselves, in all "
                            "blocks of a forward pass, without the projections around them.")
    parser.add_argument("model", nargs="?", default="models/deit-tiny.toml", help="default: models/deit-tiny.toml")
    parser.add_argument("--attention", metavar="NAME[:OPTION=VALUE]...,...",
                        help="mechanisms to draw; default: the settings of `heed list --settings`")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path("costs.png"), help="FILE.png or FILE.svg")
    parser.add_argument("--heed", default=figures.heed_program(), help="the program; default: build/heed, or the installed one")
    arguments = parser.parse_args()
    figures.check_name(arguments.output)
    program = str(Path(arguments.heed).resolve())
    labels = {name: name for name in arguments.attention.split(",")} if arguments.attention else settings(program)
    draw(labels, figures.line_styles(labels, program), *curves(program, arguments.model, labels), arguments.output)
    print(arguments.output)


if __name__ == "__main__":
    figures.run(main)
