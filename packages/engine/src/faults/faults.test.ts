import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  collect,
  createFakeEngine,
  type FixtureOptions,
  generationRequest,
} from "../testing/fakes/engine-fixture.js";
import type { RunningEngine } from "../engine-options.js";
import type { Fault, RequestFaults } from "./fault.js";

const prompt = Array.from({ length: 18 }, (_, index) => (index * 7) % 60);
const params = { maxTokens: 12 };

/** An engine that takes faults and is checked after every step, and how often each kind happened. */
function faultyEngine(options: FixtureOptions = {}) {
  const { engine } = createFakeEngine({
    enableFaultInjection: true,
    ...options,
    hooks: { afterStep: (running) => running.checkIntegrity() },
  });
  const counts: Record<string, number> = {};
  engine.observe({ onFault: (kind) => (counts[kind] = (counts[kind] ?? 0) + 1) });
  return { engine, counts, faults: engine.faults! };
}

async function run(engine: RunningEngine, faults?: RequestFaults, more: object = {}) {
  const request = generationRequest(prompt, { ...params, ...more }, { faults });
  const { sequences, record } = await collect(engine.generate(request));
  return { requestId: request.requestId, tokens: sequences.map(({ tokens }) => tokens), record: record! };
}

describe("an engine that was not asked to take faults", () => {
  test("has none of it, and refuses requests that bring some", async () => {
    const { engine } = createFakeEngine();
    assert.equal(engine.faults, undefined);
    assert.throws(() => engine.generate(generationRequest(prompt, params, { faults: {} })), {
      code: "unsupported_parameter",
      param: "octavo.faults",
    });
    await engine[Symbol.asyncDispose]();
  });
});

describe("faults tied to a request", () => {
  test("preempt it at its tokens, and it finds what it had computed", async () => {
    const { engine, counts } = faultyEngine();
    const plain = await run(engine);
    engine.faults!.add({ kind: "evict" });
    const forced = await run(engine, { preemptAtTokens: [3, 9] });
    assert.deepEqual(forced.tokens, plain.tokens);
    assert.equal(forced.record.preemptions, 2);
    // After each loss, only tokens behind the last full block are recomputed.
    assert(forced.record.recomputedTokens < 2 * 4, String(forced.record.recomputedTokens));
    assert.deepEqual(counts, { evict: 1, preempt: 2 });
    await engine[Symbol.asyncDispose]();
  });

  test("evict it at its tokens, and it computes all again", async () => {
    const { engine, counts } = faultyEngine();
    const plain = await run(engine);
    const forced = await run(engine, { evictAtTokens: [5] });
    assert.deepEqual(forced.tokens, plain.tokens);
    // What was computed: the prompt and all output tokens but the newest.
    assert.equal(forced.record.recomputedTokens, prompt.length + 5 - 1);
    assert.equal(forced.record.preemptions, 1);
    assert.deepEqual(counts, { evict: 1 });
    await engine[Symbol.asyncDispose]();
  });

  test("evict its cached prompt before it is admitted, and the evidence calls it an eviction", async () => {
    const { engine, counts } = faultyEngine();
    const plain = await run(engine);
    const cached = await run(engine);
    assert.equal(cached.record.cachedTokens, 16);
    const forced = await run(engine, { evictAtTokens: [0] });
    assert.deepEqual(forced.tokens, plain.tokens);
    assert.equal(forced.record.cachedTokens, 0);
    assert.equal(forced.record.evictedPrefixTokens, 16);
    assert.deepEqual(counts, { evict: 1 });
    assert.equal((await run(engine)).record.cachedTokens, 16, "it was cached again");
    await engine[Symbol.asyncDispose]();
  });

  test("affect each sequence of the request, also between the chunks of a prompt, and no other request", async () => {
    const { engine, counts } = faultyEngine({ maxNumBatchedTokens: 8, enablePrefixCaching: false });
    const plain = await run(engine, undefined, { n: 3, temperature: 1 });
    const [forced, neighbour] = await Promise.all([
      run(engine, { preemptAtTokens: [0, 4] }, { n: 3, temperature: 1 }),
      run(engine, undefined, { n: 3, temperature: 1 }),
    ]);
    assert.deepEqual(forced.tokens, plain.tokens);
    assert.deepEqual(neighbour.tokens, plain.tokens);
    assert.equal(counts["preempt"], 6);
    assert.equal(neighbour.record.preemptions, 0);
    await engine[Symbol.asyncDispose]();
  });

  test("are refused where they make no sense", async () => {
    const { engine } = faultyEngine();
    for (const faults of [
      { preemptAtTokens: [-1] },
      { evictAtTokens: [1.5] },
      { evictAtTokens: Array.from({ length: 65 }, (_, index) => index) },
    ])
      assert.throws(() => engine.generate(generationRequest(prompt, params, { faults })), {
        code: "invalid_request",
        param: /^octavo\.faults\./,
      });
    await engine[Symbol.asyncDispose]();
  });
});

