"""transformers with torch on a GPU, or on the CPU where OCTAVO_BENCH_DEVICE says so. Its folder holds a config.json alone: weights are random, in
16 bits. All prompts of a batch have one length and run together."""

import os

import peer_jobs
import torch
from transformers import AutoConfig, AutoModelForCausalLM

DEVICE = os.environ.get("OCTAVO_BENCH_DEVICE", "cuda")


class Engine:
    def __init__(self, task, streams, length):
        config = AutoConfig.from_pretrained(task["modelPath"])
        torch.set_default_dtype(torch.float16 if DEVICE == "cuda" else torch.bfloat16)
        with torch.device(DEVICE):
            self.model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
        self.reset()

    def reset(self):
        self.prompts, self.wanted = [], []
        self.cache, self.last, self.numbers = None, None, 0

    def add(self, tokens, new_tokens):
        self.prompts.append(tokens)
        self.wanted.append(new_tokens)

    def is_busy(self):
        return self.numbers < max(self.wanted, default=0)

    @torch.inference_mode()
    def step(self):
        ids = torch.tensor(self.prompts, device=DEVICE) if self.last is None else self.last
        out = self.model(input_ids=ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        self.cache = out.past_key_values
        self.last = out.logits[:, -1:].argmax(-1)
        self.numbers += 1
        return [[token] for token in self.last[:, 0].tolist()]


peer_jobs.main(Engine)
