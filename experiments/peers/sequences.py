"""Small models of sequences in PyTorch: text-micro, listops-micro and density-micro.

Definitions follow src/nn/sequence.cpp; the mechanisms, softmax and AFT-local, are in PyTorch's fast formulation:
AFT's sums over keys are one product for all images of a batch. Text is generated token by token, one text at a time,
with saved keys and values.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

from families import Block, ChannelNorm, SoftmaxAttention, adamw, merged, operands_of


class Softmax(SoftmaxAttention):
    def __init__(self, width, heads, tokens, causal):
        super().__init__(width, heads)
        mask = torch.full((tokens, tokens), -torch.inf).triu(1) if causal else torch.zeros(tokens, tokens)
        self.register_buffer("mask", mask, persistent=False)
        self.causal = causal

    def forward(self, x):
        q, k, v = operands_of(self.qkv(x), self.heads)
        if self.fused:
            return self.proj(merged(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)))
        scores = q.shape[-1] ** -0.5 * q @ k.transpose(-1, -2)
        if self.causal:
            scores = scores + self.mask
        return self.proj(merged(torch.softmax(scores, -1) @ v))

    def start(self, capacity):
        """Allocates keys and values of `capacity` tokens."""
        width = self.proj.in_features
        self.keys = torch.zeros(self.heads, capacity, width // self.heads)
        self.values = torch.zeros_like(self.keys)

    def next(self, x, t):
        """Returns the result for token t with input x [1, D]."""
        q, k, v = self.qkv(x).reshape(3, self.heads, 1, -1)
        self.keys[:, t:t + 1], self.values[:, t:t + 1] = k, v
        scores = q.shape[-1] ** -0.5 * q @ self.keys[:, :t + 1].transpose(-1, -2)
        return self.proj((torch.softmax(scores, -1) @ self.values[:, :t + 1]).reshape(1, -1))


class AftLocal(nn.Module):
    """y_t = sigmoid(q_t) * sum_s exp(k_s + w_ts) v_s / sum_s exp(k_s + w_ts), s <= t; w_ts = u_t . p_s if t - s is less
    than the window, else 0."""

    def __init__(self, width, tokens, window, rank):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.u, self.p = (nn.Parameter(0.01 * torch.randn(tokens, rank)) for _ in range(2))
        past = torch.ones(tokens, tokens).tril()
        self.register_buffer("past", past, persistent=False)
        self.register_buffer("near", past.triu(1 - window), persistent=False)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)                                     # [B, N, D]
        weights = self.past * torch.exp(self.near * (self.u @ self.p.t()))     # [N, N]
        e = torch.exp(k - k.amax(1, keepdim=True))
        sums = weights @ torch.cat([e * v, e], -1)
        above, below = sums.chunk(2, -1)
        return self.proj(torch.sigmoid(q) * above / below)


class SequenceBlock(Block):
    def next(self, x, t):
        x = x + self.attention.next(self.norm1(x), t)
        return x + self.mlp(self.norm2(x))


class Sequence(nn.Module):
    """Predicts the next token or, with `classes`, the class of a sequence, by the mean over its tokens."""

    def __init__(self, vocab, tokens, width, depth, hidden, attention, classes=None, start=False):
        super().__init__()
        self.vocab, self.classes = vocab, classes
        self.embedding = nn.Embedding(vocab, width)
        self.start = nn.Parameter(torch.zeros(1, 1, width)) if start else None
        self.position = nn.Parameter(0.02 * torch.randn(1, tokens, width))
        self.blocks = nn.ModuleList(SequenceBlock(width, hidden, attention()) for _ in range(depth))
        self.norm, self.head = ChannelNorm(width), nn.Linear(width, classes or vocab)

    def forward(self, tokens):
        x = self.embedding(tokens)
        if self.start is not None:
            x = torch.cat([self.start.expand(x.shape[0], -1, -1), x[:, :-1]], 1)
        x = x + self.position
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x.mean(1) if self.classes else x)

    def next(self, token, t):
        """Returns the logits [1, V] after token t."""
        x = self.embedding.weight[token:token + 1] + self.position[0, t:t + 1]
        for block in self.blocks:
            x = block.next(x, t)
        return self.head(self.norm(x))


def text_micro():
    return Sequence(256, 128, 128, 4, 512, lambda: Softmax(128, 4, 128, True))


def listops_micro():
    return Sequence(15, 32, 64, 2, 128, lambda: Softmax(64, 4, 32, False), classes=10)


def density_micro():
    return Sequence(16, 196, 64, 4, 128, lambda: AftLocal(64, 196, 28, 16), start=True)


MODELS = {"text-micro": text_micro, "listops-micro": listops_micro, "density-micro": density_micro}


def training_step(model, batch):
    """Returns a function that performs one training step."""
    optimizer = adamw(model.parameters())
    length = model.position.shape[1]
    inputs = torch.randint(model.vocab, (batch, length))
    targets = torch.randint(model.classes or model.vocab, (batch,) if model.classes else (batch, length))

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten()).backward()
        optimizer.step()

    return step


@torch.inference_mode()
def write(model):
    """Samples a token for each position from the softmax of the preceding logits."""
    length = model.position.shape[1]
    for block in model.blocks:
        block.attention.start(length)
    token = 10
    for t in range(length):
        token = int(torch.multinomial(torch.softmax(model.next(token, t), -1), 1))
