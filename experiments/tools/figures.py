"""Common code of the plotting scripts: tables, command line, colours, and saving of figures."""

import argparse
import csv
import math
import os
import sys
from pathlib import Path

# Okabe and Ito's colours, distinguishable by the colour-blind, without the yellow, which is pale on white paper.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")


class BadInput(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; see {self.prog} --help")


def run(main):
    """Reports bad input in one line, with exit status 2."""
    try:
        main()
    except BadInput as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        sys.exit(2)


def read_table(path, texts, numbers, may_be_empty=()):
    """Rows of a CSV file with a header, as (line number, {column: value}). An empty number is NaN."""
    rows = []
    try:
        with open(path, newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            missing = [name for name in (*texts, *numbers) if name not in (table.fieldnames or [])]
            if missing:
                raise BadInput(f"{path}: has no column '{missing[0]}'; expected the columns {','.join((*texts, *numbers))}")
            for row in table:
                values = {name: row[name] for name in texts}
                for name in numbers:
                    try:
                        values[name] = math.nan if row[name] == "" and name in may_be_empty else float(row[name])
                    except (TypeError, ValueError):
                        raise BadInput(f"{path}:{table.line_num}: {name} is '{row[name] or ''}'; expected a number") from None
                rows.append((table.line_num, values))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise BadInput(f"{path}: not a CSV file") from None
    return rows


def heed_program():
    """The program of this build, or the one installed with these scripts."""
    root = Path(__file__).resolve().parents[2]
    built = root / "build" / "heed"
    return str(built if built.exists() else root.parent.parent / "bin" / "heed")


def load_pyplot():
    try:
        import matplotlib
    except ImportError:
        raise BadInput("matplotlib is missing; on Debian: apt-get install python3-matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Makes files reproducible: no date, no random names.
    pyplot.rcParams.update({"font.size": 11, "svg.hashsalt": "heed", "axes.titlesize": 12, "axes.titlelocation": "left"})
    return pyplot


def tidy(axes):
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def check_name(output):
    if output.suffix not in (".png", ".svg"):
        raise BadInput(f"{output}: expected a name that ends in .png or .svg")


def save(figure, output, dpi=144):
    """Writes PNGs with a palette, which makes them a third as large. The file is replaced atomically."""
    temporary = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        figure.savefig(temporary, format=output.suffix[1:], dpi=dpi, metadata={"Date": None} if output.suffix == ".svg" else None)
        if output.suffix == ".png":
            from PIL import Image  # matplotlib requires it

            Image.open(temporary).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(temporary, format="png", optimize=True)
        os.replace(temporary, output)
    except OSError as error:
        raise BadInput(f"{output}: cannot write: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
