import assert from "node:assert/strict";
import { test } from "node:test";
import { type KvCacheRequest, planKvCache } from "./plan-kv-cache.js";

// 2 (k, v) * 2 layers * 4 heads * 32 * 2 bytes * 16 positions
const bytesPerBlock = 16384;
const request: KvCacheRequest = {
  layers: [
    { numKvHeads: 4, headDim: 32 },
    { numKvHeads: 4, headDim: 32 },
  ],
  dtype: "bf16",
  blockSize: 16,
  maxModelLen: 160,
  maxNumSeqs: 4,
};

test("uses the given memory in whole blocks", () => {
  const plan = planKvCache({ ...request, kvCacheMemoryBytes: 1_000_000 });
  assert.deepEqual(plan, {
    numBlocks: 61,
    bytesPerBlock,
    numStateSlots: 0,
    byteLength: 61 * bytesPerBlock,
  });
  assert.equal(planKvCache({ ...request, dtype: "f32", kvCacheMemoryBytes: 1_000_000 }).numBlocks, 30);
  // 36 bytes instead of 64 for each head.
  assert.equal(planKvCache({ ...request, dtype: "int8", kvCacheMemoryBytes: 1_000_000 }).numBlocks, 108);
});

test("by default takes a share of what is free, no more than the sequences can fill", () => {
  assert.equal(planKvCache({ ...request, availableBytes: 2 ** 40 }).numBlocks, 40);
  assert.equal(planKvCache({ ...request, availableBytes: 30 * bytesPerBlock }).numBlocks, 12);
  const large = planKvCache({ ...request, maxNumSeqs: 1e6, availableBytes: 2 ** 40 });
  assert.equal(large.byteLength, 4 * 2 ** 30);
  assert(planKvCache(request).numBlocks > 0);
});

test("says what to set when one sequence does not fit", () => {
  assert.throws(() => planKvCache({ ...request, kvCacheMemoryBytes: 9 * bytesPerBlock }), {
    code: "invalid_option",
    message: /--kv-cache-memory to at least 163840 bytes, or --max-model-len to at most 144/,
  });
  assert.throws(() => planKvCache({ ...request, availableBytes: 20 * bytesPerBlock }), {
    code: "out_of_memory",
    message: /--max-model-len to at most 128/,
  });
  for (const kvCacheMemoryBytes of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => planKvCache({ ...request, kvCacheMemoryBytes }), { code: "invalid_option" });
  }
});

test("refuses more memory than the machine has, free or not", () => {
  const machineBytes = 100 * bytesPerBlock;
  const take = (kvCacheMemoryBytes: number) => planKvCache({ ...request, machineBytes, kvCacheMemoryBytes });
  assert.equal(take(machineBytes).numBlocks, 100);
  const message = /may not take .* this process has .* of memory/;
  assert.throws(() => take(machineBytes + 1), { code: "invalid_option", message });
  assert.throws(() => planKvCache({ ...request, kvCacheMemoryBytes: 2 ** 50 }), {
    code: "invalid_option",
    message,
  });
});

test("slots of recurrent state take up to half, less where a sequence would not fit, and never fewer than two", () => {
  const stateBytes = 2 * bytesPerBlock;
  const withStates = (blocks: number): [number, number] => {
    const plan = planKvCache({ ...request, stateBytes, kvCacheMemoryBytes: blocks * bytesPerBlock });
    assert(plan.byteLength <= blocks * bytesPerBlock);
    return [plan.numStateSlots, plan.numBlocks];
  };
  assert.deepEqual(withStates(100), [25, 50]);
  assert.deepEqual(withStates(17), [3, 11]);
  assert.deepEqual(withStates(14), [2, 10]);
  assert.deepEqual(withStates(1000)[0], request.maxNumSeqs + 64);
  assert.throws(() => withStates(13), /KV cache and recurrent state.*at least 229376 bytes/);
});
