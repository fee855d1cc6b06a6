import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { StepPlan } from "@octavo/kernels";
import { collect, createFakeEngine, generationRequest } from "../testing/fakes/engine-fixture.js";

const poison = 42;

/** Whether a step computes the token that no step survives. */
function isPoisoned(plan: StepPlan): boolean {
  return plan.tokenIds.subarray(0, plan.numTokens).includes(poison);
}

function explode(): never {
  throw new RangeError("the kernel gave up");
}

describe("a step that fails", () => {
  test("fails the request at fault the second time, and costs no other request a token", async () => {
    const neighbours = Array.from({ length: 5 }, (_, index) =>
      generationRequest([index + 1, 2, 3], { maxTokens: 12, logitBias: new Map([[poison, -100]]) }),
    );
    const { engine: sound } = createFakeEngine();
    const expected = await Promise.all(neighbours.map((request) => collect(sound.generate(request))));
    await sound[Symbol.asyncDispose]();

    let numFailed = 0;
    const { engine, backend } = createFakeEngine({
      backend: { beforeStep: (plan) => (isPoisoned(plan) ? explode() : undefined) },
    });
    using _ = engine.observe({ onStepFailed: () => void (numFailed += 1) });
    const bad = generationRequest([7, poison], { maxTokens: 4 });
    const running = neighbours.map((request) =>
      collect(engine.generate({ ...request, requestId: `${request.requestId}-again` })),
    );
    await assert.rejects(collect(engine.generate(bad)), {
      code: "request_quarantined",
      message: /failed twice/,
    });
    const outcomes = await Promise.all(running);
    assert.deepEqual(
      outcomes.map(({ sequences }) => sequences),
      expected.map(({ sequences }) => sequences),
    );
    assert.equal(numFailed, 2, "once among others, once alone");
    assert.equal(engine.failure, undefined);
    assert.throws(() => engine.generate({ ...bad, requestId: "again" }), { code: "request_quarantined" });
    await collect(engine.generate(generationRequest([7, 41], { maxTokens: 1 })));
    assert.equal(numFailed, 2, "it is not tried a third time");
    engine.checkIntegrity();
    assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
    assert.equal(backend.numLiveSamplerStates, 0);
    await engine[Symbol.asyncDispose]();
  });

  test("is found late in an answer, and among several bad requests", async () => {
    const { engine } = createFakeEngine({
      backend: {
        script: (context) => (context[0] === 9 && context.length === 8 ? poison : 5),
        beforeStep: (plan) => (isPoisoned(plan) ? explode() : undefined),
      },
    });
    const good = Array.from({ length: 4 }, (_, index) =>
      collect(engine.generate(generationRequest([index + 1, 2, 3], { maxTokens: 30 }))),
    );
    const bad = [
      [9, 1, 1],
      [9, 2, 2],
    ].map(async (prompt) => {
      const request = generationRequest(prompt, { maxTokens: 30 });
      let numTokens = 0;
      await assert.rejects(
        async () => {
          for await (const event of engine.generate(request))
            if (event.kind === "delta")
              numTokens += event.deltas.reduce((sum, { tokens }) => sum + tokens.length, 0);
        },
        { code: "request_quarantined" },
      );
      return numTokens;
    });
    assert.deepEqual(await Promise.all(bad), [6, 6], "what came before is delivered");
    for (const { sequences } of await Promise.all(good)) assert.equal(sequences[0]?.tokens.length, 30);
    assert.equal(engine.failure, undefined);
    engine.checkIntegrity();
    await engine[Symbol.asyncDispose]();
  });

  test("once blames no request", async () => {
    let steps = 0;
    const beforeStep = (): void => {
      steps += 1;
      if (steps === 4) explode();
    };
    const { engine } = createFakeEngine({ backend: { beforeStep } });
    const failed = new Promise<void>((resolve) => {
      engine.observe({ onStepFailed: () => resolve() });
    });
    const controller = new AbortController();
    const runs = [1, 2, 3].map((token) =>
      collect(engine.generate(generationRequest([token, token], { maxTokens: 10, n: 2 }))),
    );
    const left = collect(engine.generate(generationRequest([4], { maxTokens: 50 }), controller.signal));
    const embedded = engine.embed({
      kind: "embed",
      requestId: "e",
      promptTokens: Int32Array.of(1, 2, 3),
      pooling: "mean",
      normalize: true,
    });
    await failed;
    controller.abort();
    for (const { sequences } of await Promise.all(runs))
      assert.deepEqual(
        sequences.map(({ tokens }) => tokens.length),
        [10, 10],
      );
    await left;
    assert.equal((await embedded).usage.promptTokens, 3);
    assert.equal(engine.failure, undefined);
    engine.checkIntegrity();
    assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
    await engine[Symbol.asyncDispose]();
  });
});
