"""Trains the model within a time budget: warm-up, a constant rate, then a linear decay to zero.

The loss is on what the assistant says. Runs on a GPU where there is one, else
on the CPU in bfloat16. Under torchrun, several processes share each step: on a
busy machine one thread in each of two beats two threads that wait for each
other in every operation.
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch import distributed
from torch.nn import functional as F

from induction import plant_induction
from model import ModelConfig, Qwen3
from muon import Muon
from reading import Reader

WARM_UP = 0.02
AVERAGE_STEPS = 80


def parse():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", help="folder that prepare.py wrote")
    arguments.add_argument("out", help="folder for checkpoints")
    arguments.add_argument("--minutes", type=float, required=True)
    arguments.add_argument("--decay", type=float, default=0.35, help="share of the time in which the rate falls to zero")
    arguments.add_argument("--config", help="a config.json to take the shape from")
    arguments.add_argument("--resume", help="checkpoint to go on from")
    arguments.add_argument("--plant", action="store_true", help="begin as induction.py says")
    arguments.add_argument("--read-from", type=float, default=0.0, help="share of the corpus to skip")
    arguments.add_argument("--batch-tokens", type=int, default=4096)
    arguments.add_argument("--accumulate", type=int, default=2)
    arguments.add_argument("--muon-rate", type=float, default=0.006)
    arguments.add_argument("--adam-rate", type=float, default=0.0015)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--no-compile", action="store_true")
    return arguments.parse_args()


def rate_at(progress, decay, resumed):
    if progress > 1 - decay:
        return max(0.0, (1 - progress) / decay)
    return 1.0 if resumed else min(1.0, 0.01 + progress / WARM_UP)


def main():
    options = parse()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if world > 1:
        distributed.init_process_group("gloo")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Qwen3(ModelConfig.load(options.config) if options.config else ModelConfig())
    if options.plant:
        plant_induction(model)
    model = model.to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters on {device}", flush=True)
    matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.dim() != 2 or "embed" in name]
    optimizers = [
        Muon(matrices, lr=options.muon_rate, rank=rank, world=world),
        torch.optim.AdamW(others, lr=options.adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    base_rates = [options.muon_rate, options.adam_rate]
    if options.resume:
        saved = torch.load(options.resume, map_location=device)
        model.load_state_dict(saved["model"])
        for optimizer, state in zip(optimizers, saved["optimizers"]):
            optimizer.load_state_dict(state)
    if not options.no_compile:
        for layer in model.model.layers:
            layer.compile(dynamic=True)

    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    average = [parameter.detach().clone() for parameter in model.parameters()]

    def save(name):
        if rank != 0:
            return
        names = [name for name, _ in model.named_parameters()]
        state = {"model": model.state_dict(), "average": dict(zip(names, average)), "optimizers": [o.state_dict() for o in optimizers]}
        torch.save(state, out / name)

    reader = Reader(options.data, options.batch_tokens, options.seed, options.read_from, rank, world)
    began = reported = time.monotonic()
    step = tokens = reported_tokens = 0
    losses = []
    decaying = False
    while (progress := agree((time.monotonic() - began) / 60 / options.minutes, world)) < 1:
        if not decaying and progress > 1 - options.decay:
            decaying = True
            save("before-decay.pt")
        factor = rate_at(progress, options.decay, bool(options.resume))
        for optimizer, rate in zip(optimizers, base_rates):
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
        batches = [reader.batch(progress) for _ in range(options.accumulate)]
        spoken = agree(sum(float(weights.sum()) for _, _, weights in batches), world, add=True)
        loss = sum(backward(model, batch, spoken, device) for batch in batches)
        if world > 1:
            share_gradients(model)
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch._foreach_lerp_(average, [p.detach() for p in model.parameters()], 1 / AVERAGE_STEPS)
        losses.append(agree(loss, world, add=True))
        step += 1
        tokens += world * sum(ids.numel() for ids, _, _ in batches)
        if step % 50 == 0 and rank == 0:
            now = time.monotonic()
            pace = (tokens - reported_tokens) / (now - reported)
            print(f"step {step} {progress:.1%} loss {sum(losses) / len(losses):.4f} {tokens / 1e6:.1f} M tokens, {pace:.0f} a second, read {reader.next}", flush=True)
            reported, reported_tokens, losses = now, tokens, []
        if step % 250 == 0:
            save("latest.pt")
    save("final.pt")


def agree(value, world, add=False):
    """The first process's value, or the sum over all: the processes must take the same turns."""
    if world == 1:
        return value
    shared = torch.tensor([value], dtype=torch.float64)
    distributed.all_reduce(shared) if add else distributed.broadcast(shared, 0)
    return shared.item()


def share_gradients(model):
    parameters = [p for p in model.parameters() if p.grad is not None]
    flat = torch.cat([p.grad.flatten() for p in parameters])
    distributed.all_reduce(flat)
    for parameter, gradient in zip(parameters, flat.split([p.numel() for p in parameters])):
        parameter.grad.copy_(gradient.view_as(parameter))


def backward(model, batch, spoken, device):
    """Adds this batch's gradients; returns its share of the step's mean loss."""
    ids, targets, weights = (tensor.to(device, non_blocking=True) for tensor in batch)
    chosen = weights.flatten().nonzero().squeeze(1)
    with torch.autocast(device, torch.bfloat16):
        hidden = model.hidden(ids).flatten(0, 1).index_select(0, chosen)
        logits = model.logits(hidden)
    loss = F.cross_entropy(logits.float(), targets.flatten().index_select(0, chosen), reduction="sum") / spoken
    loss.backward()
    return loss.item()


if __name__ == "__main__":
    main()
