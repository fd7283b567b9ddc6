#!/usr/bin/python3
"""Draw the training curves of heed's runs: loss and accuracy from each RUN/metrics.csv."""

import argparse
import csv
import os
import sys
from pathlib import Path

KINDS = ("step", "train", "valid", "test")
COLUMNS = ("kind", "epoch", "step", "loss", "accuracy")
NAMES = {"step": "each step", "train": "training", "valid": "validation", "test": "test"}
# Okabe and Ito's colours, which the colour-blind tell apart, without the yellow that white paper swallows.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")


class BadInput(Exception):
    pass


class Run:
    """The rows of a run's metrics.csv by kind, each row with its columns as numbers."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.path = self.directory / "metrics.csv"
        self.rows = {kind: [] for kind in KINDS}
        try:
            with open(self.path, newline="", encoding="utf-8") as file:
                self.read(csv.DictReader(file))
        except OSError as error:
            raise BadInput(f"{self.path}: {error.strerror}") from None
        except (UnicodeDecodeError, csv.Error):
            raise BadInput(f"{self.path}: not a CSV file") from None
        if not any(self.rows.values()):
            raise BadInput(f"{self.path}: holds no metrics yet")

    def read(self, table):
        missing = [name for name in COLUMNS if name not in (table.fieldnames or [])]
        if missing:
            raise BadInput(f"{self.path}: has no column '{missing[0]}'; expected the columns {','.join(COLUMNS)}")
        for row in table:
            if row["kind"] not in KINDS:
                raise BadInput(f"{self.path}:{table.line_num}: kind is '{row['kind']}'; expected one of {', '.join(KINDS)}")
            numbers = {name: self.number(table, row, name) for name in COLUMNS[1:]}
            if row["kind"] == "train" and not (numbers["epoch"] >= 1 and numbers["step"] >= 1):
                raise BadInput(f"{self.path}:{table.line_num}: epoch {row['epoch']}, step {row['step']}; both count from 1")
            self.rows[row["kind"]].append(numbers)

    def number(self, table, row, name):
        try:
            return float(row[name])
        except (TypeError, ValueError):
            raise BadInput(f"{self.path}:{table.line_num}: {name} is '{row[name] or ''}'; expected a number") from None

    def steps_per_epoch(self):
        """None as long as no epoch is complete."""
        ends = self.rows["train"]
        return ends[0]["step"] / ends[0]["epoch"] if ends else None

    def points(self, kind, column, in_epochs):
        """Where and how high. A mean over an epoch stands in its middle, everything else where it was measured."""
        rows = self.rows[kind]
        unit = self.steps_per_epoch() if in_epochs else 1
        back = self.steps_per_epoch() / 2 if kind == "train" and rows else 0
        return [(row["step"] - back) / unit for row in rows], [row[column] for row in rows]


def distinct_names(runs):
    """The directories' names, with as much of their paths as tells them apart."""
    paths = [run.directory.resolve().parts for run in runs]
    for length in range(1, max(map(len, paths)) + 1):
        names = [os.path.join(*path[-length:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names


def style(kind, colour):
    return {
        "step": dict(color=colour, alpha=0.3, linewidth=0.8, zorder=1),
        "train": dict(color=colour, linestyle="--", marker="o", markersize=4, linewidth=1.6, zorder=2),
        "valid": dict(color=colour, marker="o", markersize=4, linewidth=1.6, zorder=3),
        "test": dict(color=colour, linestyle="", marker="D", markersize=9, markerfacecolor="none", markeredgewidth=2, zorder=4),
    }[kind]


def colour_of(run_number, kind, several):
    """A colour for each run; a run by itself has a colour for each kind."""
    return COLOURS[run_number % len(COLOURS) if several else {"valid": 1, "test": 2}.get(kind, 0)]


def draw_curves(axes, runs, column, factor):
    in_epochs = all(run.steps_per_epoch() for run in runs)
    for number, run in enumerate(runs):
        for kind in KINDS:
            x, y = run.points(kind, column, in_epochs)
            look = style(kind, colour_of(number, kind, len(runs) > 1))
            if len(x) > 40:
                look.pop("marker", None)
            axes.plot(x, [factor * value for value in y], **look)
    axes.set_xlabel("epoch" if in_epochs else "step")
    axes.set_xlim(left=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_entries(line, runs, names):
    """(handle, label) of each kind that is drawn, and of each run if there are several. Test accuracies are written out."""

    def tested(run):
        return f"{100 * run.rows['test'][-1]['accuracy']:.2f} %" if run.rows["test"] else ""

    several = len(runs) > 1
    entries = []
    if several:
        for number, (run, name) in enumerate(zip(runs, names)):
            score = f"\ntest {tested(run)}" if tested(run) else ""
            entries.append((line([], [], color=colour_of(number, "", True), linewidth=3), name + score))
    for kind in KINDS:
        if any(run.rows[kind] for run in runs):
            colour = "#666666" if several else colour_of(0, kind, False)
            score = f" {tested(runs[0])}" if kind == "test" and not several else ""
            entries.append((line([], [], **style(kind, colour)), NAMES[kind] + score))
    return entries


def draw(runs, output):
    try:
        import matplotlib
    except ImportError:
        raise BadInput("matplotlib is missing; on Debian: apt-get install python3-matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    # The same runs give the same file: no date, no random names.
    pyplot.rcParams.update({"font.size": 11, "svg.hashsalt": "heed", "axes.titlesize": 12, "axes.titlelocation": "left"})
    figure, (loss, accuracy) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    names = distinct_names(runs)
    draw_curves(loss, runs, "loss", 1)
    draw_curves(accuracy, runs, "accuracy", 100)
    loss.set_title("loss")
    accuracy.set_title("accuracy, %")
    handles, labels = zip(*legend_entries(Line2D, runs, names))
    accuracy.legend(handles, labels, title=names[0] if len(runs) == 1 else None, alignment="left", loc="upper left",
                    bbox_to_anchor=(1.02, 1), frameon=False, borderaxespad=0)
    # Whoever looks at the file meanwhile sees the old picture or the new one.
    temporary = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        figure.savefig(temporary, format=output.suffix[1:], dpi=144, metadata={"Date": None} if output.suffix == ".svg" else None)
        os.replace(temporary, output)
    except OSError as error:
        raise BadInput(f"{output}: cannot write: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; see {self.prog} --help")


def main():
    parser = Parser(
        description="Draw training curves of heed's runs: loss and accuracy in training, validation and test, and of each "
        "step if the run logged its steps (train.log_steps). Several runs are drawn over each other, a colour each.",
        epilog="A training point is the mean over an epoch and stands in its middle; validation and test are measured at "
        "ends of epochs.",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run directory, as heed train --run made it")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path,
                        help="FILE.png or FILE.svg; default: RUN-curves.png, or curves.png for several runs, in the working directory")
    arguments = parser.parse_args()
    runs = [Run(directory) for directory in arguments.runs]
    output = arguments.output or Path(f"{runs[0].directory.resolve().name}-curves.png" if len(runs) == 1 else "curves.png")
    if output.suffix not in (".png", ".svg"):
        raise BadInput(f"{output}: expected a name that ends in .png or .svg")
    draw(runs, output)
    print(output)


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        print(f"plot_run.py: {error}", file=sys.stderr)
        sys.exit(2)
