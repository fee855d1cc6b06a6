"""Prepared conversations as batches of similar length."""

from pathlib import Path

import numpy
import torch


class Reader:
    """Reads the corpus in its own order, a window at a time.

    Inside a window conversations are sorted by length, so that a batch pads
    little, and the batches come in random order.
    """

    def __init__(self, folder, batch_tokens, seed, read_from=0.0, rank=0, world=1, window_tokens=400_000):
        folder = Path(folder)
        self.tokens = numpy.load(folder / "tokens.npy", mmap_mode="r")
        self.spoken = numpy.load(folder / "spoken.npy", mmap_mode="r")
        self.starts = numpy.load(folder / "starts.npy")
        self.batch_tokens = batch_tokens
        self.window_tokens = window_tokens
        self.read_from = read_from
        self.rank, self.world = rank, world
        self.random = numpy.random.default_rng(seed)
        self.next = 0
        self.queue = []

    def batch(self, progress):
        """(ids, targets, weights), each [batch, length]. `progress` in [0, 1] is the
        share of the training time gone by: reading skips ahead where it fell behind.

        Every process draws the same batches and keeps its own of each `world`."""
        if len(self.queue) < self.world:
            self.fill(progress)
        drawn = [self.queue.pop() for _ in range(self.world)]
        return self.assemble(drawn[self.rank])

    def fill(self, progress):
        count = len(self.starts) - 1
        first = max(self.next, int((self.read_from + progress * (1 - self.read_from)) * count))
        if first >= count:
            first = int(count * 0.75)
        last = int(numpy.searchsorted(self.starts, self.starts[first] + self.window_tokens))
        last = min(max(last, first + 1), count)
        self.next = last
        lengths = self.starts[first + 1 : last + 1] - self.starts[first:last]
        batch, batches = [], []
        for index in numpy.argsort(lengths, kind="stable")[::-1]:
            longest = lengths[batch[0]] if batch else lengths[index]
            if batch and longest * (len(batch) + 1) > self.batch_tokens:
                batches.append([first + i for i in batch])
                batch = []
            batch.append(index)
        batches.append([first + i for i in batch])
        self.random.shuffle(batches)
        self.queue = batches

    def assemble(self, indices):
        longest = max(int(self.starts[i + 1] - self.starts[i]) for i in indices)
        length = -(-(longest - 1) // 32) * 32
        ids = torch.zeros(len(indices), length, dtype=torch.int64)
        targets = torch.zeros_like(ids)
        weights = torch.zeros(len(indices), length)
        for row, i in enumerate(indices):
            tokens = torch.from_numpy(self.tokens[self.starts[i] : self.starts[i + 1]].astype(numpy.int64))
            spoken = torch.from_numpy(self.spoken[self.starts[i] : self.starts[i + 1]].astype(numpy.float32))
            ids[row, : len(tokens) - 1] = tokens[:-1]
            targets[row, : len(tokens) - 1] = tokens[1:]
            weights[row, : len(tokens) - 1] = spoken[1:]
        return ids, targets, weights
