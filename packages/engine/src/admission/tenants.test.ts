import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { GenerationRequest, RefusedRequest } from "../api.js";
import { collect, createFakeEngine, generationRequest } from "../testing/fakes/engine-fixture.js";

/** A step takes a moment, on a clock that deadlines can see. */
const slow = { beforeStep: () => sleep(2) };

const of = (tenant: string, more: Partial<GenerationRequest> = {}): Partial<GenerationRequest> => ({
  account: { tenant },
  ...more,
});

describe("tenants in the engine", () => {
  test("a queued request learns which tenants were ahead", async () => {
    const { engine } = createFakeEngine({ maxNumSeqs: 1, backend: slow });
    const ahead = ["large", "large", "other"].map((tenant) =>
      collect(engine.generate(generationRequest([1, 2], { maxTokens: 6 }, of(tenant)))),
    );
    const request = generationRequest([3], { maxTokens: 1 }, of("small"));
    const { record } = await collect(engine.generate(request));
    await Promise.all(ahead);
    const evidence = engine.evidence.request(request.requestId);
    assert.equal(evidence?.tenant, "small");
    assert.equal(evidence?.firstToken?.cause, "queue");
    const queue = evidence?.firstToken?.parts.find(({ cause }) => cause === "queue");
    assert.deepEqual(
      queue?.tenants?.map(({ tenant }) => tenant),
      ["large", "other"],
    );
    assert.ok(queue?.requests?.every(({ tenant }) => tenant === "large" || tenant === "other"));
    assert.ok(record !== undefined && record.queueMs > 0);
    await engine[Symbol.asyncDispose]();
  });

  test("counts sequences by tenant, and names the tenant of a finished request", async () => {
    const { engine } = createFakeEngine({ maxNumSeqs: 2 });
    const finished: string[] = [];
    using _ = engine.observe({ onFinished: ({ tenant, lane }) => void finished.push(`${tenant} ${lane}`) });
    const runs = ["a", "a", "b"].map((tenant) =>
      collect(engine.generate(generationRequest([1], { maxTokens: 3 }, { account: { tenant, lane: 2 } }))),
    );
    assert.deepEqual(
      [...(engine.stats.tenants ?? [])],
      [
        ["a", { running: 0, waiting: 2 }],
        ["b", { running: 0, waiting: 1 }],
      ],
    );
    runs.push(collect(engine.generate(generationRequest([1], { maxTokens: 1 }))));
    await Promise.all(runs);
    assert.deepEqual(finished.toSorted(), ["a 2", "a 2", "b 2", "default 0"]);
    assert.equal(engine.stats.tenants?.size, 0);
    await engine[Symbol.asyncDispose]();
  });

  test("under the fair policy, a small tenant gets into a queue that another has filled", async () => {
    const { engine } = createFakeEngine({
      maxNumSeqs: 1,
      maxQueuedRequests: 4,
      schedulingPolicy: "fair",
      backend: slow,
    });
    const refused: RefusedRequest[] = [];
    using _ = engine.observe({ onRefused: (request) => void refused.push(request) });
    const large = Array.from({ length: 5 }, () =>
      collect(engine.generate(generationRequest([1], { maxTokens: 4 }, of("large")))),
    );
    const settled = Promise.allSettled(large);
    assert.throws(() => engine.generate(generationRequest([1], {}, of("large"))), { code: "queue_full" });
    const small = collect(engine.generate(generationRequest([1], { maxTokens: 2 }, of("small"))));
    assert.equal((await small).sequences[0]?.tokens.length, 2);
    const outcomes = await settled;
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "fulfilled", "fulfilled", "fulfilled", "rejected"],
    );
    const last = outcomes.at(-1);
    assert.ok(last?.status === "rejected");
    assert.equal((last.reason as { code?: string }).code, "queue_full");
    assert.deepEqual(
      refused.map(({ tenant, reason }) => `${tenant} ${reason}`),
      ["large queue_full", "large displaced"],
    );
    assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
    engine.checkIntegrity();
    await engine[Symbol.asyncDispose]();
  });

  test("an account that cannot be is refused by name", async () => {
    const { engine } = createFakeEngine();
    const wrong: readonly [Partial<GenerationRequest>, RegExp][] = [
      [{ account: { tenant: "" } }, /tenant's name must have 1 to 256 characters, not 0/],
      [{ account: { tenant: "x".repeat(300) } }, /not 300/],
      [{ account: { tenant: "a", lane: -1 } }, /lane must be an integer from 0 to 255, not -1/],
      [{ account: { tenant: "a", weight: 0 } }, /weight/],
      [{ account: { tenant: "a", weight: Number.NaN } }, /weight/],
      [{ account: { tenant: "a", maxQueuedRequests: 0.5 } }, /queue/],
      [{ deadlines: { totalMs: 0 } }, /deadline totalMs must be a number of milliseconds above 0, not 0/],
      [{ deadlines: { queueMs: Number.NaN } }, /queueMs/],
    ];
    for (const [more, message] of wrong) {
      assert.throws(() => engine.generate(generationRequest([1], {}, more)), {
        code: "invalid_request",
        message,
      });
    }
    await engine[Symbol.asyncDispose]();
  });
});

