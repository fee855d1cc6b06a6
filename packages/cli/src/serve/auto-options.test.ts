import assert from "node:assert/strict";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { describeModel, LLM } from "@octavo/engine";
import { memoryPlan } from "../models/model-fit.js";
import { autoOptions } from "./auto-options.js";

const mini = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));
const mebibytes = 2 ** 20;

test("with much memory, the model's whole context and 256 conversations", async () => {
  const description = await describeModel(mini);
  const { options, line } = autoOptions("mini", description, 2 ** 36, {});
  assert.equal(options.maxModelLen, 8192);
  const conversation = memoryPlan("mini", description, 2 ** 36, 4096).kvBytesPerSequence.bf16;
  assert.equal(options.kvCacheMemoryBytes, 256 * conversation);
  assert.match(line, /^--auto: --max-model-len 8192 --kv-cache-memory \S+ \(.*256 x 4096 tokens\)$/);
});

test("with little, as long a context as fits, and the cache is what is left", async () => {
  const description = await describeModel(mini);
  for (const free of [40, 60, 80].map((size) => size * mebibytes)) {
    const { options } = autoOptions("mini", description, free, {});
    const { maxModelLen = 0, kvCacheMemoryBytes = 0 } = options;
    const bytesOf = (context: number): number =>
      memoryPlan("mini", description, free, context).kvBytesPerSequence.bf16;
    assert.ok(bytesOf(maxModelLen) <= kvCacheMemoryBytes, "one sequence fits");
    assert.ok(
      maxModelLen === 8192 || bytesOf(maxModelLen + 256) > kvCacheMemoryBytes,
      "a longer one does not",
    );
    assert.ok(kvCacheMemoryBytes < free);
  }
});

test("what is given stays; what cannot fit is refused with the sizes", async () => {
  const description = await describeModel(mini);
  const given = { maxModelLen: 1000, kvCacheMemoryBytes: 30 * mebibytes };
  const { options, line } = autoOptions("mini", description, 2 ** 34, given);
  assert.deepEqual(options, { ...given, memoryUtilization: undefined });
  assert.match(line, /nothing is left to choose/);
  for (const [free, sizes] of [
    [12 * mebibytes, {}],
    [2 ** 34, { kvCacheMemoryBytes: 1000 }],
    [40 * mebibytes, { maxModelLen: 8192 }],
  ] as const)
    assert.throws(() => autoOptions("mini", description, free, sizes), {
      code: "invalid_option",
      message: /--auto: mini takes .* of weights and .* for \d+ tokens, of .* that are free/,
    });
});

test("the engine loads with what was chosen", async () => {
  const description = await describeModel(mini);
  const { options } = autoOptions("mini", description, 60 * mebibytes, {});
  await using llm = await LLM.load(mini, { ...options, numThreads: 1 });
  assert.equal(llm.engine.maxModelLen, options.maxModelLen);
});
