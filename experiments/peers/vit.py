"""Vision Transformers in PyTorch: vit-micro and its larger relatives.

The block is the one in dino.py; in adder models, linear layers and scores are l1 distances, by torch.cdist.
"""
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

from dino import Backbone
from families import ChannelNorm, SoftmaxAttention, adamw, heads_of, merged

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
    """softmax(-|q - k|_1 / sqrt d) v + v; separate q, k and v layers; norms after each layer and after the attention."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.norms = AdderLinear(width, 3 * width), nn.ModuleList(ChannelNorm(width) for _ in range(3))
        self.norm, self.proj = ChannelNorm(width), nn.Sequential(AdderLinear(width, width), ChannelNorm(width))

    def forward(self, x):
        q, k, v = (heads_of(norm(part), self.heads) for norm, part in zip(self.norms, self.qkv(x).chunk(3, -1)))
        scores = -torch.cdist(q.contiguous(), k.contiguous(), p=1.0) * q.shape[-1] ** -0.5
        return self.proj(self.norm(merged(torch.softmax(scores, -1) @ v + v)))


def make(name, adder=False, fused=False):
    """Returns the model with this name, from images [B, C, H, W] to logits. `fused`: see families.attentions()."""
    channels, image, patch, width, depth, heads, hidden, classes = SIZES[name]
    backbone = Backbone(channels, image // patch, patch, width, depth, heads, hidden)
    if adder:
        for block in backbone.blocks:
            block.attention = AdderAttention(width, heads)
            block.mlp = nn.Sequential(AdderLinear(width, hidden), ChannelNorm(hidden),
                                      AdderLinear(hidden, width), ChannelNorm(width))
    for module in backbone.modules():
        if isinstance(module, SoftmaxAttention):
            module.fused = fused
    return nn.Sequential(backbone, nn.Linear(width, classes))


def make_of_timm(name):
    """Returns timm's version of the same model. Raises ImportError if timm is not installed."""
    from timm.models.vision_transformer import VisionTransformer
    channels, image, patch, width, depth, heads, hidden, classes = SIZES[name]
    return VisionTransformer(img_size=image, patch_size=patch, in_chans=channels, num_classes=classes, embed_dim=width,
                             depth=depth, num_heads=heads, mlp_ratio=hidden / width)


def images(name, batch):
    return torch.randn(batch, SIZES[name][0], SIZES[name][1], SIZES[name][1])


def training_step(model, inputs, autocast=False, call=None):
    """Returns a function that performs one training step; `call` is the model in its form to run, e.g. compiled."""
    optimizer = adamw(model.parameters())
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
