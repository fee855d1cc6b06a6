import assert from "node:assert/strict";
import test from "node:test";
import { loadingOptions, schedulingOptions } from "../options/loading-options.js";
import { type LoadOptions, resolveLoadOptions } from "./load-options.js";

test("every default is a value that its own row accepts", () => {
  const rows = Object.entries({ ...schedulingOptions, ...loadingOptions });
  for (const [key, row] of rows) if ("default" in row) assert.ok(row.type.accepts(row.default), key);
  const resolved = resolveLoadOptions({});
  assert.equal(resolved.maxNumSeqs, 256);
  assert.equal(resolved.maxNumBatchedTokens, 2048);
  assert.equal(resolved.crashJournal, undefined);
});

test("a value out of range is refused by name, in vLLM's spelling too", () => {
  for (const blockSize of [0, -16, 1.5, 257, Number.NaN])
    assert.throws(() => resolveLoadOptions({ blockSize }), {
      code: "invalid_option",
      param: "block_size",
      message: `blockSize: expected an integer from 1 to 256, got ${blockSize}`,
    });
  assert.throws(() => resolveLoadOptions({ memoryUtilization: 0 }), {
    message: "memoryUtilization: expected a number above 0 and at most 1, got 0",
  });
  assert.throws(() => resolveLoadOptions({ schedulingPolicy: "random" } as unknown as LoadOptions), {
    param: "scheduling_policy",
    message: /one of fcfs, priority, fair/,
  });
});

test("an unknown option is refused with the nearest name", () => {
  const misspelt: LoadOptions & { readonly maxNumSeq: number } = { maxNumSeq: 3 };
  assert.throws(() => resolveLoadOptions(misspelt), {
    code: "invalid_option",
    param: "maxNumSeq",
    message: 'LLM.load has no option "maxNumSeq"; did you mean maxNumSeqs?',
  });
  assert.throws(() => resolveLoadOptions({ weather: "fine" } as LoadOptions), /no option "weather"$/);
});
