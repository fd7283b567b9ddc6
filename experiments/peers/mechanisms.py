#!/usr/bin/env python3
"""Attention mechanisms in PyTorch, each in its fast formulation: peers for `ratios`, timed by pytorch.py.

The definitions follow src/attention/NAME.cpp, and the sizes are the same as in heed's comparisons: AFT's biases have
rank 128; windows have 8 tokens or 5 x 5; SOFT has 49 landmarks; Performer has 64 features, Nystroemformer 64 landmarks
and Linformer 64 projected tokens; lambda's keys have 16 channels; Reformer has 2 rounds with chunks of 64. The number
of tokens must be a multiple of 64, and a square for mechanisms on a grid.
"""
import math

import torch
import torch.nn.functional as F

PEERS = {}


class Peer:
    """A mechanism with parameters for H heads, N tokens and d channels per head."""

    def __init__(self, H, N, d):
        self.trained = {}

    def operands(self, H, N, d):
        """q, k, v and the gradient of the result; unused ones are skipped in the backward pass."""
        return [torch.randn(H, N, d) for _ in range(4)]

    def __call__(self, q, k, v):
        raise NotImplementedError


def peer(name):
    def add(kind):
        PEERS[name] = kind
        return kind
    return add


def scale(q):
    return q.shape[-1] ** -0.5


def transpose(x):
    return x.transpose(-1, -2)


def normalised_product(f, g, v, eps):
    """Returns out_i = f_i S / (f_i z + eps), with S = sum_j g_j v_j^T and z = sum_j g_j."""
    return (f @ (transpose(g) @ v)) / (f @ g.sum(-2).unsqueeze(-1) + eps)


class OfAllChannels(Peer):
    """A single head of all channels: q, k, v [N, D]."""

    def operands(self, H, N, d):
        return [torch.randn(N, H * d) for _ in range(4)]


def squared_distances(x, y):
    """Computes the distances by a product, as is usual in PyTorch, although small distances lose digits."""
    return (x * x).sum(-1, keepdim=True) + (y * y).sum(-1).unsqueeze(-2) - 2 * x @ transpose(y)


def gaussian(x, y):
    return torch.exp(squared_distances(x, y) * (-0.5 * scale(x)))


@peer("softmax")
class Softmax(Peer):
    def __call__(self, q, k, v):
        return torch.softmax(q @ transpose(k) * scale(q), -1) @ v


@peer("relu")
class Relu(Peer):
    def __call__(self, q, k, v):
        return F.relu(q @ transpose(k) * scale(q)) @ v / k.shape[-2]


@peer("sima")
class Sima(Peer):
    def __call__(self, q, k, v):
        q, k = F.normalize(q, p=1, dim=-2), F.normalize(k, p=1, dim=-2)
        return q @ (transpose(k) @ v)


@peer("aft-simple")
class AftSimple(OfAllChannels):
    def __call__(self, q, k, v):
        return torch.sigmoid(q) * (torch.softmax(k, 0) * v).sum(0, keepdim=True)


@peer("aft-full")
class AftFull(OfAllChannels):
    def __init__(self, H, N, d):
        self.trained = {"u": torch.randn(N, 128) * 0.1, "p": torch.randn(N, 128) * 0.1}

    def biases(self):
        return self.trained["u"] @ self.trained["p"].t()

    def __call__(self, q, k, v):
        w = self.biases()
        e, f = torch.exp(w - w.amax(1, keepdim=True)), torch.exp(k - k.amax(0, keepdim=True))
        return torch.sigmoid(q) * (e @ (f * v)) / (e @ f)


@peer("aft-local")
class AftLocal(AftFull):
    def __init__(self, H, N, d):
        super().__init__(H, N, d)
        place = torch.arange(N)
        self.band = ((place[:, None] - place[None]).abs() < 8).float()

    def biases(self):
        return super().biases() * self.band


@peer("aft-conv")
class AftConv(Peer):
    """A depth-wise convolution of exp(k) v and exp(k) with exp(w) - 1, and sums over all keys. k has one channel per head."""

    def __init__(self, H, N, d):
        self.trained = {"w": torch.randn(H, 5, 5)}

    def operands(self, H, N, d):
        return [torch.randn(H, N, d), torch.randn(H, N, 1), torch.randn(H, N, d), torch.randn(H, N, d)]

    def __call__(self, q, k, v):
        H, N, d = v.shape
        side = math.isqrt(N)
        f = torch.exp(k - k.amax(1, keepdim=True))
        x = torch.cat([f * v, f], -1)                                    # [H, N, d + 1]
        w = (torch.exp(self.trained["w"]) - 1).repeat_interleave(d + 1, 0).unsqueeze(1)
        near = F.conv2d(transpose(x).reshape(1, H * (d + 1), side, side), w, padding=2, groups=H * (d + 1))
        y = transpose(near.reshape(H, d + 1, N)) + x.sum(1, keepdim=True)
        return torch.sigmoid(q) * y[..., :d] / y[..., d:]


