"""Common code of the plotting scripts: tables, command line, styles of lines, and saving of figures."""

import argparse
import csv
import math
import os
import subprocess
import sys
from pathlib import Path

MARKERS = {"circle": "o", "square": "s", "up": "^", "diamond": "D", "down": "v", "cross": "x", "left": "<", "plus": "+"}
WIDTH = 7  # inches of a figure; its text can still be read on a phone


class BadInput(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message}; see {self.prog} --help")


def run(main):
    """Runs main(); reports bad input in one line, with exit status 2."""
    try:
        main()
    except BadInput as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        sys.exit(2)


def read_table(path, texts, numbers, may_be_empty=()):
    """Returns the rows of a CSV file with a header, as (line number, {column: value}). An empty number is NaN."""
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
    """Returns the program: $HEED, this build's, or the one installed with these scripts."""
    if os.environ.get("HEED"):
        return os.environ["HEED"]
    root = Path(__file__).resolve().parents[2]
    built = root / "build" / "heed"
    return str(built if built.exists() else root.parent.parent / "bin" / "heed")


def line_styles(names, program=None):
    """Returns each name's colour, marker and dashes, as in heed's charts: `heed list --style`."""
    program = program or heed_program()
    try:
        lines = subprocess.run([program, "list", *(f"--style={name}" for name in names)], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadInput(f"{program}: cannot list styles: {error}; HEED names the program") from None
    styles = []
    for line in lines.stdout.splitlines():
        colour, marker, dashes = line.split("\t")
        pattern = "-" if dashes == "none" else (0, [float(length) / 2 for length in dashes.split()])
        styles.append(dict(color=colour, marker=MARKERS[marker], linestyle=pattern, linewidth=1.6, markersize=5))
    return styles


def mark_some(count):
    """Returns the plot option that draws markers at about ten of `count` points."""
    return dict(markevery=(0, max(1, count // 10)))


def legend_below(figure, handles, columns=1, title=None):
    """Puts a legend below all panels of a figure and reduces their height accordingly. All handles have labels."""
    breaks = sum(handle.get_label().count("\n") for handle in handles)
    height = (0.22 * math.ceil(len(handles) / columns) + 0.19 * breaks + (0.5 if title else 0.15)) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, height, 1, 1 - height))
    figure.legend(handles=handles, loc="lower left", ncols=columns, title=title, frameon=False, alignment="left", fontsize=11)


def load_pyplot():
    try:
        import matplotlib
    except ImportError:
        raise BadInput("matplotlib is missing; on Debian: apt-get install python3-matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Makes files reproducible: no date, no random names.
    pyplot.rcParams.update({"font.size": 12, "svg.hashsalt": "heed", "axes.titlesize": 12, "axes.titlelocation": "left"})
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
