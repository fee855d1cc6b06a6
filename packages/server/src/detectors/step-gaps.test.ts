import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, createFakeEngine, type FixtureOptions, generationRequest } from "@octavo/engine/testing";
import { StepGaps } from "./step-gaps.js";

/** What is said of the gaps of an engine's sequences, whose prompts have the lengths given. */
async function gapsOf(options: FixtureOptions, promptLengths: readonly number[], maxTokens: number) {
  const { engine } = createFakeEngine(options);
  const gaps = new StepGaps();
  const counts = { all: 0, skipped: 0, preempted: 0, preemptions: 0 };
  using _ = engine.observe({
    onFirstToken: ({ requestId }) => gaps.noteFirstToken(requestId),
    onInterToken: (request, gapMs) => gaps.noteGap(request, gapMs),
    onPreemption: (requestId) => {
      counts.preemptions += 1;
      gaps.notePreemption(requestId);
    },
    onStep: (step) =>
      gaps.end(step, ({ wasSkipped, wasPreempted }) => {
        counts.all += 1;
        if (wasSkipped) counts.skipped += 1;
        if (wasPreempted) counts.preempted += 1;
      }),
    onFinished: ({ requestId }) => gaps.noteEnd(requestId),
  });
  await Promise.all(
    promptLengths.map((length, seed) => {
      const prompt = Array.from({ length }, (__, index) => (index * 7 + seed) % 60);
      return collect(engine.generate(generationRequest(prompt, { maxTokens })));
    }),
  );
  await engine[Symbol.asyncDispose]();
  return counts;
}

test("a sequence that generates is in every step, whatever prompts run beside it", async () => {
  const roomy: FixtureOptions = { numBlocks: 512, maxModelLen: 600, maxNumBatchedTokens: 64 };
  const counts = await gapsOf(roomy, [8, 8, 200, 8, 300], 60);
  assert.deepEqual(counts, { all: 5 * 59, skipped: 0, preempted: 0, preemptions: 0 });
});

test("a preempted sequence skips steps, and is known to be preempted", async () => {
  const crowded: FixtureOptions = {
    numBlocks: 40,
    maxModelLen: 100,
    maxNumBatchedTokens: 256,
    enablePrefixCaching: false,
  };
  const counts = await gapsOf(crowded, [30, 30, 30, 30], 40);
  assert.ok(counts.preemptions > 0);
  assert.equal(counts.preempted, counts.skipped);
  assert.ok(counts.preempted > 0 && counts.preempted <= counts.preemptions);
});
