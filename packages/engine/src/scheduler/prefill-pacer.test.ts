import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { PrefillPacer } from "./prefill-pacer.js";

test("is careful before it knows anything, and sets no bound when it is off", () => {
  assert.equal(new PrefillPacer(200).maxTokens, 32);
  const off = new PrefillPacer(0);
  off.observe(512, 10_000);
  assert.equal(off.maxTokens, Number.POSITIVE_INFINITY);
});

test("keeps to the target at once where it knows steps without prompts, and settles there where it does not", () => {
  fc.assert(
    fc.property(
      fc.record({
        msPerToken: fc.double({ min: 0.01, max: 20, noNaN: true }),
        besideMs: fc.double({ min: 0, max: 150, noNaN: true }),
        firstTokens: fc.integer({ min: 32, max: 8192 }),
        isBaseKnown: fc.boolean(),
      }),
      ({ msPerToken, besideMs, firstTokens, isBaseKnown }) => {
        const pacer = new PrefillPacer(200);
        if (isBaseKnown) pacer.observe(0, besideMs);
        let tokens = firstTokens;
        for (let step = 0; step < 200; step += 1) {
          const stepMs = besideMs + tokens * msPerToken;
          if (step > 0 && isBaseKnown) assert(stepMs <= 210, `step ${step}: ${stepMs} ms`);
          pacer.observe(tokens, stepMs);
          tokens = pacer.maxTokens;
        }
        const stepMs = besideMs + tokens * msPerToken;
        assert(stepMs <= 202, `${stepMs} ms`);
        assert(stepMs + msPerToken >= 190, `${tokens} tokens, ${stepMs} ms`);
      },
    ),
  );
});

test("where steps take longer than the target without prompts, those add a quarter, and never stop", () => {
  const pacer = new PrefillPacer(200);
  for (let step = 0; step < 50; step += 1) {
    pacer.observe(0, 400);
    pacer.observe(pacer.maxTokens, 400 + 2 * pacer.maxTokens);
  }
  assert.ok(Math.abs(pacer.maxTokens - 50) <= 1, `${pacer.maxTokens}`);
  const slow = new PrefillPacer(200);
  for (let step = 0; step < 50; step += 1) {
    slow.observe(0, 100);
    slow.observe(slow.maxTokens, 100 + 1000 * slow.maxTokens);
  }
  assert.equal(slow.maxTokens, 1, "a token costs more than the target leaves");
});

test("ignores steps with few prompt tokens, and forgets one slow step", () => {
  const pacer = new PrefillPacer(200);
  pacer.observe(0, 1);
  pacer.observe(1000, 100);
  const before = pacer.maxTokens;
  pacer.observe(1, 1000);
  assert.equal(pacer.maxTokens, before);
  pacer.observe(1000, 2000);
  assert(pacer.maxTokens < 500, `${pacer.maxTokens}`);
  for (let step = 0; step < 40; step += 1) pacer.observe(1000, 100);
  assert(pacer.maxTokens > 1990);
});
