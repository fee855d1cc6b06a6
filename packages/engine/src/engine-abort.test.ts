import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, createFakeEngine, generationRequest } from "./testing/fakes/engine-fixture.js";
import { TestRandom } from "@octavo/text/testing/random";

test("leaving the iteration frees the blocks within a step", async () => {
  const { engine, backend } = createFakeEngine();
  for await (const event of engine.generate(generationRequest([1, 2, 3], { maxTokens: 100 }))) {
    assert.equal(event.kind, "delta");
    break;
  }
  const steps = backend.numSteps;
  await engine.drain(1000);
  assert(backend.numSteps <= steps + 1, "no step beyond the one in flight");
  assert.equal(engine.stats.kvCacheUsage, 0);
  engine.checkIntegrity();
  await engine[Symbol.asyncDispose]();
});

test("a signal ends all sequences with abort, at once", async () => {
  const { engine } = createFakeEngine();
  const controller = new AbortController();
  const finished: unknown[] = [];
  engine.observe({ onFinished: ({ reasons }) => finished.push(reasons) });
  const result = collect(
    engine.generate(generationRequest([1, 2], { maxTokens: 100, n: 3 }), controller.signal),
  );
  setTimeout(() => controller.abort(), 5);
  const { sequences, usage } = await result;
  assert.deepEqual(
    sequences.map((sequence) => sequence.finishReason),
    ["abort", "abort", "abort"],
  );
  assert.equal(
    usage?.completionTokens,
    sequences.reduce((sum, { tokens }) => sum + tokens.length, 0),
  );
  assert.deepEqual(finished, [["abort", "abort", "abort"]]);
  await engine[Symbol.asyncDispose]();
});

test("a signal that was aborted before ends the request before any step", async () => {
  const { engine, backend } = createFakeEngine();
  const { sequences } = await collect(engine.generate(generationRequest([1]), AbortSignal.abort()));
  assert.deepEqual([sequences[0]?.finishReason, sequences[0]?.tokens], ["abort", []]);
  const promptTokens = Int32Array.of(1);
  const embedding = engine.embed(
    { kind: "embed", requestId: "e", promptTokens, pooling: "last", normalize: true },
    AbortSignal.abort(),
  );
  await assert.rejects(embedding, { code: "request_cancelled" });
  assert.equal(backend.numSteps, 0);
  await engine[Symbol.asyncDispose]();
});

test("signals are let go when their request is over", async () => {
  const { engine } = createFakeEngine();
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...parameters: Parameters<typeof add>): void => {
    listeners += 1;
    add(...parameters);
  };
  signal.removeEventListener = (...parameters: Parameters<typeof remove>): void => {
    listeners -= 1;
    remove(...parameters);
  };
  await collect(engine.generate(generationRequest([1]), signal));
  assert.equal(listeners, 0);
  controller.abort();
  await engine[Symbol.asyncDispose]();
});

test("a request without a reader completes and keeps one merged delta", async () => {
  const { engine } = createFakeEngine();
  const unread = engine.generate(generationRequest([1, 2], { maxTokens: 90 }));
  await engine.drain(60_000);
  const { events, sequences } = await collect(unread);
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ["delta", "done"],
  );
  assert.equal(sequences[0]?.tokens.length, 90);
  await engine[Symbol.asyncDispose]();
});

test("ten thousand random aborts return the pool to its start", async () => {
  const random = new TestRandom(6);
  const { engine, backend } = createFakeEngine({
    numBlocks: 48,
    blockSize: 4,
    maxModelLen: 64,
    maxQueuedRequests: 20_000,
    hooks: { afterStep: (running) => running.checkIntegrity() },
  });
  const numRequests = 10_000;
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const one = async (index: number): Promise<void> => {
    const pick = (below: number): number => random.below(below);
    const prompt = Array.from({ length: 1 + pick(30) }, (_, position) => (position * (1 + (index % 3))) % 60);
    const controller = new AbortController();
    const params = { maxTokens: 1 + pick(20), n: 1 + (pick(8) === 0 ? 2 : 0), presencePenalty: pick(2) };
    const wait = pick(16);
    if (pick(5) === 0) {
      const request = {
        kind: "embed",
        requestId: "e",
        promptTokens: Int32Array.from(prompt),
        pooling: "mean",
        normalize: true,
      } as const;
      const embedded = engine.embed(request, controller.signal).catch((error: unknown) => error);
      for (let turns = 0; turns < wait; turns += 1) await turn();
      controller.abort();
      await embedded;
      return;
    }
    const generation = engine.generate(generationRequest(prompt, params), controller.signal);
    const events = generation[Symbol.asyncIterator]();
    if (pick(2) === 0) {
      for (let turns = 0; turns < wait; turns += 1) await turn();
      controller.abort();
    } else {
      for (let reads = 0; reads < wait; reads += 1) await events.next();
      await events.return?.();
    }
  };
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < numRequests) {
      next += 1;
      await one(next);
    }
  };
  await Promise.all(Array.from({ length: 24 }, worker));
  await engine.drain(60_000);
  assert.equal(engine.failure, undefined);
  engine.checkIntegrity();
  const { freeBlocks, cachedBlocks, totalBlocks, running, waiting } = engine.stats;
  assert.deepEqual([freeBlocks + cachedBlocks, running, waiting], [totalBlocks, 0, 0]);
  assert.equal(engine.resetPrefixCache(), true);
  assert.equal(engine.stats.freeBlocks, totalBlocks);
  assert.equal(backend.numLiveSamplerStates, 0);
  assert(backend.numSteps > 1000, "the requests really ran");
  await engine[Symbol.asyncDispose]();
});
