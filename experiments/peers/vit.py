#!/usr/bin/env python3
"""Times Vision Transformers in PyTorch: the peer of `heed bench models/vit-micro.toml` and its larger relatives.

Random images, float32. Prints JSON: parameters, which are heed's, and images per second of training steps (forward,
backward, AdamW) or of inference, the median of several measurements.

    experiments/peers/vit.py --models deit-tiny --batch 16 --threads 2
    build/heed bench models/deit-tiny.toml --batch 16 --threads 2

Needs PyTorch (1.13 or later), which heed does not. The block is that of dino.py; with --adder, linear layers and scores are
l1 distances, by torch.cdist.
"""
import argparse
import contextlib
import json

import torch
import torch.nn as nn
import torch.nn.functional as F

from dino import Backbone
from families import calls_per_second

SIZES = {  # channels, side of the image, side of a patch, width, depth, heads, hidden, classes
    "vit-micro": (1, 28, 4, 64, 4, 4, 128, 10),
    "deit-tiny-p4": (3, 32, 4, 192, 12, 3, 768, 10),
    "deit-tiny": (3, 224, 16, 192, 12, 3, 768, 1000),
    "deit-small": (3, 224, 16, 384, 12, 6, 1536, 1000),
}


class AdderLinear(nn.Module):
    """y = -sum_k |x_k - w_k| + b."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(outputs, inputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        y = self.bias - torch.cdist(x.flatten(0, -2), self.weight, p=1.0)
        return y.unflatten(0, x.shape[:-1])


class AdderAttention(nn.Module):
    """softmax(-|q - k|_1 / sqrt d) v + v."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = AdderLinear(width, 3 * width), AdderLinear(width, width)

    def forward(self, x):
        B, N, D = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)
        scores = -torch.cdist(q.contiguous(), k.contiguous(), p=1.0) * (D // self.heads) ** -0.5
        return self.proj((torch.softmax(scores, -1) @ v + v).transpose(1, 2).reshape(B, N, D))


def make(name, adder=False):
    """The model of a name: logits of images [B, C, H, W]."""
    channels, image, patch, width, depth, heads, hidden, classes = SIZES[name]
    backbone = Backbone(channels, image // patch, patch, width, depth, heads, hidden)
    if adder:
        for block in backbone.blocks:
            block.attention = AdderAttention(width, heads)
            block.mlp = nn.Sequential(AdderLinear(width, hidden), nn.GELU(), AdderLinear(hidden, width))
    return nn.Sequential(backbone, nn.Linear(width, classes))


def images(name, batch):
    return torch.randn(batch, SIZES[name][0], SIZES[name][1], SIZES[name][1])


def training_step(model, inputs, autocast=False, call=None):
    """A function that makes a step; `call` is the model as it is to be run, compiled for instance."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    labels = torch.randint(10, (inputs.shape[0],))

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
            loss = F.cross_entropy((call or model)(inputs), labels)
        loss.backward()
        optimizer.step()

    return step


def inference_step(model, inputs, call=None):
    model.eval()

    @torch.inference_mode()
    def step():
        (call or model)(inputs)

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="vit-micro", help="some of " + ", ".join(SIZES))
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--mode", choices=["train", "infer"], default="train")
    parser.add_argument("--adder", action="store_true", help="distances instead of products")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="for each model")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    for name in arguments.models.split(","):
        if name not in SIZES:
            parser.error(f"unknown model '{name}'; it must be one of {', '.join(SIZES)}")
        model, inputs = make(name, arguments.adder), images(name, arguments.batch)
        step = (training_step if arguments.mode == "train" else inference_step)(model, inputs)
        print(json.dumps({"model": name, "parameters": sum(p.numel() for p in model.parameters()),
                          "batch": arguments.batch, "mode": arguments.mode, "threads": arguments.threads,
                          "torch": torch.__version__,
                          "img_s": round(arguments.batch * calls_per_second(step, arguments.seconds), 1)}))


if __name__ == "__main__":
    main()
