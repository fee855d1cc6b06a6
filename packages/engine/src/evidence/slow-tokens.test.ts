import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { collect, createFakeEngine, generationRequest } from "../testing/fakes/engine-fixture.js";
import { longContext, randomPrompt, timedSteps } from "../testing/fakes/timed-engine.js";
import { VirtualClock } from "../testing/fakes/virtual-clock.js";

describe("slow tokens", () => {
  test("a burst of prompts that slowed a stream is named, every time", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...longContext, backend: timedSteps(clock) });
    for (let run = 0; run < 25; run += 1) {
      const stream = generationRequest(randomPrompt(8, 2 * run), { maxTokens: 14 });
      const burst = generationRequest(randomPrompt(500, 2 * run + 1), { maxTokens: 1 });
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

  test("no request is blamed if there was none", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...longContext, backend: timedSteps(clock) });
    for (let run = 0; run < 25; run += 1) {
      const stream = generationRequest(randomPrompt(8, run), { maxTokens: 14 });
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
      ...longContext,
      numBlocks: 160,
      maxModelLen: 200,
      backend: timedSteps(clock),
    });
    const requests = Array.from({ length: 12 }, (_, index) =>
      generationRequest(randomPrompt(20 + 5 * index, index), { maxTokens: 30, n: 1 + (index % 2) }),
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

  test("a preempted stream's gap is attributed to the preemption and to the request that needed the blocks", async () => {
    using clock = new VirtualClock();
    let isForced = false;
    const { engine } = createFakeEngine({
      ...longContext,
      backend: timedSteps(clock),
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
    const stream = generationRequest(randomPrompt(50, 1), { maxTokens: 20 }, { requestId: "victim" });
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
      backend: timedSteps(clock),
    });
    const pair = [0, 1].map((index) => generationRequest(randomPrompt(30, index), { maxTokens: 48 }));
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

  test("a first token delayed by the queue names the requests computed meanwhile", async () => {
    using clock = new VirtualClock();
    const { engine } = createFakeEngine({ ...longContext, maxNumSeqs: 1, backend: timedSteps(clock) });
    const first = generationRequest(randomPrompt(300, 1), { maxTokens: 30 });
    const second = generationRequest(randomPrompt(4, 2), { maxTokens: 2 });
    await Promise.all([first, second].map((request) => collect(engine.generate(request))));
    const explanation = engine.evidence.request(second.requestId)?.firstToken;
    assert.equal(explanation?.cause, "queue");
    assert.equal(explanation.parts[0]?.requests?.[0]?.requestId, first.requestId);
    await engine[Symbol.asyncDispose]();
  });

  test("time before the engine is preparation, with the grammar's part separate", async () => {
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

  test("requests are kept while they run and for a while after", async () => {
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
