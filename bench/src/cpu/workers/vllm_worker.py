"""vLLM on CPUs. Its folder holds a config.json alone: vLLM draws random weights of those shapes itself ("dummy"), in bf16."""

import os

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import peer_jobs  # noqa: E402
from vllm import LLM, SamplingParams  # noqa: E402
from vllm.inputs import TokensPrompt  # noqa: E402


class Engine:
    def __init__(self, task, streams, length):
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{task['threads'] - 1}")
        self.engine = LLM(
            model=task["modelPath"],
            load_format="dummy",
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=length,
            max_num_seqs=streams,
            max_num_batched_tokens=max(2048, length),
            enable_prefix_caching=False,
            **task.get("peerOptions", {}),
        ).llm_engine
        self.names = []
        self.lengths = {}
        self.num_added = 0

    def reset(self):
        self.names = []
        self.lengths = {}

    def add(self, tokens, new_tokens):
        name = str(self.num_added)
        self.num_added += 1
        params = SamplingParams(temperature=0, ignore_eos=True, max_tokens=new_tokens, detokenize=False)
        self.engine.add_request(name, TokensPrompt(prompt_token_ids=tokens), params)
        self.names.append(name)
        self.lengths[name] = 0

    def is_busy(self):
        return self.engine.has_unfinished_requests()

    def step(self):
        new = {}
        for output in self.engine.step():
            tokens = output.outputs[0].token_ids
            new[output.request_id] = list(tokens[self.lengths[output.request_id] :])
            self.lengths[output.request_id] = len(tokens)
        return [new.get(name, []) for name in self.names]


peer_jobs.main(Engine)
