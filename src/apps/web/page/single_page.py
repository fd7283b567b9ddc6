#!/usr/bin/env python3
"""Writes DIRECTORY/heed.html, the page of a built DIRECTORY in one file: single_page.py DIRECTORY MODULE...

Modules are concatenated in the order of their dependencies, without imports and exports: no two modules may define the
same name. Files are inlined in base64; files that are not compressed are first compressed by gzip
(src/apps/web/page/assets.js reads them).
"""
import base64
import gzip
import pathlib
import re
import sys


def joined(directory, modules):
    text = ""
    for module in modules:
        source = (directory / f"{module}.js").read_text()
        source = re.sub(r"^import [^;]*;\n", "", source, flags=re.M)
        text += re.sub(r"^export ", "", source, flags=re.M)
    return text


def inlined(directory, path):
    data = (directory / path).read_bytes()
    packed = path.suffix == ".gz"
    body = base64.b64encode(data if packed else gzip.compress(data, 9, mtime=0)).decode()
    return f'<script type="text/plain" id="asset:{path}"{"" if packed else " data-packed"}>{body}</script>\n'


def main():
    directory, modules = pathlib.Path(sys.argv[1]), sys.argv[2:]
    files = [pathlib.Path(name) for name in ("heed.js", "worker.js", "heed.wasm")]
    for folder in ("images", "trained"):
        files += sorted(path.relative_to(directory) for path in (directory / folder).rglob("*") if path.suffix != ".txt" and path.is_file())
    page = (directory / "index.html").read_text()
    style = "".join((directory / name).read_text() for name in ("colours.css", "page.css"))
    page = re.sub(r'<link rel="stylesheet".*\n', "", page)
    page = page.replace("</head>", f"<style>\n{style}</style>\n</head>")
    licence = (directory / "images/LICENCE.txt").read_bytes()
    # Browsers do not show the content of a link to a data: address, but can download it.
    page = page.replace('href="images/LICENCE.txt"', 'download="LICENCE.txt" href="data:text/plain;base64,' +
                        base64.b64encode(licence).decode() + '"')
    page = page[:page.index("<script>")] + "".join(inlined(directory, path) for path in files) + \
        f'<script type="module">\n{joined(directory, modules)}</script>\n</body>\n</html>\n'
    (directory / "heed.html").write_text(page)


if __name__ == "__main__":
    main()
