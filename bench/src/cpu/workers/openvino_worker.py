"""Measures one job on OpenVINO GenAI in this process and prints the measurement as JSON. The task is the only argument.

With "answer" in the task it prints instead a greedy continuation, for the answers to be compared before anything is timed.
"""

import json
import sys
import time

import numpy
import openvino
import openvino_genai

BLOCK = 32
MASK = 0xFFFFFFFF


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
        state ^= (state >> 17) & MASK
        state ^= (state << 5) & MASK
        self.state = state & MASK
        return self.state % self.num_tokens


def pipeline(task, streams, length):
    config = openvino_genai.SchedulerConfig()
    config.max_num_seqs = streams
    config.max_num_batched_tokens = max(2048, length)
    config.num_kv_blocks = streams * (length // BLOCK + 2)
    config.enable_prefix_caching = False
    properties = {"INFERENCE_NUM_THREADS": task["threads"], **task.get("peerOptions", {})}
    return openvino_genai.ContinuousBatchingPipeline(task["modelPath"], config, "CPU", properties)


class Requests:
    def __init__(self, engine):
        self.engine = engine
        self.handles = []

    def add(self, tokens, new_tokens):
        config = openvino_genai.GenerationConfig(max_new_tokens=new_tokens, ignore_eos=True)
        config.do_sample = False
        ids = openvino.Tensor(numpy.array([tokens], dtype=numpy.int64))
        self.handles.append(self.engine.add_request(len(self.handles), ids, config))
        return self

    def step(self):
        """Runs one step; the tokens that each request got in it."""
        self.engine.step()
        return [self._read(handle) for handle in self.handles]

    @staticmethod
    def _read(handle):
        if not handle.can_read():
            return []
        return [token for output in handle.read().values() for token in output.generated_ids]

    def finish(self):
        got = [[] for _ in self.handles]
        while self.engine.has_non_finished_requests():
            for kept, tokens in zip(got, self.step()):
                kept.extend(tokens)
        return got


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def prefill(task, job, source):
    engine = pipeline(task, 1, job["promptTokens"] + 16)
    Requests(engine).add(source.next(16), 2).finish()
    speeds = []
    for _ in range(job["rounds"]):
        request = Requests(engine).add(source.next(job["promptTokens"]), 1)
        start = time.perf_counter()
        request.finish()
        speeds.append(job["promptTokens"] / (time.perf_counter() - start))
    return {"prefillTokensPerSecond": median(speeds)}


def decode(task, job, source):
    streams, new_tokens = job["streams"], job["newTokens"]
    engine = pipeline(task, streams, job["promptTokens"] + new_tokens + 8)
    Requests(engine).add(source.next(16), 2).finish()
    requests = Requests(engine)
    for _ in range(streams):
        requests.add(source.next(job["promptTokens"]), new_tokens + 8)
    started = [False] * streams
    steps = []
    while engine.has_non_finished_requests() and len(steps) <= new_tokens:
        was_full = all(started)
        start = time.perf_counter()
        tokens = requests.step()
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


def single(task, job, source, new_tokens):
    engine = pipeline(task, 1, job["promptTokens"] + new_tokens + 8)
    Requests(engine).add(source.next(job["promptTokens"]), new_tokens).finish()
    print("first-token", flush=True)
    return {}


def answer(task, source):
    prompt_tokens, greedy_tokens = 24, 64
    prompt = source.next(prompt_tokens)
    engine = pipeline(task, 1, prompt_tokens + greedy_tokens + 8)
    greedy = Requests(engine).add(prompt, greedy_tokens).finish()[0]
    return {"prompt": prompt, "greedy": greedy}


def main():
    task = json.loads(sys.argv[1])
    source = PromptSource(task["vocabSize"])
    if task.get("answer"):
        return answer(task, source)
    job = task["job"]
    kind = job["kind"]
    if kind == "prefill":
        return prefill(task, job, source)
    if kind == "decode":
        return decode(task, job, source)
    if kind == "first-token":
        return single(task, job, source, 1)
    if kind == "memory":
        return single(task, job, source, job["newTokens"])
    raise SystemExit(f"OpenVINO GenAI is not measured by a job of kind {kind}")


print(json.dumps(main()))
