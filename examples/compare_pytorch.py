"""A Vision Transformer in PyTorch, compared with heed's operation by operation (docs/comparing.md). Without an
argument, the two agree up to rounding. The argument `axis`, `scale` or `gradient` inserts an error into the attention,
and `heed diff` names the first affected tensor. The environment variable HEED is the path of the program (default:
heed). Requires PyTorch 1.13 or later.

    python3 compare_pytorch.py axis
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "notebooks"))
import tensors  # noqa: E402

found = {}  # by name, in the order of computation


def keep(name, x):
    """Records x as NAME.out and, in the backward pass, its gradient as NAME.grad; returns x."""
    found[name + ".out"] = x.detach().numpy().copy()
    x.register_hook(lambda dx: found.update({name + ".grad": dx.numpy().copy()}))
    return x


def watch(model):
    """Records the output of every module of a model, by the module's name."""
    for name, module in model.named_modules():
        module.register_forward_hook(lambda module, inputs, out, name=name: keep(name, out))


class SoftmaxWithoutScale(torch.autograd.Function):
    """softmax(S / sqrt(d)) with an erroneous gradient that lacks 1 / sqrt(d)."""

    @staticmethod
    def forward(ctx, S, d):
        A = torch.softmax(S / d**0.5, -1)
        ctx.save_for_backward(A)
        return A

    @staticmethod
    def backward(ctx, dA):
        (A,) = ctx.saved_tensors
        return A * (dA - (A * dA).sum(-1, keepdim=True)), None


class Attention(nn.Module):
    def __init__(self, name, dim, heads, error):
        super().__init__()
        self.name, self.heads, self.error = name, heads, error
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        B, N, D = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # [B, H, N, d] each
        d = D // self.heads
        S = keep(self.name + "/S", q @ k.transpose(-1, -2))
        if self.error == "gradient":
            A = SoftmaxWithoutScale.apply(S, d)
        else:
            A = torch.softmax(S / (d if self.error == "scale" else d**0.5), -2 if self.error == "axis" else -1)
        out = keep(self.name + "/A", A) @ v
        return self.proj(keep(self.name + "/softmax", out.transpose(1, 2).reshape(B, N, D)))


class Block(nn.Module):
    def __init__(self, name, dim, heads, hidden, error):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(name + ".attn", dim, heads, error)
        self.mlp = nn.Sequential()
        self.mlp.add_module("fc1", nn.Linear(dim, hidden))
        self.mlp.add_module("act", nn.GELU())
        self.mlp.add_module("fc2", nn.Linear(hidden, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Uses timm's tensor names, as heed does, so that tensors recorded by watch() have heed's names."""

    def __init__(self, error, dim=64, depth=2, heads=4, hidden=128, patch=4, patches=49, classes=10):
        super().__init__()
        self.patch_embed = nn.Sequential()
        self.patch_embed.add_module("proj", nn.Conv2d(1, dim, patch, patch))
        self.cls_token, self.pos_embed = (nn.Parameter(torch.randn(1, n, dim)) for n in (1, patches + 1))
        self.blocks = nn.Sequential(*(Block(f"blocks.{i}", dim, heads, hidden, error) for i in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim, eps=1e-6), nn.Linear(dim, classes)

    def forward(self, images):
        x = self.patch_embed(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(len(x), -1, -1), x), 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x)[:, 0]))


torch.manual_seed(1)
torch.set_default_dtype(torch.float64)  # makes rounding far smaller than any mistake
model = VisionTransformer(error=sys.argv[1] if len(sys.argv) > 1 else "none")
images, labels = torch.randn(3, 1, 28, 28), torch.tensor([1, 2, 3])
watch(model)
nn.functional.cross_entropy(model(images), labels).backward()
found.update({name + ".grad": weight.grad.numpy() for name, weight in reversed(list(model.named_parameters()))})

with tempfile.TemporaryDirectory() as place:
    heed = os.environ.get("HEED", "heed")
    tensors.write(f"{place}/pytorch", found)
    tensors.write(f"{place}/weights", {name: x.numpy() for name, x in model.state_dict().items()})
    tensors.write(f"{place}/in", {"images": images.numpy(), "labels": labels.numpy()})
    subprocess.run([heed, "probe", "model", ROOT / "models/vit-micro.toml", "--set", "model.depth=2", "--weights",
                    f"{place}/weights", f"{place}/in", f"{place}/out", "--trace", f"{place}/trace"], check=True)
    diff = [heed, "diff", f"{place}/trace", f"{place}/pytorch", "--common", "--tolerance", "1e-9"]
    sys.exit(subprocess.run(diff).returncode)
