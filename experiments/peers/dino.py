"""A training step of DINO (self-distillation without labels) in PyTorch: dino-micro.

Each image has two large views of 32 x 32 and four small ones of 16 x 16. A step consists of the teacher's forward pass
without gradients, the student's forward and backward passes, batched by view size, clipping of each tensor, AdamW, and the
updates of centre and teacher. Definitions follow include/heed/nn/dino.h and src/train/tasks/dino.cpp.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

from families import Block, ChannelNorm, SoftmaxAttention, adamw


class Backbone(nn.Module):
    """The class token after the final norm; positions of smaller images are interpolated."""

    def __init__(self, channels=3, side=8, patch=4, width=64, depth=4, heads=4, hidden=128):
        super().__init__()
        self.side = side
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, 1 + side * side, width))
        self.blocks = nn.Sequential(*(Block(width, hidden, SoftmaxAttention(width, heads)) for _ in range(depth)))
        self.norm = ChannelNorm(width)

    def positions_of(self, side):
        if side == self.side:
            return self.positions
        grid = self.positions[:, 1:].transpose(1, 2).reshape(1, -1, self.side, self.side)
        grid = F.interpolate(grid, size=(side, side), mode="bicubic", align_corners=False)
        return torch.cat([self.positions[:, :1], grid.flatten(2).transpose(1, 2)], 1)

    def forward(self, images):
        x = self.patches(images)
        positions = self.positions_of(x.shape[-1])
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x.flatten(2).transpose(1, 2)], 1) + positions
        return self.norm(self.blocks(x))[:, 0]


class Dino(nn.Module):
    """A backbone and its head; the input is a list of views, one tensor per size."""

    def __init__(self, width=64, hidden=256, bottleneck=64, outputs=1024):
        super().__init__()
        self.backbone = Backbone(width=width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                                 nn.Linear(hidden, bottleneck))
        self.last_layer = nn.utils.weight_norm(nn.Linear(bottleneck, outputs, bias=False))
        self.last_layer.weight_g.data.fill_(1)
        self.last_layer.weight_g.requires_grad = False

    def forward(self, views):
        x = torch.cat([self.backbone(of_size) for of_size in views])
        return self.last_layer(F.normalize(self.mlp(x), dim=-1))


def loss_of(student, teacher, center, batch, student_temp=0.1, teacher_temp=0.04):
    """Returns the mean of -q_i . log p_j over the teacher's views i, the student's views j except i, and the batch."""
    q = torch.softmax((teacher - center) / teacher_temp, -1).chunk(2)
    log_p = torch.log_softmax(student / student_temp, -1).split(batch)
    pairs = [-(q[i] * log_p[j]).sum(-1).mean() for i in range(2) for j in range(len(log_p)) if i != j]
    return sum(pairs) / len(pairs)


def training_step(student, batch):
    """Returns a function that performs one training step."""
    teacher = Dino().requires_grad_(False)
    teacher.load_state_dict(student.state_dict())
    trained = [p for p in student.parameters() if p.requires_grad]
    of_teacher = [t for t, s in zip(teacher.parameters(), student.parameters()) if s.requires_grad]
    decayed = [p for name, p in student.named_parameters()
               if p.requires_grad and p.dim() > 1 and not name.endswith(("class_token", "positions"))]
    others = [p for p in trained if all(p is not other for other in decayed)]
    optimizer = adamw([{"params": decayed, "weight_decay": 0.04}, {"params": others, "weight_decay": 0}])
    center = torch.zeros(1024)
    large, small = torch.randn(2 * batch, 3, 32, 32), torch.randn(4 * batch, 3, 16, 16)

    def step():
        with torch.no_grad():
            answers = teacher([large])
        loss = loss_of(student([large, small]), answers, center, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for p in trained:
            nn.utils.clip_grad_norm_(p, 3)
        optimizer.step()
        with torch.no_grad():
            center.mul_(0.9).add_(answers.mean(0), alpha=0.1)
            torch._foreach_mul_(of_teacher, 0.99)
            torch._foreach_add_(of_teacher, trained, alpha=0.01)

    return step