@peer("soft")
class Soft(Peer):
    """49 pooled landmarks, 20 Newton-Raphson steps, differentiated; queries serve as keys."""

    def __call__(self, q, k, v):
        H, N, d = q.shape
        side = math.isqrt(N)
        landmarks = transpose(F.adaptive_avg_pool2d(transpose(q).reshape(H, d, side, side), 7).reshape(H, d, 49))
        A, P = gaussian(landmarks, landmarks), gaussian(landmarks, q)
        X = A * (1.8 / A.sum(-2).amax(-1) ** 2)[:, None, None]
        for _ in range(20):
            X = 2 * X - X @ A @ X
        return transpose(P) @ (X @ (P @ v))


@peer("soft-exact")
class SoftExact(Peer):
    def __call__(self, q, k, v):
        return gaussian(q, q) @ v


@peer("adder")
class Adder(Peer):
    def __call__(self, q, k, v):
        d_a = 2 * q.shape[-1] * (1 - 2 / math.pi)
        return torch.softmax(torch.cdist(q, k, p=1) * -(d_a ** -0.5), -1) @ v + v


@peer("xca")
class Xca(Peer):
    def __init__(self, H, N, d):
        self.trained = {"temperature": torch.ones(H, 1, 1)}

    def __call__(self, q, k, v):
        q, k = F.normalize(q, dim=-2), F.normalize(k, dim=-2)
        A = torch.softmax(self.trained["temperature"] * (transpose(q) @ k), -1)
        return v @ transpose(A)


@peer("efficient")
class Efficient(Peer):
    def __call__(self, q, k, v):
        return torch.softmax(q, -1) @ (transpose(torch.softmax(k, -2)) @ v)


@peer("linear")
class Linear(Peer):
    def __call__(self, q, k, v):
        return normalised_product(F.elu(q) + 1, F.elu(k) + 1, v, 1e-6)


