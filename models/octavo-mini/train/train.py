"""Trains the model within a time budget: warm-up, a constant rate, then a linear decay to zero.

The loss is on what the assistant says. Runs on a GPU where there is one, else
on the CPU in bfloat16.
"""

import argparse
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from model import ModelConfig, Qwen3
from muon import Muon
from reading import Reader

WARM_UP = 0.02


def parse():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", help="folder that prepare.py wrote")
    arguments.add_argument("out", help="folder for checkpoints")
    arguments.add_argument("--minutes", type=float, required=True)
    arguments.add_argument("--decay", type=float, default=0.35, help="share of the time in which the rate falls to zero")
    arguments.add_argument("--config", help="a config.json to take the shape from")
    arguments.add_argument("--resume", help="checkpoint to go on from")
    arguments.add_argument("--batch-tokens", type=int, default=4096)
    arguments.add_argument("--accumulate", type=int, default=2)
    arguments.add_argument("--muon-rate", type=float, default=0.02)
    arguments.add_argument("--adam-rate", type=float, default=0.003)
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
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Qwen3(ModelConfig.load(options.config) if options.config else ModelConfig()).to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters on {device}", flush=True)
    matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.dim() != 2 or "embed" in name]
    optimizers = [
        Muon(matrices, lr=options.muon_rate),
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
    save = lambda name: torch.save({"model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers]}, out / name)
    reader = Reader(options.data, options.batch_tokens, options.seed)
    began = reported = time.monotonic()
    step = tokens = reported_tokens = 0
    losses = []
    decaying = False
    while (progress := (time.monotonic() - began) / 60 / options.minutes) < 1:
        if not decaying and progress > 1 - options.decay:
            decaying = True
            save("before-decay.pt")
        factor = rate_at(progress, options.decay, bool(options.resume))
        for optimizer, rate in zip(optimizers, base_rates):
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
        batches = [reader.batch(progress) for _ in range(options.accumulate)]
        spoken = sum(float(weights.sum()) for _, _, weights in batches)
        loss = sum(backward(model, batch, spoken, device) for batch in batches)
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss)
        step += 1
        tokens += sum(ids.numel() for ids, _, _ in batches)
        if step % 50 == 0:
            now = time.monotonic()
            pace = (tokens - reported_tokens) / (now - reported)
            print(f"step {step} {progress:.1%} loss {sum(losses) / len(losses):.4f} {tokens / 1e6:.1f} M tokens, {pace:.0f} a second, read {reader.next}", flush=True)
            reported, reported_tokens, losses = now, tokens, []
        if step % 500 == 0:
            save("latest.pt")
    save("final.pt")


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
