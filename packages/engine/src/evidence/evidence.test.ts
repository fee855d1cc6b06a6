import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { FakeBackendOptions } from "../testing/fakes/fake-backend.js";
import {
  collect,
  createFakeEngine,
  type FixtureOptions,
  generationRequest,
} from "../testing/fakes/engine-fixture.js";
import { Random } from "@octavo/text/testing/random";
import { VirtualClock } from "../testing/fakes/virtual-clock.js";
import type { StepRecord } from "../api.js";

/** Steps that take some time for each token, and nothing else that takes any. */
function costly(clock: VirtualClock): Omit<FakeBackendOptions, "vocabSize"> {
  return { answersAtOnce: true, computeMs: ({ numTokens }) => 0.3 + 0.05 * numTokens, clock };
}

const roomy: FixtureOptions = {
  numBlocks: 512,
  maxModelLen: 600,
  maxNumBatchedTokens: 256,
  maxPrefillStepMs: 0,
};

function tokens(count: number, seed: number): number[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => random.below(60));
}

describe("attribution", () => {
  test("the requests' parts of the backend's time add up to it, aborted and failed ones included", async () => {
    const { engine } = createFakeEngine({ numBlocks: 40, maxNumBatchedTokens: 48 });
    const steps: StepRecord[] = [];
    const settled: (readonly [string, number])[] = [];
    using _ = engine.observe({
      onStep: (step) => void steps.push(step),
      onSettled: ({ requestId, kernelMs }) => void settled.push([requestId, kernelMs]),
    });
    const random = new Random(3);
    const ids: string[] = [];
    await Promise.all(
      Array.from({ length: 40 }, async (__, index) => {
        const request = generationRequest(tokens(1 + random.below(60), index), {
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
      promptTokens: Int32Array.from(tokens(30, 99)),
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

  test("a request that fails, and one in a step that never ended, are settled too", async () => {
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
      ...generationRequest(tokens(5, index), { maxTokens: 20 }),
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

  test("the record counts steps, neighbours, blocks, cache hits and what preemption cost", async () => {
    const { engine } = createFakeEngine({ numBlocks: 16, maxModelLen: 48, maxNumBatchedTokens: 64 });
    const prompt = tokens(16, 1);
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
        collect(engine.generate(generationRequest(tokens(12, 10 + index), { maxTokens: 24 }))),
      ),
    );
    const records = crowd.map(({ record }) => record!);
    assert(records.some(({ preemptions }) => preemptions > 0));
    for (const record of records) assert.equal(record.recomputedTokens > 0, record.preemptions > 0);
    assert(records.some(({ batchSize }) => batchSize.max === 4));
    assert(records.every(({ blocksAllocated }) => blocksAllocated >= 9));
    await engine[Symbol.asyncDispose]();
  });

  test("neighbours are those who were there meanwhile, as they would have to be sent again", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...roomy, backend: costly(clock) });
    const before = generationRequest(tokens(8, 1), { maxTokens: 2 });
    await collect(engine.generate(before));
    clock.advance(5);
    const early = generationRequest(tokens(40, 2), { maxTokens: 12 }, { account: { tenant: "big" } });
    const own = generationRequest(tokens(8, 1), { maxTokens: 4, n: 2 });
    const late = generationRequest(tokens(20, 4), { maxTokens: 30 });
    const answers = [collect(engine.generate(early))];
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(3);
    answers.push(collect(engine.generate(own)), collect(engine.generate(late)));
    const [, answer] = await Promise.all(answers);
    clock.advance(1);
    await collect(engine.generate(generationRequest(tokens(8, 5), { maxTokens: 2 })));
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

  test("neighbours of one that runs are known too, and those that are too many are the least busy", async () => {
    const { engine } = createFakeEngine({ ...roomy, numBlocks: 8192, maxNumSeqs: 8 });
    const own = generationRequest(tokens(8, 1), { maxTokens: 60 });
    const crowd = Array.from({ length: 600 }, (_, index) =>
      generationRequest(tokens(4 + (index % 7), index), { maxTokens: 1 }),
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

  test("the record says how many requests were waiting when it came", async () => {
    const { engine } = createFakeEngine({ maxNumSeqs: 1 });
    const requests = Array.from({ length: 4 }, (_, index) =>
      generationRequest(tokens(4, index), { maxTokens: 3 }),
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

  test("a prompt whose cached blocks were evicted is known to be computed again for that reason", async () => {
    using clock = new VirtualClock();
    // The memory of evictions is a table that one hash in thousands overwrites: engines differ in their hashes.
    const recompute = async () => {
      const { engine } = createFakeEngine({ numBlocks: 16, maxModelLen: 60, backend: costly(clock) });
      const prompt = tokens(40, 1);
      await collect(engine.generate(generationRequest(prompt, { maxTokens: 1 })));
      await collect(engine.generate(generationRequest(tokens(50, 2), { maxTokens: 8 })));
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
    const fresh = await collect(engine.generate(generationRequest(tokens(40, 5), { maxTokens: 2 })));
    assert.equal(fresh.record?.evictedPrefixTokens, 0);
    for (const run of runs) await run.engine[Symbol.asyncDispose]();
  });

  test("time for which the reader left output lying is counted", async () => {
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

describe("blame", () => {
  test("a burst of prompt tokens that slowed a stream is named, every time", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...roomy, backend: costly(clock) });
    for (let run = 0; run < 25; run += 1) {
      const stream = generationRequest(tokens(8, 2 * run), { maxTokens: 14 });
      const burst = generationRequest(tokens(500, 2 * run + 1), { maxTokens: 1 });
      let injected: Promise<unknown> | undefined;
      let numDeltas = 0;
      for await (const event of engine.generate(stream)) {
        if (event.kind === "delta" && (numDeltas += 1) === 7) injected = collect(engine.generate(burst));
      }
      await injected;
      const evidence = engine.evidence.request(stream.requestId);
      assert(evidence !== undefined);
      const bursts = evidence.slowGaps.flatMap(({ parts }) =>
        parts.filter(({ cause }) => cause === "prefill_burst"),
      );
      assert(bursts.length > 0, `run ${run}: ${JSON.stringify(evidence.slowGaps)}`);
      for (const { requests } of bursts) {
        assert.deepEqual(
          requests?.map(({ requestId }) => requestId),
          [burst.requestId],
        );
        assert(requests[0]!.tokens >= 200);
      }
    }
    await engine[Symbol.asyncDispose]();
  });

  test("nobody is blamed where nobody came", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...roomy, backend: costly(clock) });
    for (let run = 0; run < 25; run += 1) {
      const stream = generationRequest(tokens(8, run), { maxTokens: 14 });
      await collect(engine.generate(stream));
      const evidence = engine.evidence.request(stream.requestId);
      assert(evidence !== undefined);
      for (const gap of [...evidence.slowGaps, evidence.firstToken!]) {
        assert(gap.parts.every(({ requests }) => requests === undefined));
        assert.notEqual(gap.cause, "prefill_burst");
      }
    }
    await engine[Symbol.asyncDispose]();
  });

  test("an explanation's parts add up to its span", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({
      ...roomy,
      numBlocks: 160,
      maxModelLen: 200,
      backend: costly(clock),
    });
    const requests = Array.from({ length: 12 }, (_, index) =>
      generationRequest(tokens(20 + 5 * index, index), { maxTokens: 30, n: 1 + (index % 2) }),
    );
    await Promise.all(requests.map((request) => collect(engine.generate(request))));
    let numExplained = 0;
    for (const { requestId } of requests) {
      const evidence = engine.evidence.request(requestId)!;
      for (const explanation of [evidence.firstToken!, ...evidence.slowGaps]) {
        const sum = explanation.parts.reduce((total, { ms }) => total + ms, 0);
        assert(Math.abs(sum - explanation.ms) < 1e-6 + 1e-6 * explanation.ms);
        assert(explanation.parts.every(({ ms }) => ms > 0));
        numExplained += 1;
      }
    }
    assert(numExplained >= requests.length);
    await engine[Symbol.asyncDispose]();
  });

  test("a preempted stream's gap is put down to the preemption, and to whoever needed the blocks", async () => {
    using clock = new VirtualClock();
    let isForced = false;
    const { engine } = createFakeEngine({
      ...roomy,
      backend: costly(clock),
      hooks: {
        choosePreemptions: (running) => {
          const victim = running.findIndex(
            ({ numTokens, requestId }) => requestId === "victim" && numTokens === 60,
          );
          if (victim === -1 || isForced) return [];
          isForced = true;
          return [victim];
        },
      },
      enablePrefixCaching: false,
    });
    const stream = generationRequest(tokens(50, 1), { maxTokens: 20 }, { requestId: "victim" });
    const { record } = await collect(engine.generate(stream));
    assert.equal(record?.preemptions, 1);
    assert.equal(record.recomputedTokens, 59);
    const gap = engine.evidence.request("victim")?.slowGaps.find(({ cause }) => cause === "preemption");
    assert(gap !== undefined);
    assert.equal(gap.parts.find(({ cause }) => cause === "preemption")?.tokens, 60);
    await engine[Symbol.asyncDispose]();

    const small = createFakeEngine({
      numBlocks: 24,
      maxModelLen: 80,
      maxNumBatchedTokens: 256,
      enablePrefixCaching: false,
      backend: costly(clock),
    });
    const pair = [0, 1].map((index) => generationRequest(tokens(30, index), { maxTokens: 48 }));
    const [, late] = await Promise.all(pair.map((request) => collect(small.engine.generate(request))));
    assert.equal(late?.record?.preemptions, 1);
    const slow = small.engine.evidence.request(pair[1]!.requestId)?.slowGaps[0];
    assert.equal(slow?.cause, "preemption");
    assert.deepEqual(
      slow.parts.find(({ cause }) => cause === "preemption")?.requests?.map(({ requestId }) => requestId),
      [pair[0]!.requestId],
    );
    await small.engine[Symbol.asyncDispose]();
  });

  test("a first token that came late from the queue names those who were computed meanwhile", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...roomy, maxNumSeqs: 1, backend: costly(clock) });
    const first = generationRequest(tokens(300, 1), { maxTokens: 30 });
    const second = generationRequest(tokens(4, 2), { maxTokens: 2 });
    await Promise.all([first, second].map((request) => collect(engine.generate(request))));
    const explanation = engine.evidence.request(second.requestId)?.firstToken;
    assert.equal(explanation?.cause, "queue");
    assert.equal(explanation.parts[0]?.requests?.[0]?.requestId, first.requestId);
    await engine[Symbol.asyncDispose]();
  });

  test("time before the engine is preparation, and its grammar's part is told apart", async () => {
    const { engine } = createFakeEngine();
    const arrivalMs = performance.now() - 1000;
    const request = generationRequest([1, 2], { maxTokens: 2 }, { arrivalMs, grammarMs: 700 });
    await collect(engine.generate(request));
    const explanation = engine.evidence.request(request.requestId)?.firstToken;
    assert.equal(explanation?.cause, "grammar");
    assert.equal(explanation.parts[0]?.ms, 700);
    assert.equal(explanation.parts[1]?.cause, "preparation");
    await engine[Symbol.asyncDispose]();
  });

  test("requests are remembered while they run and for a while after, and no longer", async () => {
    const { engine } = createFakeEngine();
    assert.equal(engine.evidence.request("nobody"), undefined);
    const first = generationRequest([1], { maxTokens: 5 });
    for await (const event of engine.generate(first)) {
      if (event.kind === "delta") assert(engine.evidence.request(first.requestId) !== undefined);
    }
    assert.equal(engine.evidence.request(first.requestId)?.isOver, true);
    const rest = Array.from({ length: 2100 }, () => generationRequest([1], { maxTokens: 1 }));
    for (let start = 0; start < rest.length; start += 100)
      await Promise.all(rest.slice(start, start + 100).map((request) => collect(engine.generate(request))));
    assert.equal(engine.evidence.request(first.requestId), undefined);
    assert(engine.evidence.request(rest.at(-1)!.requestId) !== undefined);
    await engine[Symbol.asyncDispose]();
  });
});
