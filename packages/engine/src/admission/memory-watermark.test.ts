import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, createFakeEngine, generationRequest } from "../testing/fakes/engine-fixture.js";
import { MemoryWatermark } from "./memory-watermark.js";

const mebibyte = 2 ** 20;

test("refuses below the watermark, and until there is clearly more again", () => {
  let free = 500 * mebibyte;
  let numLooks = 0;
  const watermark = new MemoryWatermark(400 * mebibyte, () => {
    numLooks += 1;
    return free;
  });
  watermark.check(0);
  free = 300 * mebibyte;
  watermark.check(100);
  assert.equal(numLooks, 1, "it does not look all the time");
  const refusal = {
    code: "overloaded",
    message: /300 MiB of memory left, and accepts requests again from 500 MiB on/,
  };
  assert.throws(() => watermark.check(300), refusal);
  free = 450 * mebibyte;
  assert.throws(() => watermark.check(600), { code: "overloaded" });
  free = 501 * mebibyte;
  watermark.check(900);
  free = 450 * mebibyte;
  watermark.check(1200);
});

test("without a journal every request is accepted; a journal that cannot be opened is an error that says why", async () => {
  const { engine: plain } = createFakeEngine();
  await collect(plain.generate(generationRequest([1], { maxTokens: 1 })));
  await plain[Symbol.asyncDispose]();
  const { engine } = createFakeEngine({ minFreeMemoryBytes: 2 ** 50 });
  const reasons: string[] = [];
  engine.observe({ onRefused: ({ reason }) => void reasons.push(reason) });
  assert.throws(() => engine.generate(generationRequest([1])), { code: "overloaded" });
  assert.deepEqual(reasons, ["memory"]);
  await engine[Symbol.asyncDispose]();
  assert.throws(() => createFakeEngine({ minFreeMemoryBytes: -1 }), { code: "invalid_option" });
});
