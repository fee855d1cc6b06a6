"""Muon (Jordan et al., 2024): momentum whose update is made orthogonal by a Newton-Schulz iteration."""

import torch
from torch import distributed


def orthogonalise(matrix, steps=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix.bfloat16()
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """For the matrices inside the layers; embeddings and norms go to AdamW.

    Several processes with the same gradients share the work: each makes every
    `world`-th update and sends it to the others."""

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.0, rank=0, world=1):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.rank, self.world = rank, world

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            updates = [torch.empty_like(p, dtype=torch.bfloat16) for p in parameters]
            for i, (parameter, update) in enumerate(zip(parameters, updates)):
                state = self.state[parameter]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(parameter)
                velocity = state["momentum"]
                velocity.lerp_(parameter.grad, 1 - group["momentum"])
                if i % self.world == self.rank:
                    update.copy_(orthogonalise(parameter.grad.lerp(velocity, group["momentum"])))
            if self.world > 1:
                self.exchange(updates)
            for parameter, update in zip(parameters, updates):
                scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-group["lr"] * scale)

    def exchange(self, updates):
        for sender in range(self.world):
            share = updates[sender :: self.world]
            flat = torch.cat([update.flatten() for update in share])
            distributed.broadcast(flat.view(torch.uint8), sender)
            for update, part in zip(share, flat.split([update.numel() for update in share])):
                update.copy_(part.view_as(update))
