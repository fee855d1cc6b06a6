"""A start that can already copy: the first two layers begin as an induction circuit.

Copying what the prompt holds is most of what this model does, and the circuit
for it (Olsson et al., 2022) is slow to appear from noise in a short training.
So layer 0 begins with heads that look one and two tokens back and write what
they see into dimensions of their own, and layer 1 with heads that look for the
place whose two preceding tokens equal the two at hand and bring the token there
to the output. Training is free to reshape all of it.
"""

import torch

from model import rotary_tables

CONSTANT = 0  # the one dimension in which every token's embedding is the same
READ = slice(1, 129)  # where tokens are told apart
PREVIOUS = slice(129, 193)  # what one token back was
EARLIER = slice(193, 256)  # what two tokens back was


@torch.no_grad()
def plant_induction(model, seed=0):
    """Needs four query heads on two key/value heads of 64 dimensions and a hidden size of 256."""
    config = model.config
    shape = (config.hidden_size, config.num_attention_heads, config.num_key_value_heads, config.head_dim)
    if shape != (256, 4, 2, 64):
        raise ValueError(f"the circuit is laid out for the shape (256, 4, 2, 64), not {shape}")
    generator = torch.Generator().manual_seed(seed)
    model.model.embed_tokens.weight[:, CONSTANT] = 0.15
    view = orthonormal(64, 128, generator)
    plant_look_back(model.model.layers[0].self_attn, config, view)
    plant_match(model.model.layers[1].self_attn, config, view, generator)


def plant_look_back(attention, config, view):
    """Query heads 0 and 1 on key/value head 0 look one and two tokens back."""
    half = config.head_dim // 2
    cos, sin = rotary_tables(config, 3, "cpu")
    key = torch.zeros(64)
    key[:8] = 1.0  # the eight fastest rotations pin a distance
    attention.k_proj.weight[:64] = 0
    attention.k_proj.weight[:64, CONSTANT] = key
    attention.v_proj.weight[:64] = 0
    attention.v_proj.weight[:64, READ] = view
    for head, (distance, target) in enumerate([(1, PREVIOUS), (2, EARLIER)]):
        # A key met `distance` tokens later must meet this query: turn it back by as much.
        turned = torch.cat([key[:half] * cos[distance, :half], -key[:half] * sin[distance, :half]])
        rows = slice(64 * head, 64 * (head + 1))
        attention.q_proj.weight[rows] = 0
        attention.q_proj.weight[rows, CONSTANT] = turned
        width = target.stop - target.start
        attention.o_proj.weight[:, rows] = 0
        attention.o_proj.weight[target, rows] = 0.06 * torch.eye(64)[:width]
    attention.q_norm.weight.fill_(2.0)
    attention.k_norm.weight.fill_(2.0)


def plant_match(attention, config, view, generator):
    """Query heads 0 and 2, one on each key/value head, match two tokens and fetch the next."""
    half = config.head_dim // 2
    slow = torch.arange(half - 13, half)  # rotations slow enough to leave a match alone over a long context
    channels = torch.cat([slow, slow + half])
    for kv_head, query_head in enumerate([0, 2]):
        mix = orthonormal(26, 64, generator)
        near, far = mix[:16], mix[16:]
        keys = torch.zeros(64, 256)
        keys[channels[:16], PREVIOUS] = near
        keys[channels[16:], EARLIER] = far[:, :63]
        queries = torch.zeros(64, 256)
        queries[channels[:16], READ] = near @ view * 3.0
        queries[channels[16:], PREVIOUS] = far
        rows = slice(64 * kv_head, 64 * (kv_head + 1))
        attention.k_proj.weight[rows] = keys
        attention.q_proj.weight[64 * query_head : 64 * (query_head + 1)] = queries
        carried = orthonormal(64, 128, generator)
        attention.v_proj.weight[rows] = 0
        attention.v_proj.weight[rows, READ] = carried
        columns = slice(64 * query_head, 64 * (query_head + 1))
        attention.o_proj.weight[:, columns] = 0
        attention.o_proj.weight[READ, columns] = 0.25 * carried.T
    attention.q_norm.weight.fill_(2.0)
    attention.k_norm.weight.fill_(2.0)


def orthonormal(rows, columns, generator):
    matrix = torch.randn(columns, rows, generator=generator)
    return torch.linalg.qr(matrix).Q.T
