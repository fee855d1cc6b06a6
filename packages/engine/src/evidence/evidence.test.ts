import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { StepRecord } from "../api.js";
import { collect, createFakeEngine, generationRequest } from "../testing/fakes/engine-fixture.js";
import { longContext, randomPrompt, timedSteps } from "../testing/fakes/timed-engine.js";
import { TestRandom } from "@octavo/text/testing/random";
import { VirtualClock } from "../testing/fakes/virtual-clock.js";

describe("attribution", () => {
  test("the requests' shares add up to the compute time, aborted and failed ones included", async () => {
    const { engine } = createFakeEngine({ numBlocks: 40, maxNumBatchedTokens: 48 });
    const steps: StepRecord[] = [];
    const settled: (readonly [string, number])[] = [];
    using _ = engine.observe({
      onStep: (step) => void steps.push(step),
      onSettled: ({ requestId, kernelMs }) => void settled.push([requestId, kernelMs]),
    });
    const random = new TestRandom(3);
    const ids: string[] = [];
    await Promise.all(
      Array.from({ length: 40 }, async (__, index) => {
        const request = generationRequest(randomPrompt(1 + random.below(60), index), {
          maxTokens: 1 + random.below(20),
          n: 1 + random.below(3),
        });
        ids.push(request.requestId);
        const controller = new AbortController();
        let numEvents = 0;
        for await (const event of engine.generate(request, controller.signal)) {
          numEvents += 1;
          if (index % 7 === 0 && event.kind === "delta" && numEvents === 3) controller.abort();
        }
      }),
    );
    const vector = await engine.embed({
      kind: "embed",
      requestId: "embedding",
      promptTokens: Int32Array.from(randomPrompt(30, 99)),
      pooling: "mean",
      normalize: false,
    });
    assert.equal(vector.usage.promptTokens, 30);
    const busyMs = steps.reduce((sum, { computeMs }) => sum + computeMs, 0);
    const attributedMs = [...ids, "embedding"].reduce(
      (sum, id) => sum + (engine.evidence.request(id)?.record.kernelMs ?? Number.NaN),
      0,
    );
    assert(Math.abs(attributedMs / busyMs - 1) < 1e-9, `${attributedMs} of ${busyMs} ms`);
    const settledMs = settled.reduce((sum, [, kernelMs]) => sum + kernelMs, 0);
    assert(Math.abs(settledMs / busyMs - 1) < 1e-9, `${settledMs} of ${busyMs} ms are settled`);
    assert.deepEqual(settled.map(([requestId]) => requestId).toSorted(), [...ids, "embedding"].toSorted());
    assert(steps.every(({ prefillMs, computeMs }) => prefillMs >= 0 && prefillMs <= computeMs + 1e-9));
    assert(steps.every(({ prefillMs, prefillTokens }) => prefillMs > 0 === prefillTokens > 0));
    const logged = engine.evidence.steps;
    assert.deepEqual(
      logged.map(({ step, computeMs, prefillTokens, decodeTokens }) => ({
        step,
        computeMs,
        prefillTokens,
        decodeTokens,
      })),
      steps.map(({ step, computeMs, prefillTokens, decodeTokens }) => ({
        step,
        computeMs,
        prefillTokens,
        decodeTokens,
      })),
    );
    await engine[Symbol.asyncDispose]();
  });

  test("failed requests and those of an unfinished step are settled too", async () => {
    let calls = 0;
    const { engine } = createFakeEngine({
      backend: {
        answersAtOnce: true,
        computeMs: () => {
          calls += 1;
          if (calls >= 4) throw new OctavoError("internal_error", "the backend broke");
          return 0.1;
        },
      },
    });
    const settled: (readonly [string, object | undefined])[] = [];
    using _ = engine.observe({
      onSettled: ({ requestId, owner }) => void settled.push([requestId, owner]),
    });
    const owner = {};
    const requests = [0, 1, 2].map((index) => ({
      ...generationRequest(randomPrompt(5, index), { maxTokens: 20 }),
      owner,
    }));
    const ended = await Promise.allSettled(requests.map((request) => collect(engine.generate(request))));
    assert.deepEqual(
      ended.map(({ status }) => status),
      ["rejected", "rejected", "rejected"],
    );
    const ids = settled.map(([requestId]) => requestId);
    assert.deepEqual(ids.toSorted(), requests.map(({ requestId }) => requestId).toSorted());
    assert(settled.every(([, carried]) => carried === owner));
    await engine[Symbol.asyncDispose]();
  });

  test("the record counts steps, neighbours, blocks, cache hits and recomputed tokens", async () => {
    const { engine } = createFakeEngine({ numBlocks: 16, maxModelLen: 48, maxNumBatchedTokens: 64 });
    const prompt = randomPrompt(16, 1);
    await collect(engine.generate(generationRequest(prompt, { maxTokens: 2 })));
    const again = await collect(engine.generate(generationRequest(prompt, { maxTokens: 4 })));
    assert(again.record !== undefined);
    assert.equal(again.record.cachedTokens, 12);
    assert.equal(again.record.cacheHitRatio, 0.75);
    assert.equal(again.record.blocksHit, 3);
    assert.equal(again.record.blocksAllocated, 2);
    assert.equal(again.record.numSteps, 4);
    assert.equal(again.record.gaps.count, 3);
    assert.deepEqual(again.record.batchSize, { min: 1, mean: 1, max: 1 });
    assert.deepEqual(again.record.sharedPrefillTokens, { min: 0, mean: 0, max: 0 });

    // Four of ten blocks each: not all of them fit to the end.
    const crowd = await Promise.all(
      Array.from({ length: 4 }, (_, index) =>
        collect(engine.generate(generationRequest(randomPrompt(12, 10 + index), { maxTokens: 24 }))),
      ),
    );
    const records = crowd.map(({ record }) => record!);
    assert(records.some(({ preemptions }) => preemptions > 0));
    for (const record of records) assert.equal(record.recomputedTokens > 0, record.preemptions > 0);
    assert(records.some(({ batchSize }) => batchSize.max === 4));
    assert(records.every(({ blocksAllocated }) => blocksAllocated >= 9));
    await engine[Symbol.asyncDispose]();
  });

  test("neighbours are the requests present meanwhile, as needed for a replay", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...longContext, backend: timedSteps(clock) });
    const before = generationRequest(randomPrompt(8, 1), { maxTokens: 2 });
    await collect(engine.generate(before));
    clock.advance(5);
    const early = generationRequest(randomPrompt(40, 2), { maxTokens: 12 }, { account: { tenant: "big" } });
    const own = generationRequest(randomPrompt(8, 1), { maxTokens: 4, n: 2 });
    const late = generationRequest(randomPrompt(20, 4), { maxTokens: 30 });
    const answers = [collect(engine.generate(early))];
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(3);
    answers.push(collect(engine.generate(own)), collect(engine.generate(late)));
    const [, answer] = await Promise.all(answers);
    clock.advance(1);
    await collect(engine.generate(generationRequest(randomPrompt(8, 5), { maxTokens: 2 })));
    const found = engine.evidence.neighbours(own.requestId)!;
    assert.equal(found.numOmitted, 0);
    assert.deepEqual(
      found.neighbours.map(({ requestId }) => requestId),
      [early.requestId, late.requestId],
    );
    const { request } = found;
    assert.equal(request.requestId, own.requestId);
    assert.deepEqual([request.promptTokens, request.outputTokens], [8, [4, 4]]);
    assert.equal(request.arrivalOffsetMs, 0);
    assert.equal(request.cachedTokens, answer!.record!.cachedTokens);
    assert(Math.abs(request.kernelMsMeanwhile - answer!.record!.kernelMs) < 1e-9);
    assert.equal(request.e2eMs, answer!.record!.e2eMs);
    const [big, other] = found.neighbours;
    assert(big !== undefined && other !== undefined);
    assert.equal(big.tenant, "big");
    assert.deepEqual([big.promptTokens, big.outputTokens, big.cachedTokens], [40, [12], 0]);
    assert(big.arrivalOffsetMs < 0 && other.arrivalOffsetMs >= 0);
    const late30 = engine.evidence.request(late.requestId)!.record.kernelMs;
    assert(other.kernelMsMeanwhile > 0 && other.kernelMsMeanwhile < late30);
    assert(other.tokensMeanwhile >= 20 && other.tokensMeanwhile < 49);
    assert.equal(engine.evidence.neighbours("nobody"), undefined);
    await engine[Symbol.asyncDispose]();
  });

  test("running requests have neighbours too; beyond the limit, the least busy are omitted", async () => {
    const { engine } = createFakeEngine({ ...longContext, numBlocks: 8192, maxNumSeqs: 8 });
    const own = generationRequest(randomPrompt(8, 1), { maxTokens: 60 });
    const crowd = Array.from({ length: 600 }, (_, index) =>
      generationRequest(randomPrompt(4 + (index % 7), index), { maxTokens: 1 }),
    );
    const waiting = [own, ...crowd].map((request) => collect(engine.generate(request)));
    await waiting[300];
    const found = engine.evidence.neighbours(own.requestId)!;
    assert.equal(found.neighbours.length, 512);
    assert.equal(found.numOmitted, 88);
    const minBusy = Math.min(...found.neighbours.map(({ kernelMsMeanwhile }) => kernelMsMeanwhile));
    assert.equal(minBusy, 0);
    assert(found.neighbours.some(({ isOver }) => isOver) && found.neighbours.some(({ isOver }) => !isOver));
    assert(found.neighbours.every(({ isOver, e2eMs }) => isOver === (e2eMs !== undefined)));
    await Promise.all(waiting);
    await engine[Symbol.asyncDispose]();
  });

  test("the record has the queue depth at arrival", async () => {
    const { engine } = createFakeEngine({ maxNumSeqs: 1 });
    const requests = Array.from({ length: 4 }, (_, index) =>
      generationRequest(randomPrompt(4, index), { maxTokens: 3 }),
    );
    const depths: number[] = [];
    const answers = requests.map((request) => {
      depths.push(engine.queueDepth);
      return collect(engine.generate(request));
    });
    const records = (await Promise.all(answers)).map(({ record }) => record!.queueDepthAtArrival);
    assert.deepEqual(records, [0, 1, 2, 3]);
    assert.deepEqual(records, depths);
    assert.equal(engine.queueDepth, 0);
    await engine[Symbol.asyncDispose]();
  });

  test("recomputing a prompt whose cached blocks were evicted is attributed to eviction", async () => {
    using clock = new VirtualClock();
    // The memory of evictions is a table that one hash in thousands overwrites: engines differ in their hashes.
    const recompute = async () => {
      const { engine } = createFakeEngine({ numBlocks: 16, maxModelLen: 60, backend: timedSteps(clock) });
      const prompt = randomPrompt(40, 1);
      await collect(engine.generate(generationRequest(prompt, { maxTokens: 1 })));
      await collect(engine.generate(generationRequest(randomPrompt(50, 2), { maxTokens: 8 })));
      const again = generationRequest(prompt, { maxTokens: 2 });
      return { engine, request: again, record: (await collect(engine.generate(again))).record! };
    };
    const runs = [await recompute(), await recompute(), await recompute()];
    const whole = runs.find(
      ({ record }) =>
        record.evictedPrefixTokens >= 20 && record.evictedPrefixTokens + record.cachedTokens === 36,
    );
    assert(whole !== undefined, JSON.stringify(runs.map(({ record }) => record.evictedPrefixTokens)));
    const { engine, request } = whole;
    const evidence = engine.evidence.request(request.requestId);
    assert.equal(evidence?.firstToken?.cause, "eviction");
    const fresh = await collect(engine.generate(generationRequest(randomPrompt(40, 5), { maxTokens: 2 })));
    assert.equal(fresh.record?.evictedPrefixTokens, 0);
    for (const run of runs) await run.engine[Symbol.asyncDispose]();
  });

  test("the time that output waits for its reader is counted", async () => {
    const { engine } = createFakeEngine();
    const request = generationRequest([1, 2, 3], { maxTokens: 30 });
    for await (const event of engine.generate(request)) {
      if (event.kind === "delta") await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const record = engine.evidence.request(request.requestId)?.record;
    assert(record !== undefined && record.readerLagMs > 10, `${record?.readerLagMs} ms`);
    await engine[Symbol.asyncDispose]();
  });
});
