"""Softmax attention in NumPy, compared with heed's on the same tensors. The environment variable HEED is the path of
the program (default: heed). Prints (X: a number that varies):

  out    differs by X
  map    differs by X
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

sys.path.append(str(Path(__file__).resolve().parent.parent / "notebooks"))
import tensors  # noqa: E402

random = numpy.random.default_rng(1)
given = {name: random.standard_normal((2, 3, 7, 4)) for name in ("q", "k", "v")}  # [B, H, N, d]
with tempfile.TemporaryDirectory() as place:
    tensors.write(f"{place}/in", given)
    subprocess.run([os.environ.get("HEED", "heed"), "probe", "attention", "--mechanism", "softmax",
                    f"{place}/in", f"{place}/out"], check=True)
    found = tensors.read(f"{place}/out")

scores = given["q"] @ given["k"].swapaxes(-1, -2) / 2  # sqrt(d) = 2
weights = numpy.exp(scores - scores.max(-1, keepdims=True))
expected = {"map": weights / weights.sum(-1, keepdims=True)}
expected["out"] = expected["map"] @ given["v"]
for name in ("out", "map"):
    difference = abs(found[name] - expected[name]).max()
    print(f"{name:6} differs by {difference:.1e}")
    assert difference < 1e-14, "larger than the rounding error of sums of a few terms"
