"""Causal attention for training on a CPU, forward and backward by blocks of queries.

PyTorch's own flash attention took more than half of a step at this model's
shapes (heads of 64, contexts of some hundred tokens); written out as batched
products it takes a quarter of that time. A block of queries meets only the keys
up to its end, so little is computed above the diagonal; the probabilities are
kept for the backward pass, which a small model can afford.
"""

from functools import cache

import torch

BLOCK = 128


@cache
def future(size, dtype):
    """What to add to the scores of a block against its own keys: -inf where the key comes later."""
    return torch.full((size, size), float("-inf"), dtype=dtype).triu(1)


class BlockAttention(torch.autograd.Function):
    """q: [batch, heads, length, dim], k and v: [batch, kv_heads, length, dim] → like q."""

    @staticmethod
    def forward(ctx, q, k, v):
        batch, heads, length, dim = q.shape
        kv_heads = k.shape[1]
        group, pairs = heads // kv_heads, batch * kv_heads
        q = q * dim**-0.5
        out, kept = torch.empty_like(q), []
        for begin in range(0, length, BLOCK):
            end = min(length, begin + BLOCK)
            rows = end - begin
            queries = q[:, :, begin:end].reshape(pairs, group * rows, dim)
            scores = torch.bmm(queries, k[:, :, :end].reshape(pairs, end, dim).transpose(1, 2))
            scores = scores.view(pairs, group, rows, end)
            scores[..., begin:] += future(rows, scores.dtype)
            shares = torch.softmax(scores, -1).view(pairs, group * rows, end)
            values = torch.bmm(shares, v[:, :, :end].reshape(pairs, end, dim))
            out[:, :, begin:end] = values.view(batch, heads, rows, dim)
            kept.append(shares)
        ctx.save_for_backward(q, k, v, *kept)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, *kept = ctx.saved_tensors
        batch, heads, length, dim = q.shape
        kv_heads = k.shape[1]
        group, pairs = heads // kv_heads, batch * kv_heads
        dq = torch.empty_like(q)
        dk = torch.zeros(pairs, length, dim)
        dv = torch.zeros(pairs, length, dim)
        for begin, shares in zip(range(0, length, BLOCK), kept):
            end = min(length, begin + BLOCK)
            rows = end - begin
            keys, values = (x[:, :, :end].reshape(pairs, end, dim) for x in (k, v))
            queries, grads = (x[:, :, begin:end].reshape(pairs, group * rows, dim) for x in (q, grad))
            dv[:, :end] += torch.bmm(shares.transpose(1, 2), grads)
            dshares = torch.bmm(grads, values.transpose(1, 2))
            dscores = torch._softmax_backward_data(dshares, shares, -1, shares.dtype)
            dq[:, :, begin:end] = torch.bmm(dscores, keys).view(batch, heads, rows, dim)
            dk[:, :end] += torch.bmm(dscores.transpose(1, 2), queries)
        like = lambda x, of: x.view(of.shape).to(of.dtype)
        return dq * dim**-0.5, like(dk, k), like(dv, v)


@torch.compiler.disable
def block_attention(q, k, v):
    return BlockAttention.apply(q, k, v)
