import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, createFakeEngine, generationRequest } from "../testing/engine-fixture.js";

test("generates tokens, text and one end", async () => {
  const { engine } = createFakeEngine();
  const result = await collect(engine.generate(generationRequest([1, 2, 3], { maxTokens: 10 })));
  const [sequence] = result.sequences;
  assert.equal(sequence?.tokens.length, 10);
  assert.equal(sequence.text.length, 10);
  assert.equal(sequence.finishReason, "length");
  assert.deepEqual(result.usage, { promptTokens: 3, completionTokens: 10, cachedTokens: 0 });
  assert.deepEqual(result.events.filter((event) => event.kind === "done").length, 1);
  await engine[Symbol.asyncDispose]();
});

test("requests together give what each gives alone", async () => {
  const prompts = Array.from({ length: 32 }, (_prompt, index) =>
    Array.from({ length: 1 + ((index * 7) % 40) }, (_, position) => (index * position + position) % 63),
  );
  const alone = [];
  for (const prompt of prompts) {
    const { engine } = createFakeEngine({ enablePrefixCaching: false });
    alone.push((await collect(engine.generate(generationRequest(prompt)))).sequences[0]?.tokens);
    await engine[Symbol.asyncDispose]();
  }
  const { engine, backend } = createFakeEngine({
    numBlocks: 40,
    hooks: { afterStep: (running) => running.checkIntegrity() },
  });
  const together = await Promise.all(
    prompts.map(async (prompt) => {
      const result = await collect(engine.generate(generationRequest(prompt)));
      return result.sequences[0]?.tokens;
    }),
  );
  assert.deepEqual(together, alone);
  assert.equal(engine.failure, undefined);
  assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
  await engine[Symbol.asyncDispose]();
  assert.equal(backend.numLiveSamplerStates, 0);
});
