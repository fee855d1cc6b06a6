import assert from "node:assert/strict";
import { test } from "node:test";
import type { Op } from "@octavo/kernels";
import { matrix } from "@octavo/kernels/testing/op-harness";
import { openTestGpu } from "./testing/software-gpu.js";
import { createWebGpuBackend } from "./webgpu-backend.js";

const gpu = await openTestGpu();

test("what runs on the CPU alone is refused by name", { skip: typeof gpu === "string" && gpu }, async () => {
  if (typeof gpu === "string") return;
  using backend = createWebGpuBackend(gpu);
  const weight = await matrix(backend, 8, 8, new Float32Array(64));
  const [q, k, v, out] = [{ buffer: 0 }, { buffer: 1 }, { buffer: 2 }, { buffer: 3 }];
  const heads = { layer: 0, numHeads: 1, numKvHeads: 1, headDim: 8, scale: 1 };
  const refuses = (op: Op, message: RegExp): void => {
    const embeddings = [q, k, v].map((to): Op => ({ op: "embedding", weight, out: to }));
    const spec = { buffers: [8, 8, 8, 8], ops: [...embeddings, op], hidden: out, maxTokens: 4 };
    assert.throws(() => backend.compile(spec), { code: "artifact_unsupported", message });
  };
  refuses({ op: "attention", q, k, valueDim: 8, out, ...heads }, /latent attention/);
  refuses({ op: "attention", q, k, v, out, ...heads, chunk: 4 }, /attention within chunks/);
  refuses(
    {
      op: "experts",
      in: q,
      scores: { buffer: 1, width: 1 },
      out,
      experts: [{ gate: weight, up: weight, down: weight }],
      topK: 1,
      softmaxOver: "all",
      activation: "silu",
      weighsInput: true,
    },
    /experts whose inputs are weighed/,
  );
});
