#!/usr/bin/python3
"""Draw the training curves of heed's runs: loss and accuracy from each RUN/metrics.csv."""

import bisect
import os
from pathlib import Path

import figures
from figures import BadInput

KINDS = ("step", "train", "valid", "test")
COLUMNS = ("kind", "epoch", "step", "loss", "accuracy")
NAMES = {"step": "each step", "train": "training", "valid": "validation", "test": "test"}


class Run:
    """The rows of a run's metrics.csv by kind, each row with its columns as numbers."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.path = self.directory / "metrics.csv"
        self.rows = {kind: [] for kind in KINDS}
        self.epochs, self.ends = [0], [0]  # complete epochs, and the last step of each
        for line, row in figures.read_table(self.path, texts=COLUMNS[:1], numbers=COLUMNS[1:], may_be_empty=COLUMNS[3:]):
            if row["kind"] not in KINDS:
                raise BadInput(f"{self.path}:{line}: kind is '{row['kind']}'; expected one of {', '.join(KINDS)}")
            if row["kind"] == "train":
                if not (row["epoch"] > self.epochs[-1] and row["step"] > self.ends[-1]):
                    raise BadInput(f"{self.path}:{line}: epoch {row['epoch']:g}, step {row['step']:g}; expected both to increase from 0")
                self.epochs.append(row["epoch"])
                self.ends.append(row["step"])
            self.rows[row["kind"]].append(row)
        if not any(self.rows.values()):
            raise BadInput(f"{self.path}: has no metrics yet")

    def has_epoch(self):
        return len(self.ends) > 1

    def in_epochs(self, step):
        """Returns the position of a step in epochs, which may have different numbers of steps."""
        i = min(max(bisect.bisect_left(self.ends, step), 1), len(self.ends) - 1)
        share = (step - self.ends[i - 1]) / (self.ends[i] - self.ends[i - 1])
        return self.epochs[i - 1] + share * (self.epochs[i] - self.epochs[i - 1])

    def points(self, kind, column, in_epochs):
        """Returns the points of a kind. A mean over an epoch is drawn at its middle, other values at their steps."""
        rows = self.rows[kind]
        steps = [row["step"] for row in rows]
        if kind == "train":
            steps = [(begin + end) / 2 for begin, end in zip(self.ends, self.ends[1:])]
        return [self.in_epochs(step) if in_epochs else step for step in steps], [row[column] for row in rows]


def distinct_names(runs):
    """Returns the directories' names, with enough of their paths to distinguish them."""
    paths = [run.directory.resolve().parts for run in runs]
    for length in range(1, max(map(len, paths)) + 1):
        names = [os.path.join(*path[-length:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names


def style(kind, line):
    """Returns the line style for values of a kind; `line` is the style of the run or kind by figures.line_styles."""
    return {**line, **{
        "step": dict(marker="", alpha=0.3, linewidth=0.8, zorder=1),
        "train": dict(linestyle="--", zorder=2),
        "valid": dict(linestyle="-", zorder=3),
        "test": dict(linestyle="", markersize=10, markerfacecolor="none", markeredgewidth=2, zorder=4),
    }[kind]}


def draw_curves(axes, runs, lines, column, factor):
    in_epochs = all(run.has_epoch() for run in runs)
    for run, line in zip(runs, lines):
        for kind in KINDS:
            x, y = run.points(kind, column, in_epochs)
            axes.plot(x, [factor * value for value in y], **style(kind, line[kind]), **figures.mark_some(len(x)))
    axes.set_xlabel("epoch" if in_epochs else "step")
    axes.set_xlim(left=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    figures.tidy(axes)


def legend_entries(handle, runs, names, lines):
    """Returns legend handles for each kind of values, and for each run if there are several. Labels include test
    accuracies."""

    def tested(run):
        return f"{100 * run.rows['test'][-1]['accuracy']:.2f} %" if run.rows["test"] else ""

    several = len(runs) > 1
    entries = []
    if several:
        for run, name, line in zip(runs, names, lines):
            score = f"\ntest {tested(run)}" if tested(run) else ""
            entries.append(handle([], [], **line["valid"], label=name + score))
    for kind in KINDS:
        if any(run.rows[kind] for run in runs):
            line = dict(color="#666666", marker="", linewidth=1.6) if several else lines[0][kind]
            look = style(kind, line) | (dict(marker="o") if several and kind == "test" else {})
            score = f" {tested(runs[0])}" if kind == "test" and not several else ""
            entries.append(handle([], [], **look, label=NAMES[kind] + score))
    return entries


def draw(runs, output):
    pyplot = figures.load_pyplot()
    from matplotlib.lines import Line2D

    figure, (loss, accuracy) = pyplot.subplots(2, 1, figsize=(figures.WIDTH, 8), layout="constrained")
    names = distinct_names(runs)
    # If there are several runs, each run has one style; for a single run, each kind of values has one.
    if len(runs) > 1:
        lines = [dict.fromkeys(KINDS, line) for line in figures.line_styles(names)]
    else:
        train, valid, test = figures.line_styles(["training", "validation", "test"])
        lines = [{"step": train, "train": train, "valid": valid, "test": test}]
    title = "" if len(runs) > 1 else f" of {names[0]}"
    for axes, column, factor, unit in ((loss, "loss", 1, ""), (accuracy, "accuracy", 100, ", %")):
        draw_curves(axes, runs, lines, column, factor)
        axes.set_title(f"{column}{title}")
        axes.set_ylabel(f"{column}{unit}")
    figures.legend_below(figure, legend_entries(Line2D, runs, names, lines), columns=2)
    figures.save(figure, output)


def main():
    parser = figures.Parser(
        description="Draw training curves of heed's runs: loss and accuracy in training, validation and test, and of each "
        "step if the run logged its steps (train.log_steps). Several runs are drawn in one figure, each with one colour and marker.",
        epilog="A training point is the mean over an epoch, drawn at its middle; validation and test are measured at the "
        "ends of epochs.",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run directory of heed train --run")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path,
                        help="FILE.png or FILE.svg; default: curves.png in the run directory; for several runs, beside the first")
    arguments = parser.parse_args()
    runs = [Run(directory) for directory in arguments.runs]
    directory = runs[0].directory
    output = arguments.output or (directory if len(runs) == 1 else directory.parent) / "curves.png"
    figures.check_name(output)
    draw(runs, output)
    print(output)


if __name__ == "__main__":
    figures.run(main)
