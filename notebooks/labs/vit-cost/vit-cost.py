"""The cost of a Vision Transformer: multiplications in the forward pass of one image.

Only matrix products count, as in papers. A model is a dictionary like the [model] of models/vit-micro.toml:
image, channels, patch, dim, depth, heads, hidden, classes. It has a class token, a learned position for each token, and
biases in all linear layers.
"""


def linear(rows, inputs, outputs):
    """Multiplications in x W^T + b, for x [rows, inputs] and W [outputs, inputs]."""
    raise NotImplementedError("not yet")


def attention(tokens, dim, heads):
    """Multiplications in q k^T and A v, in all heads of one block. The heads divide dim channels equally."""
    raise NotImplementedError("not yet")


def exponentials(tokens, heads):
    """Number of exponentials in the softmax of one block."""
    raise NotImplementedError("not yet")


def layers(model):
    """Multiplications by layer, summed over all blocks: a dictionary with heed's layer names as keys,
    "patch_embed.proj", "attn.qkv", "attn", "attn.proj", "mlp.fc1", "mlp.fc2" and "head"."""
    raise NotImplementedError("not yet")

def parameters(model):
    """Number of learned values of the model."""
    raise NotImplementedError("not yet")


def even(dim, hidden):
    """The number of tokens at which attention() has as many multiplications as the linear layers of a block."""
    raise NotImplementedError("not yet")