describe("faults that stand", () => {
  test("evict what is cached: all of it, or one prefix", async () => {
    const { engine, faults } = faultyEngine();
    await run(engine);
    assert(engine.stats.cachedBlocks > 0);
    assert.equal(faults.add({ kind: "evict", promptTokens: Int32Array.from([1, 2, 3, 4]) }).numInjected, 1);
    assert((await run(engine)).record.cachedTokens > 0, "another prefix");
    faults.add({ kind: "evict", promptTokens: Int32Array.from(prompt), cacheSalt: "salt" });
    assert((await run(engine)).record.cachedTokens > 0, "the same under a salt");
    faults.add({ kind: "evict", promptTokens: Int32Array.from(prompt) });
    assert.equal((await run(engine)).record.cachedTokens, 0);
    faults.add({ kind: "evict" });
    assert.equal(engine.stats.cachedBlocks, 0);
    engine.checkIntegrity();
    assert.deepEqual(faults.active, []);
    await engine[Symbol.asyncDispose]();
  });

  test("repeat while they are active, and let every request make progress", async () => {
    const { engine, counts, faults } = faultyEngine({ maxNumBatchedTokens: 8 });
    const plain = await run(engine);
    for (const tenant of [undefined, "default"]) {
      const { id } = faults.add({ kind: "evict", tenant, durationMs: 60_000 });
      faults.add({ kind: "preempt", durationMs: 60_000 });
      const forced = await Promise.all([run(engine), run(engine)]);
      for (const { tokens } of forced) assert.deepEqual(tokens, plain.tokens);
      assert(faults.active[0]!.id === id && faults.active[0]!.numInjected > 10);
      assert.equal(faults.clear(), 2);
    }
    assert(counts["evict"]! > 20 && counts["preempt"]! > 5, JSON.stringify(counts));
    faults.add({ kind: "evict", tenant: "somebody", durationMs: 60_000 });
    assert.equal((await run(engine)).record.preemptions, 0);
    await engine[Symbol.asyncDispose]();
  });

  test("happen with their probability, reproducibly by seed", async () => {
    const outcomes = await Promise.all(
      [1, 1, 2].map(async (seed) => {
        const { engine, counts, faults } = faultyEngine();
        faults.add({ kind: "preempt", probability: 0.5, seed, durationMs: 60_000 });
        const { record } = await run(engine, undefined, { maxTokens: 60 });
        await engine[Symbol.asyncDispose]();
        return [counts["preempt"], record.recomputedTokens];
      }),
    );
    assert.deepEqual(outcomes[0], outcomes[1]);
    assert.notDeepEqual(outcomes[0], outcomes[2]);
    assert(Number(outcomes[0]?.[0]) > 10 && Number(outcomes[0]?.[0]) < 50);
  });

  test("hit a running request once where they name it", async () => {
    const { engine, faults } = faultyEngine();
    const request = generationRequest(prompt, { maxTokens: 30 });
    let added = false;
    let record;
    for await (const event of engine.generate(request)) {
      if (event.kind === "done") record = event.record;
      if (added || event.kind !== "delta") continue;
      added = true;
      faults.add({ kind: "evict", requestId: request.requestId });
      assert.equal(faults.active.length, 1);
    }
    assert.equal(record?.preemptions, 1);
    assert(record.recomputedTokens >= prompt.length);
    assert.deepEqual(faults.active, []);
    assert.throws(() => faults.add({ kind: "preempt", requestId: request.requestId }), {
      param: "request_id",
    });
    await engine[Symbol.asyncDispose]();
  });

  test("make steps slower: as computing, or between steps", async () => {
    const { engine, counts, faults } = faultyEngine({ backend: { computeMs: () => 2 } });
    const computing: number[] = [];
    const gaps: number[] = [];
    engine.observe({
      onStep: ({ computeMs, durationMs }) => {
        computing.push(computeMs);
        gaps.push(durationMs);
      },
    });
    faults.add({ kind: "throttle", factor: 3 });
    const { record } = await run(engine);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    // Timers only ever take longer, which is made up for in later steps.
    assert(sum(computing) >= 12 * 6 - 2 && sum(gaps) >= 12 * 4 - 2, `${sum(computing)} ${sum(gaps)}`);
    assert(Math.abs(record.kernelMs - sum(computing)) < 1e-6);
    assert.equal(counts["throttle"], 12);
    faults.clear();
    computing.length = 0;
    faults.add({ kind: "delay", delayMs: 8, probability: 0.3 });
    const delayed = await run(engine);
    assert(counts["delay"]! >= 1 && counts["delay"]! < 12);
    assert.deepEqual(new Set(computing), new Set([2]));
    assert(delayed.record.e2eMs >= 7 * counts["delay"]!);
    await engine[Symbol.asyncDispose]();
  });

  test("never keep an engine from ending: a wait ends when it is cleared, and when the engine is disposed", async () => {
    const { engine, faults } = faultyEngine();
    const { id } = faults.add({ kind: "delay", delayMs: 60_000 });
    const waiting = run(engine);
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(faults.clear(id + 1), 0);
    assert.equal(faults.clear(id), 1);
    assert.equal((await waiting).tokens[0]?.length, 12);
    const others = faults.add({ kind: "delay", delayMs: 60_000 });
    const evicting = faults.add({ kind: "evict", durationMs: 60_000 });
    let isDone = false;
    const held = run(engine).finally(() => (isDone = true));
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(faults.clear(evicting.id), 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(isDone, false, "the wait of one fault outlives the other fault");
    assert.equal(faults.clear(others.id), 1);
    await held;
    faults.add({ kind: "delay", delayMs: 60_000 });
    const dropped = run(engine);
    await new Promise((resolve) => setTimeout(resolve, 5));
    await engine[Symbol.asyncDispose]();
    assert((await dropped).tokens.flat().length < 12);
  });

  test("are refused out of range, and bounded in number", async () => {
    const { engine, faults } = faultyEngine();
    const bad: readonly (readonly [Fault, string])[] = [
      [{ kind: "delay", delayMs: 0 }, "delay_ms"],
      [{ kind: "delay", delayMs: 60_001 }, "delay_ms"],
      [{ kind: "delay", delayMs: Number.NaN }, "delay_ms"],
      [{ kind: "delay", delayMs: 1, probability: 0 }, "probability"],
      [{ kind: "preempt", probability: 1.1 }, "probability"],
      [{ kind: "preempt", seed: -1 }, "seed"],
      [{ kind: "preempt", requestId: "nobody" }, "request_id"],
      [{ kind: "throttle", factor: 1 }, "factor"],
      [{ kind: "throttle", factor: Number.POSITIVE_INFINITY }, "factor"],
      [{ kind: "evict", durationMs: 1e9 }, "duration_ms"],
      [{ kind: "evict", promptTokens: new Int32Array(0) }, "prompt_tokens"],
      [{ kind: "evict", promptTokens: new Int32Array(4), tenant: "a" }, "prompt_tokens"],
      [{ kind: "evict", cacheSalt: "a" }, "cache_salt"],
    ];
    for (const [fault, param] of bad)
      assert.throws(() => faults.add(fault), { code: "invalid_request", param }, JSON.stringify(fault));
    for (let index = 0; index < 64; index += 1) faults.add({ kind: "preempt" });
    assert.throws(() => faults.add({ kind: "preempt" }), { code: "invalid_request" });
    assert.equal(faults.clear(), 64);
    await engine[Symbol.asyncDispose]();
  });
});
