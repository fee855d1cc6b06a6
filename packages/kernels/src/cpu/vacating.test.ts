import assert from "node:assert/strict";
import test from "node:test";
import { createCpuBackend } from "./cpu-backend.js";

test("a cache gives its memory back and takes it again; misuse is told", () => {
  using backend = createCpuBackend({ numThreads: 1 });
  const { vacating } = backend;
  assert.ok(vacating !== undefined);
  const cache = backend.createKvCache({
    layers: [{ numKvHeads: 1, headDim: 8 }],
    numBlocks: 2,
    blockSize: 16,
    dtype: "f32",
  });
  assert.throws(() => vacating.refillCache(cache), /is not vacated/);
  vacating.vacate(cache);
  vacating.vacate(cache);
  vacating.refillCache(cache);
  assert.throws(() => vacating.refillCache(cache), /is not vacated/);
  vacating.vacate(cache);
  cache[Symbol.dispose]();
  assert.throws(() => vacating.refillCache(cache), /is not vacated/);
  using other = createCpuBackend({ numThreads: 1 });
  assert.throws(() => other.vacating?.vacate({ kind: "program" } as never), { code: "internal_error" });
});
