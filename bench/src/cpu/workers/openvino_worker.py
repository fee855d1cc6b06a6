"""OpenVINO GenAI's continuous batching; it imports GGUF files."""

import numpy
import openvino
import openvino_genai
import peer_jobs

BLOCK = 32


class Engine:
    def __init__(self, task, streams, length):
        config = openvino_genai.SchedulerConfig()
        config.max_num_seqs = streams
        config.max_num_batched_tokens = max(2048, length)
        config.num_kv_blocks = streams * (length // BLOCK + 2)
        config.enable_prefix_caching = False
        properties = {"INFERENCE_NUM_THREADS": task["threads"], **task.get("peerOptions", {})}
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(task["modelPath"], config, "CPU", properties)
        self.handles = []
        self.num_added = 0

    def reset(self):
        self.handles = []

    def add(self, tokens, new_tokens):
        config = openvino_genai.GenerationConfig(max_new_tokens=new_tokens, ignore_eos=True)
        config.do_sample = False
        ids = openvino.Tensor(numpy.array([tokens], dtype=numpy.int64))
        self.handles.append(self.pipeline.add_request(self.num_added, ids, config))
        self.num_added += 1

    def is_busy(self):
        return self.pipeline.has_non_finished_requests()

    def step(self):
        self.pipeline.step()
        return [self._read(handle) for handle in self.handles]

    @staticmethod
    def _read(handle):
        if not handle.can_read():
            return []
        return [token for output in handle.read().values() for token in output.generated_ids]


peer_jobs.main(Engine)