describe("deadlines", () => {
  test("end requests still queued, without a first token or incomplete, and no others", async () => {
    const { engine } = createFakeEngine({ maxNumSeqs: 1, backend: slow });
    const reasons: string[] = [];
    using _ = engine.observe({ onRefused: ({ reason }) => void reasons.push(reason) });
    const stays = collect(
      engine.generate(
        generationRequest([1], { maxTokens: 60 }, { deadlines: { queueMs: 5000, totalMs: 60_000 } }),
      ),
    );
    const ends = async (
      deadlines: NonNullable<GenerationRequest["deadlines"]>,
      message: RegExp,
    ): Promise<void> => {
      const request = generationRequest([2], { maxTokens: 100 }, { deadlines });
      await assert.rejects(collect(engine.generate(request)), { code: "deadline_exceeded", message });
    };
    await Promise.all([
      ends({ queueMs: 20, firstTokenMs: 5000 }, /was still in the queue 20 ms after it arrived/),
      ends({ queueMs: 5000, firstTokenMs: 30 }, /had no first token 30 ms/),
      ends({ totalMs: 40 }, /was not complete 40 ms/),
    ]);
    assert.equal((await stays).sequences[0]?.tokens.length, 60);
    assert.deepEqual(reasons, ["queue_deadline", "first_token_deadline", "total_deadline"]);
    engine.checkIntegrity();
    assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
    await engine[Symbol.asyncDispose]();
  });

  test("a request that is computed when its time is up gives its blocks back, with what it had delivered", async () => {
    let numSteps = 0;
    const beforeStep = (): Promise<void> => sleep(++numSteps === 4 ? 400 : 0);
    const { engine } = createFakeEngine({ backend: { beforeStep } });
    const request = generationRequest([1, 2, 3], { maxTokens: 100, n: 2 }, { deadlines: { totalMs: 200 } });
    let numTokens = 0;
    await assert.rejects(
      async () => {
        for await (const event of engine.generate(request))
          if (event.kind === "delta") numTokens += event.deltas.length;
      },
      { code: "deadline_exceeded" },
    );
    assert.ok(numTokens > 0);
    await collect(engine.generate(generationRequest([1], { maxTokens: 2 })));
    engine.checkIntegrity();
    assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
    await engine[Symbol.asyncDispose]();
  });

  test("do not affect requests that meet them, and leave no timers behind", async () => {
    const { engine } = createFakeEngine();
    const deadlines = { queueMs: 1e9, firstTokenMs: 1e9, totalMs: 1e12 };
    const done = await collect(engine.generate(generationRequest([1], { maxTokens: 4 }, { deadlines })));
    assert.equal(done.sequences[0]?.finishReason, "length");
    const embedded = await engine.embed({
      kind: "embed",
      requestId: "e",
      promptTokens: Int32Array.of(1, 2),
      pooling: "last",
      normalize: true,
      account: { tenant: "a" },
      deadlines,
    });
    assert.equal(embedded.usage.promptTokens, 2);
    await engine[Symbol.asyncDispose]();
  });
});
