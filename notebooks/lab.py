"""Common code of the notebooks: runs heed, draws, and checks labs. Requires matplotlib, and NumPy, its dependency.

heed is the program built by `make` in this checkout, or else the installed one; the variable HEED names another. With
HEED_QUICK=1 notebooks compute less: enough to test that they run, too little for meaningful results.
"""

import contextlib
import csv
import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy
from matplotlib import pyplot

import tensors

HERE = Path(__file__).resolve().parent
QUICK = os.environ.get("HEED_QUICK", "0") not in ("", "0")

# datasets/fetch.sh downloads data into the checkout.
os.environ.setdefault("HEED_DATA", str(HERE.parent / "datasets"))

# Colours of lines, the same as in all of heed's charts (include/heed/draw/line_style.h).
COLOURS = ("#0072b2", "#d55e00", "#008a64", "#b0508a", "#2e9bd6", "#a87400", "#6b4fbb", "#6d6d6d")
pyplot.rcParams.update({"figure.figsize": (7, 3.6), "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left",
                        "axes.prop_cycle": pyplot.cycler(color=COLOURS), "axes.grid": True, "axes.axisbelow": True,
                        "grid.color": "#e5e5e5", "axes.spines.top": False, "axes.spines.right": False})


class LabError(Exception):
    """An error that stops a notebook, reported in one line."""

    def _render_traceback_(self):  # replaces Jupyter's traceback
        return [str(self)]


def quick(full, short):
    """Returns `full`, or `short` with HEED_QUICK=1."""
    return short if QUICK else full


def program():
    """Returns the path of the heed that the notebooks run."""
    built = HERE.parent / "build" / "heed"
    installed = HERE.parent.parent.parent / "bin" / "heed"
    found = os.environ.get("HEED") or next((str(p) for p in (built, installed) if p.exists()), shutil.which("heed"))
    if not found:
        raise LabError("there is no heed: run make in the checkout, or set HEED to the program")
    return found


def heed(*arguments, expected=(0,)):
    """Returns the output of `heed ARGUMENTS`. Raises LabError with heed's error if the exit status is unexpected."""
    command = [program(), *map(str, arguments)]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except OSError as error:
        raise LabError(f"{command[0]}: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        if error.returncode in expected:
            return error.stdout
        said = error.stderr.strip() or f"heed {command[1]}: exit status {error.returncode}"
        raise LabError(said.replace(str(HERE) + os.sep, "")) from None


def heed_json(*arguments, expected=(0,)):
    """Returns the output of `heed ARGUMENTS --json` as dicts, lists and numbers."""
    return json.loads(heed(*arguments, "--json", expected=expected))


def place(name):
    """Returns the path runs/NAME for a notebook's output, after removing existing files."""
    path = Path("runs") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def setting(keys):
    """Converts {"data.limit": 100} to heed's options: --set data.limit=100."""
    return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


def train(experiment, name, keys={}, *options):
    """Trains into runs/NAME, prints a line for each epoch and the test, and returns the run's directory."""
    run = place(name)
    heed("train", experiment, "--run", run, *setting(keys), *options)
    for row in metrics(run, "train"):
        print(f"epoch {row['epoch']:.0f}  loss {row['loss']:.4f}  accuracy {row['accuracy']:7.2%}")
    for row in metrics(run, "test"):
        print(f"test     loss {row['loss']:.4f}  accuracy {row['accuracy']:7.2%}")
    return run


def metrics(run, kind):
    """Returns the rows of one kind (step, train, valid, test) in a run's metrics.csv, each as a dict of numbers."""
    with open(Path(run) / "metrics.csv", newline="", encoding="utf-8") as file:
        return [{key: float(value) for key, value in row.items() if key != "kind" and value}
                for row in csv.DictReader(file) if row["kind"] == kind]


def plugin(header):
    """Compiles a mechanism (`heed plugin`), prints the compiler's warnings, and returns the argument for --plugin.
    Raises LabError with the compiler's first error."""
    shared = place(Path(header).stem + ".so")
    for line in heed("plugin", header, "-o", shared).splitlines():
        if line.startswith("warning: "):
            print(line)
    return shared


def report(mechanism, shared):
    """Returns gradcheck's output for a plugin's mechanism, without the table."""
    lines = heed("gradcheck", mechanism, "--plugin", shared, expected=(0, 1)).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("operation "))
    end = next(i for i, line in enumerate(lines) if " gradients agree " in line)
    return "\n".join(lines[:begin] + lines[end:])


def probe(mechanism, given, *options):
    """Runs `heed probe attention` in double on {name: (shape, numbers)}, and returns its results in the same form."""
    source, made = place("probe-in.safetensors"), place("probe-out.safetensors")
    tensors.write(source, {name: numpy.array(x, float).reshape(shape) for name, (shape, x) in given.items()})
    heed("probe", "attention", source, made, "--mechanism", mechanism, *options)
    return {name: (list(x.shape), x.ravel().tolist()) for name, x in tensors.read(made).items()}


def picture(path, width=None):
    """Shows a PNG file."""
    from IPython.display import Image, display

    display(Image(filename=str(path), width=width))


def graph(dot):
    """Draws a graph in Graphviz's language, or prints its text if Graphviz is not installed."""
    if not shutil.which("dot"):
        print(dot)
        return None
    from IPython.display import SVG

    return SVG(subprocess.run(["dot", "-Tsvg"], input=dot, check=True, capture_output=True, text=True).stdout)


def table(header, *rows):
    """Prints rows under a header: numbers right-aligned, words left-aligned."""
    lines = [[str(cell) for cell in line] for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    right = [all(isinstance(row[column], (int, float)) for row in rows) for column in range(len(header))]
    for line in lines:
        cells = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right))
        print("  ".join(cells).rstrip())


def student(name):
    """Loads the student's labs/NAME/NAME.py as a module, read from the file each time."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), Path("labs") / name / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def attempt():
    """with lab.attempt(): ... prints a note if the block needs a part of the lab that is not written yet."""
    try:
        yield
    except (NotImplementedError, LabError) as error:
        if "not yet" not in str(error):
            raise
        print("not yet: this needs your solution")


def check(name):
    """Prints heed's verdict on each point of labs/NAME. Inputs are random, with a fixed seed."""
    print(heed("lab", "check", Path("labs") / name, "--seed", 1, expected=(0, 1)))
