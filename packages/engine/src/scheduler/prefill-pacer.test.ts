import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { PrefillPacer } from "./prefill-pacer.js";

test("sets no bound before it knows anything, nor when it is off", () => {
  assert.equal(new PrefillPacer(200).maxTokens, Number.POSITIVE_INFINITY);
  const off = new PrefillPacer(0);
  off.observe(512, 10_000);
  assert.equal(off.maxTokens, Number.POSITIVE_INFINITY);
});

test("settles where a step takes the target, what the step computes beside prompts counted in", () => {
  fc.assert(
    fc.property(
      fc.record({
        msPerToken: fc.double({ min: 0.01, max: 0.5, noNaN: true }),
        besideMs: fc.double({ min: 0, max: 100, noNaN: true }),
        firstTokens: fc.integer({ min: 32, max: 8192 }),
      }),
      ({ msPerToken, besideMs, firstTokens }) => {
        const pacer = new PrefillPacer(200);
        let tokens = firstTokens;
        for (let step = 0; step < 200; step += 1) {
          pacer.observe(tokens, besideMs + tokens * msPerToken);
          tokens = pacer.maxTokens;
        }
        const stepMs = besideMs + tokens * msPerToken;
        assert(stepMs <= 202, `${stepMs} ms`);
        assert(tokens === 128 || stepMs >= 190, `${tokens} tokens, ${stepMs} ms`);
      },
    ),
  );
});

test("never asks for pieces too small to be worth a step", () => {
  const pacer = new PrefillPacer(200);
  pacer.observe(64, 60_000);
  assert.equal(pacer.maxTokens, 128);
});

test("ignores steps with few prompt tokens, and forgets one slow step", () => {
  const pacer = new PrefillPacer(200);
  pacer.observe(1000, 100);
  pacer.observe(1, 1000);
  assert.equal(pacer.maxTokens, 2000);
  pacer.observe(1000, 2000);
  assert(pacer.maxTokens < 200);
  for (let step = 0; step < 40; step += 1) pacer.observe(1000, 100);
  assert(pacer.maxTokens > 1990);
});
