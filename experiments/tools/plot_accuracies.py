#!/usr/bin/python3
"""Draw every mechanism's test accuracy with the same budget, from the output of `experiments/tools/tables images`: the
mean over seeds, its standard deviation, and each seed."""

import statistics
from pathlib import Path

import figures
from figures import BadInput

TITLES = {"cifar10": "CIFAR-10, 10 epochs", "mnist": "MNIST, 8 epochs"}


def read(path):
    """Returns {data: {arm: accuracies in percent}} of the finished runs."""
    tables = {data: {} for data in TITLES}
    columns = ("data", "arm", "state")
    for line, row in figures.read_table(path, texts=columns, numbers=("test_accuracy",), may_be_empty=("test_accuracy",)):
        if row["data"] not in tables:
            raise BadInput(f"{path}:{line}: data is '{row['data']}'; expected {' or '.join(tables)}")
        if row["state"] == "finished":
            tables[row["data"]].setdefault(row["arm"], []).append(100 * row["test_accuracy"])
    for data, arms in tables.items():
        if not arms:
            raise BadInput(f"{path}: has no finished run on {data}")
    return tables


def draw(tables, output):
    pyplot = figures.load_pyplot()
    order = sorted({**tables["mnist"], **tables["cifar10"]}, key=lambda arm: statistics.mean(tables["cifar10"].get(arm, [0])))
    figure, panels = pyplot.subplots(1, len(tables), figsize=(figures.WIDTH, 0.26 * len(order) + 1), sharey=True, layout="constrained")
    styles = figures.line_styles(order)
    for axes, (data, arms) in zip(panels, tables.items()):
        for y, (arm, style) in enumerate(zip(order, styles)):
            if arm not in arms:
                continue
            deviation = statistics.stdev(arms[arm]) if len(arms[arm]) > 1 else None
            axes.errorbar(statistics.mean(arms[arm]), y, xerr=deviation, color=style["color"], marker=style["marker"], markersize=5, capsize=3)
            axes.plot(arms[arm], [y] * len(arms[arm]), linestyle="none", marker="|", markersize=8, color=style["color"], alpha=0.5)
        axes.set_yticks(range(len(order)), order)
        axes.set_xlabel("test accuracy, %")
        axes.set_title(TITLES[data])
        figures.tidy(axes)
    figures.save(figure, output, dpi=96)


def main():
    parser = figures.Parser(description=__doc__)
    parser.add_argument("file", metavar="FILE.csv", type=Path, nargs="?", default=Path(__file__).parents[1] / "results/images-table.csv",
                        help="default: experiments/results/images-table.csv")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="FILE.png or FILE.svg; default: accuracies.png beside FILE.csv")
    arguments = parser.parse_args()
    output = arguments.output or arguments.file.with_name("accuracies.png")
    figures.check_name(output)
    draw(read(arguments.file), output)
    print(output)


if __name__ == "__main__":
    figures.run(main)
