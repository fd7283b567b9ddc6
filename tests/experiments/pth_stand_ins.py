"""Writes files as torch.save writes them, without PyTorch: stand-ins for tests/experiments/pth_to_safetensors.cpp.

    pth_stand_ins.py DIRECTORY
"""
import argparse
import os
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict

torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules["torch"], sys.modules["torch._utils"] = torch, utils


class FloatStorage:
    __module__ = "torch"


def _rebuild_tensor_v2(*arguments):
    return arguments


FloatStorage.__qualname__ = "FloatStorage"
_rebuild_tensor_v2.__module__ = "torch._utils"
torch.FloatStorage, utils._rebuild_tensor_v2 = FloatStorage, _rebuild_tensor_v2


class Tensor:
    """The elements from `offset` on of the storage `key`, which has `count` elements."""

    def __init__(self, key, count, offset, shape, strides):
        self.arguments = (Storage(key, count), offset, shape, strides, False, OrderedDict())

    def __reduce__(self):
        return _rebuild_tensor_v2, self.arguments


class Storage:
    def __init__(self, key, count):
        self.id = ("storage", FloatStorage, key, "cpu", count)


class Code:
    def __reduce__(self):
        return os.system, ("touch " + os.path.join(sys.argv[1], "RUN"),)


class Pickler(pickle.Pickler):
    def persistent_id(self, item):
        return item.id if isinstance(item, Storage) else None


def save(name, value, compression=zipfile.ZIP_STORED):
    path = os.path.join(sys.argv[1], name)
    with zipfile.ZipFile(path, "w", compression) as archive:
        with archive.open("archive/data.pkl", "w") as file:
            Pickler(file, 2).dump(value)
        archive.writestr("archive/data/0", struct.pack("<6f", 0, 1, 2, 3, 4, 5))
        archive.writestr("archive/data/1", bytes(4000))
    return path


weights = OrderedDict(a=Tensor("0", 6, 0, (2, 3), (3, 1)), turned=Tensor("0", 6, 0, (3, 2), (1, 3)))
save("plain.pth", weights)
save("nested.pth", {"model": {"state_dict": weights}, "epoch": 3, "lr": [0.1]})
save("beside.pth", {"state_dict": weights, "best_acc1": Tensor("0", 6, 5, (), ()), "epoch": 3})
save("two.pth", {"student": weights, "teacher": weights})
save("code.pth", {"model": weights, "args": Code()})
save("beyond.pth", OrderedDict(a=Tensor("0", 6, 1, (2, 3), (3, 1))))
save("repeated.pth", OrderedDict(a=Tensor("0", 6, 0, (1 << 20, 1 << 20), (0, 0))))
save("missing.pth", OrderedDict(a=Tensor("7", 6, 0, (6,), (1,))))
save("longer.pth", OrderedDict(a=Tensor("0", 7, 0, (7,), (1,))))
save("list.pth", [1, 2])
save("compressed.pth", weights, zipfile.ZIP_DEFLATED)
cycle = {}
cycle["model"] = cycle
save("cycle.pth", cycle)
cycle = OrderedDict(weights)
cycle["inner"] = cycle
save("inner_cycle.pth", cycle)
laughs = OrderedDict(weights)
for _ in range(60):
    laughs = OrderedDict(weights, a=laughs, b=laughs)
save("laughs.pth", laughs)
whole = Tensor("1", 1000, 0, (1000,), (1,))
save("views.pth", {"model": {str(i): whole for i in range(1000)}})
save("namespace.pth", {"model": weights, "args": argparse.Namespace(lr=0.1)})
save("bomb.pth", b"\0" * (1 << 24), zipfile.ZIP_DEFLATED)
os.mkfifo(os.path.join(sys.argv[1], "pipe.pth"))
with zipfile.ZipFile(os.path.join(sys.argv[1], "control.pth"), "w") as archive:
    archive.writestr("archive/data.pkl", b"\x80\x02c\x1b[31mos\nsystem\n.")
with open(save("half.pth", weights), "r+b") as file:
    file.truncate(200)
with open(os.path.join(sys.argv[1], "old.pth"), "wb") as file:
    pickle.dump({"x": Code()}, file)
