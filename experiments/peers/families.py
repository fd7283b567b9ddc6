"""Small host models in PyTorch: xcit-micro, cvt-micro and soft-micro, as defined in src/nn/xcit.cpp, cvt.cpp,
soft_pyramid.cpp."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def adamw(parameters, **settings):
    """Returns AdamW, fused if this version of PyTorch supports it on CPUs."""
    parameters = list(parameters)
    settings = {"lr": 1e-3, "weight_decay": 0.05} | settings
    try:
        return torch.optim.AdamW(parameters, fused=True, **settings)
    except (TypeError, RuntimeError):
        return torch.optim.AdamW(parameters, **settings)


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of tokens [B, N, D]."""

    def __init__(self, width, eps=1e-6):
        super().__init__(width, eps=eps)


class FeedForward(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def tokens(image):
    """[B, C, h, w] to [B, h w, C]."""
    return image.flatten(2).transpose(1, 2)


def image_of(x, side):
    """[B, side^2, C] to [B, C, side, side]."""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], side, side)


def heads_of(x, heads):
    """[B, N, H d] to [B, H, N, d]."""
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def operands_of(x, heads):
    """q, k and v [B, H, N, d] from [B, N, 3 H d], by a single permutation."""
    return x.reshape(x.shape[0], x.shape[1], 3, heads, -1).permute(2, 0, 3, 1, 4)


def merged(x):
    """[B, H, N, d] to [B, N, H d]."""
    return x.transpose(1, 2).flatten(2)


def softmax_attention(q, k, v, scale):
    return torch.softmax(scale * q @ k.transpose(-1, -2), -1) @ v


def attentions():
    """Returns {name: fused} for the forms of softmax attention that this version of PyTorch has: written out as its
    equation, or as a single fused function."""
    fused = {"fused attention": True} if hasattr(F, "scaled_dot_product_attention") else {}
    return {"": False, **fused}


class SoftmaxAttention(nn.Module):
    fused = False

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = operands_of(self.qkv(x), self.heads)
        if self.fused:
            return self.proj(merged(F.scaled_dot_product_attention(q, k, v)))
        return self.proj(merged(softmax_attention(q, k, v, q.shape[-1] ** -0.5)))


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width, hidden, attention, eps=1e-6):
        super().__init__()
        self.norm1, self.norm2 = ChannelNorm(width, eps), ChannelNorm(width, eps)
        self.attention, self.mlp = attention, FeedForward(width, hidden)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def convolution_and_norm(inputs, outputs, kernel, stride, padding, bias, groups=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=bias, groups=groups),
                         nn.BatchNorm2d(outputs))


# XCiT

class Xca(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x):
        q, k, v = operands_of(self.qkv(x), self.heads).transpose(-1, -2)  # [B, H, d, N]
        scores = self.temperature * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-1, -2)
        return self.proj(merged((torch.softmax(scores, -1) @ v).transpose(-1, -2)))


class LocalPatchInteraction(nn.Module):
    def __init__(self, width, side):
        super().__init__()
        self.side = side
        self.conv1 = nn.Conv2d(width, width, 3, 1, 1, groups=width)
        self.norm = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, groups=width)

    def forward(self, x):
        return tokens(self.conv2(self.norm(F.gelu(self.conv1(image_of(x, self.side))))))


class XcitBlock(nn.Module):
    def __init__(self, width, heads, hidden, side):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (ChannelNorm(width) for _ in range(3))
        self.attention, self.local = Xca(width, heads), LocalPatchInteraction(width, side)
        self.mlp = FeedForward(width, hidden)
        self.gamma1, self.gamma2, self.gamma3 = (nn.Parameter(torch.ones(width)) for _ in range(3))

    def forward(self, x):
        x = x + self.gamma1 * self.attention(self.norm1(x))
        x = x + self.gamma3 * self.local(self.norm3(x))
        return x + self.gamma2 * self.mlp(self.norm2(x))


class ClassAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in (self.q(x[:, :1]), self.k(x), self.v(x)))
        return self.proj(merged(softmax_attention(q, k, v, q.shape[-1] ** -0.5)))


class ClassAttentionBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1, self.norm2 = ChannelNorm(width), ChannelNorm(width)
        self.attention, self.mlp = ClassAttention(width, heads), FeedForward(width, hidden)
        self.gamma1, self.gamma2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = self.norm1(x)
        x = self.norm2(x + self.gamma1 * torch.cat([self.attention(y), y[:, 1:]], 1))
        return torch.cat([x[:, :1] + self.gamma2 * self.mlp(x[:, :1]), 2 * x[:, 1:]], 1)


class Xcit(nn.Module):
    def __init__(self, side=7, width=64, depth=4, heads=4, hidden=128):
        super().__init__()
        self.stem = nn.Sequential(convolution_and_norm(1, width // 2, 3, 2, 1, False), nn.GELU(),
                                  convolution_and_norm(width // 2, width, 3, 2, 1, False))
        self.position = nn.Conv2d(64, width, 1)
        place = 2 * math.pi * torch.arange(1, side + 1) / (side + 1e-6)
        angle = place[:, None] / 10000 ** (2 * (torch.arange(32) // 2) / 32)
        code = torch.where(torch.arange(32) % 2 == 0, angle.sin(), angle.cos()).t()  # [32, side]
        self.register_buffer("code", torch.cat([code[:, :, None].expand(-1, -1, side),
                                                code[:, None, :].expand(-1, side, -1)])[None].contiguous())
        self.blocks = nn.Sequential(*(XcitBlock(width, heads, hidden, side) for _ in range(depth)))
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.class_block = ClassAttentionBlock(width, heads, hidden)
        self.norm, self.head = ChannelNorm(width), nn.Linear(width, 10)

    def forward(self, images):
        x = self.blocks(tokens(self.stem(images) + self.position(self.code)))
        x = self.class_block(torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1))
        return self.head(self.norm(x)[:, 0])


# CvT

class ConvolutionalAttention(nn.Module):
    def __init__(self, width, heads, side, class_token):
        super().__init__()
        self.heads, self.side, self.class_token = heads, side, class_token
        self.convolutions = nn.ModuleList(convolution_and_norm(width, width, 3, stride, 1, False, width)
                                          for stride in (1, 2, 2))
        self.linears = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        image = image_of(x[:, 1:] if self.class_token else x, self.side)
        parts = []
        for convolution, linear in zip(self.convolutions, self.linears):
            part = tokens(convolution(image))
            parts.append(heads_of(linear(torch.cat([x[:, :1], part], 1) if self.class_token else part), self.heads))
        q, k, v = parts
        return self.proj(merged(softmax_attention(q, k, v, q.shape[-1] ** -0.5)))


class Cvt(nn.Module):
    def __init__(self, sides=(14, 7, 4), widths=(32, 64, 96), depths=(1, 1, 2), heads=(2, 4, 6), hidden=(64, 128, 192)):
        super().__init__()
        self.sides, inputs = sides, (1,) + widths[:-1]
        self.embeddings = nn.ModuleList(nn.Conv2d(i, o, 3, 2, 1) for i, o in zip(inputs, widths))
        self.norms = nn.ModuleList(ChannelNorm(width, 1e-5) for width in widths)
        self.stages = nn.ModuleList(
            nn.Sequential(*(
                Block(widths[s], hidden[s], ConvolutionalAttention(widths[s], heads[s], sides[s], s == 2), eps=1e-5)
                for _ in range(depths[s])))
            for s in range(3))
        self.class_token = nn.Parameter(torch.zeros(1, 1, widths[-1]))
        self.norm, self.head = ChannelNorm(widths[-1], 1e-5), nn.Linear(widths[-1], 10)

    def forward(self, image):
        for s in range(3):
            x = self.norms[s](tokens(self.embeddings[s](image)))
            if s == 2:
                x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1)
            x = self.stages[s](x)
            if s < 2:
                image = image_of(x, self.sides[s])
        return self.head(self.norm(x)[:, 0])


# SOFT's pyramid

class NewtonInverse(torch.autograd.Function):
    """Inverse of symmetric A by Newton-Raphson, with the gradient of an exact inverse, -X^T dX X^T."""

    @staticmethod
    def forward(ctx, A):
        X = A * (2 / A.sum(-1).amax(-1)[..., None, None] ** 2)
        for _ in range(20):
            X = 2 * X - X @ A @ X
        ctx.save_for_backward(X)
        return X

    @staticmethod
    def backward(ctx, dX):
        X, = ctx.saved_tensors
        return -X.transpose(-1, -2) @ dX @ X.transpose(-1, -2)


def gaussian(x, y):
    """exp(-|x_i - y_j|^2 / (2 sqrt(d)))."""
    squares = (x * x).sum(-1)[..., :, None] + (y * y).sum(-1)[..., None, :] - 2 * x @ y.transpose(-1, -2)
    return torch.exp(-squares / (2 * math.sqrt(x.shape[-1])))


class SoftAttention(nn.Module):
    def __init__(self, width, heads, side, vconv):
        super().__init__()
        self.heads, self.side, d = heads, side, width // heads
        self.qv, self.proj = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.landmark_norm = nn.LayerNorm(d)
        self.vconv = nn.Parameter(torch.randn(heads, 1, vconv, vconv) / vconv)

    def forward(self, x):
        q, v = (heads_of(part, self.heads) for part in self.qv(x).chunk(2, -1))
        B, H, N, d = q.shape
        grid = q.transpose(-1, -2).reshape(B, H * d, self.side, self.side)
        cells = F.adaptive_avg_pool2d(grid, 4).reshape(B, H, d, 16).transpose(-1, -2)
        landmarks = d ** 0.25 * F.gelu(self.landmark_norm(cells * d ** -0.25))
        P = gaussian(landmarks, q)
        A = gaussian(landmarks, landmarks) + 0.01 * torch.eye(16)
        out = P.transpose(-1, -2) @ (NewtonInverse.apply(A) @ (P @ v))
        image = v.transpose(-1, -2).reshape(B, H * d, self.side, self.side)
        filters = self.vconv.repeat_interleave(d, 0)
        beside = F.conv2d(image, filters, padding=filters.shape[-1] // 2, groups=H * d)
        return self.proj(merged(out) + tokens(beside))


class PostNormBlock(Block):
    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class SoftPyramid(nn.Module):
    def __init__(self, sides=(14, 7, 4), widths=(32, 64, 96), depths=(1, 1, 2), heads=(2, 4, 6), hidden=(64, 128, 192)):
        super().__init__()
        self.sides, stem = sides, 16

        def unit(i, o, stride):
            return nn.Sequential(convolution_and_norm(i, o, 3, stride, 1, True), nn.ReLU())

        self.embeddings = nn.ModuleList([nn.Sequential(unit(1, stem, 2), unit(stem, stem, 1), unit(stem, widths[0], 1)),
                                         unit(widths[0], widths[1], 2), unit(widths[1], widths[2], 2)])
        self.class_token = nn.Parameter(torch.zeros(1, 1, widths[2]))
        self.positions = nn.ParameterList(nn.Parameter(torch.randn(1, sides[s] ** 2 + (s == 2), widths[s]) * 0.02)
                                          for s in range(3))

        def block(s):
            if s == 2:
                return Block(widths[s], hidden[s], SoftmaxAttention(widths[s], heads[s]))
            return PostNormBlock(widths[s], hidden[s], SoftAttention(widths[s], heads[s], sides[s], (5, 3)[s]), eps=1e-5)

        self.stages = nn.ModuleList(nn.Sequential(*(block(s) for _ in range(depths[s]))) for s in range(3))
        self.norm, self.head = ChannelNorm(widths[2]), nn.Linear(widths[2], 10)

    def forward(self, image):
        for s in range(3):
            x = tokens(self.embeddings[s](image))
            if s == 2:
                x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1)
            x = self.stages[s](x + self.positions[s])
            if s < 2:
                image = image_of(x, self.sides[s])
        return self.head(self.norm(x)[:, 0])


MODELS = {"xcit-micro": Xcit, "cvt-micro": Cvt, "soft-micro": SoftPyramid}