@peer("performer")
class Performer(Peer):
    def __init__(self, H, N, d):
        self.trained = {}
        blocks = [torch.linalg.qr(torch.randn(d, d))[0] for _ in range((64 + d - 1) // d)]
        self.omega = torch.cat(blocks)[:64] * torch.randn(64, d).norm(dim=1, keepdim=True)

    def __call__(self, q, k, v):
        def exponents(x):
            x = x * x.shape[-1] ** -0.25
            return x @ self.omega.t(), (x * x).sum(-1, keepdim=True) / 2
        u, h = exponents(q)
        f = torch.exp(u - h - u.amax(-1, keepdim=True)) + 1e-4
        u, h = exponents(k)
        g = torch.exp(u - h - u.amax((-1, -2), keepdim=True)) + 1e-4
        return normalised_product(f, g, v, 0)


@peer("linformer")
class Linformer(Peer):
    def __init__(self, H, N, d):
        self.trained = {"e": torch.randn(64, N) / 8, "f": torch.randn(64, N) / 8}

    def __call__(self, q, k, v):
        k, v = self.trained["e"] @ k, self.trained["f"] @ v
        return torch.softmax(q @ transpose(k) * scale(q), -1) @ v


@peer("nystrom")
class Nystrom(Peer):
    def __call__(self, q, k, v):
        H, N, d = q.shape
        q_mean, k_mean = (x.reshape(H, 64, N // 64, d).mean(2) for x in (q, k))
        left = torch.softmax(q @ transpose(k_mean) * scale(q), -1)
        A = torch.softmax(q_mean @ transpose(k_mean) * scale(q), -1)
        right = torch.softmax(q_mean @ transpose(k) * scale(q), -1)
        identity = torch.eye(64)
        Z = transpose(A) / (A.sum(-2).amax(-1) * A.sum(-1).amax(-1))[:, None, None]
        for _ in range(6):
            AZ = A @ Z
            Z = Z / 4 @ (13 * identity - AZ @ (15 * identity - AZ @ (7 * identity - AZ)))
        return left @ (Z @ (right @ v))


@peer("cosformer")
class Cosformer(Peer):
    def __call__(self, q, k, v):
        return normalised_product(F.relu(q), F.relu(k), v, 1e-6)


@peer("cosformer-1d")
class Cosformer1d(Peer):
    def __init__(self, H, N, d):
        self.trained = {}
        angle = torch.arange(N).unsqueeze(1) * (math.pi / 2 / N)
        self.cos, self.sin = angle.cos(), angle.sin()

    def __call__(self, q, k, v):
        f, g = (torch.cat([x * self.cos, x * self.sin], -1) for x in (F.relu(q), F.relu(k)))
        return normalised_product(f, g, v, 1e-6)


@peer("synthesizer")
class Synthesizer(Peer):
    def __init__(self, H, N, d):
        self.trained = {"w1": torch.randn(d, d) * 0.02, "b1": torch.zeros(d), "w2": torch.randn(d, N) * 0.02,
                        "b2": torch.zeros(N)}

    def __call__(self, q, k, v):
        own = self.trained
        return torch.softmax(F.relu(q @ own["w1"] + own["b1"]) @ own["w2"] + own["b2"], -1) @ v


@peer("synthesizer-random")
class SynthesizerRandom(Peer):
    def __init__(self, H, N, d):
        self.trained = {"logits": torch.randn(H, N, N) * 0.02}

    def __call__(self, q, k, v):
        return torch.softmax(self.trained["logits"], -1) @ v


@peer("window")
class Window(Peer):
    """|t - s| < 8: blocks of 8 queries with the 24 surrounding keys."""

    def __init__(self, H, N, d):
        self.trained = {}
        query, key = torch.arange(8)[:, None] + 8, torch.arange(24)[None]
        self.mask = torch.zeros(N // 8, 8, 24).masked_fill((query - key).abs() >= 8, -math.inf)
        self.mask[0, :, :8] = -math.inf
        self.mask[-1, :, 16:] = -math.inf

    def __call__(self, q, k, v):
        H, N, d = q.shape

        def around(x):
            x = F.pad(x, (0, 0, 8, 8)).reshape(H, N // 8 + 2, 8, d)
            return torch.cat([x[:, :-2], x[:, 1:-1], x[:, 2:]], 2)
        scores = q.reshape(H, N // 8, 8, d) @ transpose(around(k)) * scale(q) + self.mask
        return (torch.softmax(scores, -1) @ around(v)).reshape(H, N, d)


@peer("window-2d")
class Window2d(Peer):
    """Cells of 8 x 8 in a square grid."""

    def __call__(self, q, k, v):
        H, N, d = q.shape
        n = math.isqrt(N) // 8

        def cells(x):
            return x.reshape(H, n, 8, n, 8, d).transpose(2, 3).reshape(H, n * n, 64, d)
        q, k, v = cells(q), cells(k), cells(v)
        y = torch.softmax(q @ transpose(k) * scale(q), -1) @ v
        return y.reshape(H, n, n, 8, 8, d).transpose(2, 3).reshape(H, N, d)


@peer("lambda")
class Lambda(Peer):
    """Without positions: q [H, N, 16], and k [1, N, 16] and v [1, N, d], shared by all heads."""

    def operands(self, H, N, d):
        return [torch.randn(H, N, 16), torch.randn(1, N, 16), torch.randn(1, N, d), torch.randn(H, N, d)]

    def __call__(self, q, k, v):
        return q @ (transpose(torch.softmax(k, -2)) @ v)


@peer("lambda-positions")
class LambdaPositions(Lambda):
    def __init__(self, H, N, d):
        self.trained = {"e": torch.randn(N, N, 16)}

    def __call__(self, q, k, v):
        content = transpose(torch.softmax(k, -2)) @ v               # [1, c, d]
        position = transpose(self.trained["e"]) @ v                 # [N, c, d]
        return (q.transpose(0, 1) @ (content + position)).transpose(0, 1)


@peer("reformer")
class Reformer(Peer):
    """2 rounds, chunks of 64, one bucket per chunk; queries serve as keys."""

    def __init__(self, H, N, d):
        self.trained = {}
        self.rotations = torch.randn(2, d, max(N // 64 // 2, 1))

    def __call__(self, q, k, v):
        H, N, d = q.shape
        u = torch.einsum("hnd,rdb->rhnb", q.detach(), self.rotations)
        order = torch.sort(torch.cat([u, -u], -1).argmax(-1), dim=-1, stable=True)[1]         # [2, H, N]
        places = torch.argsort(order, -1)

        def chunks(x):
            x = x.expand(2, *x.shape).gather(2, order.unsqueeze(-1).expand(-1, -1, -1, x.shape[-1]))
            return x.reshape(2, H, N // 64, 64, x.shape[-1])

        def seen(x):
            return torch.cat([x.roll(1, 2), x], 3)
        keys, values = seen(chunks(F.normalize(q, dim=-1))), seen(chunks(v))
        scores = chunks(q) @ transpose(keys) * scale(q)
        token = order.reshape(2, H, N // 64, 64)
        itself = token.unsqueeze(-1) == seen(token).unsqueeze(-2)
        scores = scores.masked_fill(itself, -5e4)
        sums = torch.logsumexp(scores, -1, keepdim=True)
        out = (torch.exp(scores - sums) @ values).reshape(2, H, N, d)
        out = out.gather(2, places.unsqueeze(-1).expand(-1, -1, -1, d))
        weights = torch.softmax(sums.reshape(2, H, N, 1).gather(2, places.unsqueeze(-1)), 0)
        return (weights * out).sum(0)


def step(name, tokens, backward):
    """Returns a function that runs the forward pass without gradients, or the backward pass, for one image with 192
    channels in 3 heads."""
    H, d = 3, 64
    mechanism = PEERS[name](H, tokens, d)
    q, k, v, gradient = mechanism.operands(H, tokens, d)
    if not backward:
        def forward():
            with torch.no_grad():
                mechanism(q, k, v)
        return forward
    leaves = [q, k, v, *mechanism.trained.values()]
    for leaf in leaves:
        leaf.requires_grad_(True)
    out = mechanism(q, k, v)
    return lambda: torch.autograd.grad(out, leaves, gradient, retain_graph=True, allow_unused=True)
