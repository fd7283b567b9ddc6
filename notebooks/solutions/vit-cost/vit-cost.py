"""The cost of a Vision Transformer: multiplications in the forward pass of one image.

Only matrix products count, as in papers. A model is a dictionary like the [model] of models/vit-micro.toml:
image, channels, patch, dim, depth, heads, hidden, classes. It has a class token, a learned position for each token, and
biases in all linear layers.
"""


def linear(rows, inputs, outputs):
    """Multiplications in x W^T + b, for x [rows, inputs] and W [outputs, inputs]."""
    return rows * inputs * outputs


def attention(tokens, dim, heads):
    """Multiplications in q k^T and A v, in all heads of one block. The heads divide dim channels equally."""
    width = dim // heads
    return heads * 2 * tokens * tokens * width


def exponentials(tokens, heads):
    """Number of exponentials in the softmax of one block."""
    return heads * tokens * tokens


def patches(model):
    return (model["image"] // model["patch"]) ** 2


def layers(model):
    """Multiplications by layer, summed over all blocks: a dictionary with heed's layer names as keys,
    "patch_embed.proj", "attn.qkv", "attn", "attn.proj", "mlp.fc1", "mlp.fc2" and "head"."""
    N, D, depth, hidden = patches(model) + 1, model["dim"], model["depth"], model["hidden"]
    return {"patch_embed.proj": linear(patches(model), model["channels"] * model["patch"] ** 2, D),
            "attn.qkv": depth * linear(N, D, 3 * D),
            "attn": depth * attention(N, D, model["heads"]),
            "attn.proj": depth * linear(N, D, D),
            "mlp.fc1": depth * linear(N, D, hidden),
            "mlp.fc2": depth * linear(N, hidden, D),
            "head": linear(1, D, model["classes"])}


def parameters(model):
    """Number of learned values of the model."""
    def layer(inputs, outputs):
        return inputs * outputs + outputs

    D, hidden = model["dim"], model["hidden"]
    norm = 2 * D
    block = norm + layer(D, 3 * D) + layer(D, D) + norm + layer(D, hidden) + layer(hidden, D)
    tokens = D + (patches(model) + 1) * D  # the class token, and a position for each token
    return (layer(model["channels"] * model["patch"] ** 2, D) + tokens + model["depth"] * block + norm +
            layer(D, model["classes"]))


def even(dim, hidden):
    """The number of tokens at which attention() has as many multiplications as the linear layers of a block."""
    # 2 N^2 D = N D (3 D + D) + 2 N D hidden
    return 2 * dim + hidden
