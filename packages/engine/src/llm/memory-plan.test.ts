import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import { type MemoryRequest, planMemory } from "./memory-plan.js";

const config: ModelConfig = {
  architecture: "LlamaForCausalLM",
  vocabSize: 32,
  hiddenSize: 16,
  intermediateSize: 16,
  numLayers: 2,
  numHeads: 2,
  numKvHeads: 1,
  headDim: 8,
  rmsNormEps: 1e-5,
  maxPositionEmbeddings: 1000,
  tieWordEmbeddings: false,
  attentionBias: false,
  mlpBias: false,
  hiddenActivation: "silu",
  rope: { theta: 10000, rotaryDim: 8, layout: "neox", scaling: { kind: "none" } },
  slidingWindows: [undefined, undefined],
  dtype: "bf16",
  bosTokenId: undefined,
  eosTokenIds: [],
};
/** 2 (k and v) x 2 layers x 1 head x 8 x 2 bytes */
const BYTES_PER_TOKEN = 64;

const request: MemoryRequest = {
  config,
  blockSize: 16,
  maxNumSeqs: 4,
  maxModelLen: undefined,
  kvCacheDtype: "auto",
  kvCacheMemoryBytes: 1600 * BYTES_PER_TOKEN,
};

describe("planMemory", () => {
  test("takes the model's own length where the memory holds it", () => {
    assert.deepEqual(planMemory(request), {
      kv: {
        layers: [
          { numKvHeads: 1, headDim: 8 },
          { numKvHeads: 1, headDim: 8 },
        ],
        dtype: "bf16",
      },
      states: undefined,
      numBlocks: 100,
      maxModelLen: 1000,
      isShortened: false,
    });
  });

  test("shortens the context to the memory, and says so, unless a length was asked for", () => {
    const small = { ...request, kvCacheMemoryBytes: 500 * BYTES_PER_TOKEN };
    const plan = planMemory(small);
    assert.deepEqual([plan.maxModelLen, plan.isShortened], [496, true]);
    assert.throws(() => planMemory({ ...small, maxModelLen: 600 }), { code: "invalid_option" });
    assert.equal(planMemory({ ...small, maxModelLen: 300 }).isShortened, false);
  });

  test("refuses a context beyond the model's positions", () => {
    assert.throws(() => planMemory({ ...request, maxModelLen: 1001 }), /at most 1000 positions/);
  });

  test("keeps keys and values as the weights are kept, f16 for quantised ones", () => {
    const dtypes = (["f32", "f16", "bf16", "quantized"] as const).map(
      (dtype) => planMemory({ ...request, config: { ...config, dtype } }).kv.dtype,
    );
    assert.deepEqual(dtypes, ["f32", "f16", "bf16", "f16"]);
    assert.equal(planMemory({ ...request, kvCacheDtype: "f32" }).kv.dtype, "f32");
  });

  test("gives no more blocks than all sequences could fill where memory is plenty", () => {
    const plan = planMemory({ ...request, kvCacheMemoryBytes: undefined, availableBytes: 2 ** 32 });
    assert.equal(plan.numBlocks, 4 * 63);
  });
});
