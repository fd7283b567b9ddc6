"""What a Vision Transformer costs: multiplications in the forward pass of one picture.

Counted are those of matrix products, as papers do. A model is a dictionary like the [model] of models/vit-micro.toml:
image, channels, patch, dim, depth, heads, hidden, classes. It has a class token, a learned position for each token, and
biases in all linear layers.
"""


def linear(rows, inputs, outputs):
    """x W^T + b for x [rows, inputs] and W [outputs, inputs]."""
    raise NotImplementedError("not yet")


def attention(tokens, dim, heads):
    """q k^T and A v, in all heads of one block. dim channels are divided among the heads."""
    raise NotImplementedError("not yet")


def exponentials(tokens, heads):
    """How many exponentials the softmax of one block takes."""
    raise NotImplementedError("not yet")


def layers(model):
    """Multiplications by layer, those of all blocks together: a dictionary with the keys "patch_embed.proj",
    "attn.qkv", "attn", "attn.proj", "mlp.fc1", "mlp.fc2" and "head", as heed calls them."""
    raise NotImplementedError("not yet")

def parameters(model):
    """How many numbers the model learns."""
    raise NotImplementedError("not yet")


def even(dim, hidden):
    """The number of tokens at which attention() takes as many multiplications as the linear layers of a block."""
    raise NotImplementedError("not yet")
