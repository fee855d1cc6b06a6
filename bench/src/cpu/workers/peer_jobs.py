"""The jobs of the benchmark for a peer in Python: what contender.ts calls prefill, decode, first-token and memory.

A peer gives `open_engine(task, streams, length)`, room for so many sequences of so many tokens. An engine has
`add(tokens, new_tokens)`, greedy and without an end of sequence; `step()`, which gives each request's new tokens in the order in
which they were added since `reset()`; and `is_busy()`.
"""

import json
import sys
import time

MASK = 0xFFFFFFFF
ANSWER_PROMPT, ANSWER_TOKENS = 24, 64


class PromptSource:
    """The same token ids that every contender is given (prompts.ts)."""

    def __init__(self, vocab_size, seed=42):
        self.num_tokens = vocab_size - 3
        self.state = seed

    def next(self, length):
        return [self._token() for _ in range(length)]

    def _token(self):
        state = self.state
        state ^= (state << 13) & MASK
        state ^= state >> 17
        state ^= (state << 5) & MASK
        self.state = state
        return state % self.num_tokens


def finish(engine, requests):
    """Runs (tokens, new_tokens) pairs to their end; what each was answered."""
    engine.reset()
    for tokens, new_tokens in requests:
        engine.add(tokens, new_tokens)
    got = [[] for _ in requests]
    while engine.is_busy():
        for kept, tokens in zip(got, engine.step()):
            kept.extend(tokens)
    return got


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def prefill(open_engine, task, job, source):
    engine = open_engine(task, 1, job["promptTokens"] + 16)
    finish(engine, [(source.next(16), 2)])
    speeds = []
    for _ in range(job["rounds"]):
        prompt = source.next(job["promptTokens"])
        start = time.perf_counter()
        finish(engine, [(prompt, 1)])
        speeds.append(job["promptTokens"] / (time.perf_counter() - start))
    return {"prefillTokensPerSecond": median(speeds)}


def decode(open_engine, task, job, source):
    """Steps count in which every stream got a token and none was still in its prompt."""
    streams, new_tokens = job["streams"], job["newTokens"]
    engine = open_engine(task, streams, job["promptTokens"] + new_tokens + 8)
    finish(engine, [(source.next(16), 2)])
    engine.reset()
    for _ in range(streams):
        engine.add(source.next(job["promptTokens"]), new_tokens + 8)
    started = [False] * streams
    steps = []
    while engine.is_busy() and len(steps) <= new_tokens:
        was_full = all(started)
        start = time.perf_counter()
        tokens = engine.step()
        seconds = time.perf_counter() - start
        started = [before or len(now) > 0 for before, now in zip(started, tokens)]
        if was_full and all(tokens):
            steps.append(seconds)
    # The first full step still settles buffers.
    counted = steps[1:]
    return {
        "decodeTokensPerSecond": streams * len(counted) / sum(counted),
        "contextTokens": job["promptTokens"] + new_tokens / 2,
    }


def single(open_engine, task, job, source):
    new_tokens = job.get("newTokens", 1)
    engine = open_engine(task, 1, job["promptTokens"] + new_tokens + 8)
    finish(engine, [(source.next(job["promptTokens"]), new_tokens)])
    print("first-token", flush=True)
    return {}


def answer(open_engine, task, source):
    prompt = source.next(ANSWER_PROMPT)
    engine = open_engine(task, 1, ANSWER_PROMPT + ANSWER_TOKENS + 8)
    return {"prompt": prompt, "greedy": finish(engine, [(prompt, ANSWER_TOKENS)])[0]}


JOBS = {"prefill": prefill, "decode": decode, "first-token": single, "memory": single}


def main(open_engine):
    """Runs the task given as JSON in the only argument and prints the result as the last line."""
    task = json.loads(sys.argv[1])
    source = PromptSource(task["vocabSize"])
    if task.get("answer"):
        result = answer(open_engine, task, source)
    else:
        job = task["job"]
        if job["kind"] not in JOBS:
            raise SystemExit(f"no peer in Python is measured by a job of kind {job['kind']}")
        result = JOBS[job["kind"]](open_engine, task, job, source)
    print(json.dumps(result), flush=True)
