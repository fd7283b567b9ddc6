"""Reads and writes safetensors files as dicts of NumPy arrays: IN and OUT of `heed probe`, weights of runs.

    tensors.write("in.safetensors", {"q": q, "k": k, "v": v})   # [B, H, N, d] each, of float32 or float64
    subprocess.run("heed probe attention --mechanism sima in.safetensors out.safetensors".split(), check=True)
    tensors.read("out.safetensors")["map"]
"""

import json
import struct

import numpy

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}
NAMES = {numpy.dtype(text): name for name, text in TYPES.items()}


def write(path, arrays):
    """Writes a dict of arrays to a file."""
    arrays = {name: numpy.asarray(x) for name, x in arrays.items()}
    header, end = {}, 0
    for name, x in arrays.items():
        header[name] = {"dtype": NAMES[x.dtype], "shape": x.shape, "data_offsets": [end, end := end + x.nbytes]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # aligns the elements to 8 bytes
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in arrays.values()))


def read(path):
    """Returns the arrays of a file by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*x["data_offsets"])], TYPES[x["dtype"]]).reshape(x["shape"])
            for name, x in header.items()}
