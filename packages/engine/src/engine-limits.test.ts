import assert from "node:assert/strict";
import { test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { collect, createFakeEngine, generationRequest } from "./testing/fakes/engine-fixture.js";

test("refuses at once what it cannot serve, with both counts", async () => {
  const { engine, backend } = createFakeEngine({ maxModelLen: 16 });
  const long = Array.from({ length: 16 }, () => 1);
  const refusals: [Parameters<typeof generationRequest>, string, RegExp][] = [
    [
      [long],
      "context_length_exceeded",
      /maximum context length is 16 tokens\. However, your request has 16 input tokens/,
    ],
    [
      [[1, 2], { maxTokens: 15 }],
      "context_length_exceeded",
      /16 tokens\. .* 2 input tokens and asks for 15 output/,
    ],
    [[[]], "invalid_request", /empty/],
    [[[1, 64]], "invalid_request", /Token id 64 at position 1/],
    [[[-1]], "invalid_request", /Token id -1/],
    [[[1], { maxTokens: 1 }, { priority: 1 }], "invalid_request", /policy 'priority'/],
    [[[1], { maxTokens: 1 }, { priority: Number.NaN }], "invalid_request", /integer/],
    [[[1], { maxTokens: 1 }, { cacheSalt: "" }], "invalid_request", /cache_salt/],
  ];
  for (const [request, code, message] of refusals) {
    assert.throws(() => engine.generate(generationRequest(...request)), { code, message });
  }
  const embedding = { kind: "embed", requestId: "e", pooling: "last", normalize: true } as const;
  await assert.rejects(engine.embed({ ...embedding, promptTokens: Int32Array.from([...long, 1]) }), {
    code: "context_length_exceeded",
    message: /17 input tokens/,
  });
  await engine.embed({ ...embedding, promptTokens: Int32Array.from(long) });
  assert.equal(backend.numSteps, 1);
  await engine[Symbol.asyncDispose]();
});

test("an engine that could not serve its greatest sequence does not start", () => {
  assert.throws(() => createFakeEngine({ numBlocks: 31 }), {
    code: "invalid_option",
    message: /max_model_len to at most 124/,
  });
  assert.throws(() => createFakeEngine({ enableChunkedPrefill: false }), {
    code: "invalid_option",
    message: /chunked prefill/,
  });
  for (const options of [
    { maxNumSeqs: 0 },
    { maxNumBatchedTokens: -1 },
    { maxModelLen: 1.5 },
    { maxQueuedRequests: Number.NaN },
  ]) {
    assert.throws(() => createFakeEngine(options), { code: "invalid_option" });
  }
});

test("limits its queue and says when to retry", async () => {
  const { engine } = createFakeEngine({ maxNumSeqs: 2, maxQueuedRequests: 3 });
  const accepted = Array.from({ length: 5 }, () =>
    collect(engine.generate(generationRequest([1], { maxTokens: 3 }))),
  );
  let refusal: unknown;
  try {
    engine.generate(generationRequest([1]));
  } catch (thrown) {
    refusal = thrown;
  }
  assert(refusal instanceof OctavoError && refusal.code === "queue_full");
  assert(refusal.retryAfterSeconds !== undefined && refusal.retryAfterSeconds >= 1);
  await Promise.all(accepted);
  await collect(engine.generate(generationRequest([1])));
  await engine[Symbol.asyncDispose]();
});

test("accepts a batch whole or not at all", async () => {
  const { engine } = createFakeEngine({ maxNumSeqs: 1, maxQueuedRequests: 2 });
  const ofBatch = (batch: object) => generationRequest([1], { maxTokens: 2 }, { batch });
  const batch = {};
  const accepted = Array.from({ length: 10 }, () => collect(engine.generate(ofBatch(batch))));
  assert.throws(() => engine.generate(ofBatch({})), { code: "queue_full" });
  assert.throws(() => engine.generate(ofBatch(batch)), { code: "queue_full" });
  assert.equal((await Promise.all(accepted)).length, 10);
  await engine[Symbol.asyncDispose]();
});

test("one signal may stand for many requests", async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", onWarning);
  const { engine } = createFakeEngine();
  const { signal } = new AbortController();
  await Promise.all(
    Array.from({ length: 30 }, () =>
      collect(engine.generate(generationRequest([1], { maxTokens: 2 }), signal)),
    ),
  );
  await engine[Symbol.asyncDispose]();
  process.off("warning", onWarning);
  assert.deepEqual(warnings, []);
});

test("a prompt changed by its caller after it was queued is not the one that runs", async () => {
  const { engine } = createFakeEngine();
  const request = generationRequest([1, 2, 3], { maxTokens: 4, n: 2 });
  const expected = await collect(engine.generate(request));
  const changed = collect(engine.generate(request));
  request.promptTokens.fill(7);
  assert.deepEqual((await changed).sequences, expected.sequences);
  await engine[Symbol.asyncDispose]();
});

test("a request that leaves the queue makes room", async () => {
  const { engine } = createFakeEngine({ maxNumSeqs: 1, maxQueuedRequests: 1 });
  const running = collect(engine.generate(generationRequest([1], { maxTokens: 50 })));
  const controller = new AbortController();
  const left = collect(engine.generate(generationRequest([2]), controller.signal));
  assert.throws(() => engine.generate(generationRequest([3])), { code: "queue_full" });
  controller.abort();
  const stays = collect(engine.generate(generationRequest([3])));
  assert.equal((await left).record?.timeToFirstTokenMs, undefined);
  assert.equal((await stays).sequences[0]?.finishReason, "length");
  await running;
  await engine[Symbol.asyncDispose]();
});

test("without a queue, as many are taken as can run", async () => {
  const { engine } = createFakeEngine({ maxNumSeqs: 2, maxQueuedRequests: 0 });
  const accepted = [1, 2].map((token) => collect(engine.generate(generationRequest([token]))));
  assert.throws(() => engine.generate(generationRequest([1])), { code: "queue_full" });
  await Promise.all(accepted);
  await engine[Symbol.asyncDispose]();
});

test("a neighbour's hostile request costs only itself", async () => {
  const { engine } = createFakeEngine({
    backend: {
      rowError: (context) => (context[0] === 5 && context.length > 6 ? "non_finite_logits" : undefined),
    },
  });
  const good = collect(engine.generate(generationRequest([1, 2, 3], { maxTokens: 12 })));
  const bad = collect(
    engine.generate(generationRequest([5, 2, 3, 4], { maxTokens: 12, n: 2, temperature: 1 })),
  );
  await assert.rejects(bad, { code: "internal_error", message: /not finite/ });
  assert.equal((await good).sequences[0]?.tokens.length, 12);
  assert.equal(engine.failure, undefined);
  engine.checkIntegrity();
  const again = engine.generate(generationRequest([5, 2, 3, 4, 6, 6, 6], { maxTokens: 2 }));
  await assert.rejects(collect(again), { code: "internal_error" });
  assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
  await engine[Symbol.asyncDispose]();
});

test("parameters that leave no token to choose are the request's fault", async () => {
  const { engine, backend } = createFakeEngine({ backend: { rowError: () => "no_token_allowed" } });
  const request = generationRequest([1], { allowedTokenIds: [2], logitBias: new Map([[2, -100]]) });
  await assert.rejects(collect(engine.generate(request)), {
    code: "invalid_request",
    param: "allowed_token_ids",
  });
  assert.equal(backend.numLiveSamplerStates, 0);
  await engine[Symbol.asyncDispose]();
});

test("a backend that keeps failing fails its requests, and no blocks leak", async () => {
  let steps = 0;
  const beforeStep = (): void => {
    steps += 1;
    if (steps >= 4) throw new RangeError("the device is gone");
  };
  const { engine, backend } = createFakeEngine({ backend: { beforeStep }, maxNumSeqs: 2 });
  const generations = [1, 2, 3].map((token) =>
    collect(engine.generate(generationRequest([token], { presencePenalty: 1 }))),
  );
  const embedding = engine.embed({
    kind: "embed",
    requestId: "e",
    promptTokens: Int32Array.of(1),
    pooling: "last",
    normalize: false,
  });
  const outcomes = await Promise.allSettled([...generations, embedding]);
  for (const outcome of outcomes) {
    assert(outcome.status === "rejected" && outcome.reason instanceof OctavoError);
    // Those who were alone in a failed step may have been put down to it.
    if (outcome.reason.code === "request_quarantined") continue;
    assert.equal(outcome.reason.code, "engine_failed");
    assert.match(outcome.reason.message, /the device is gone/);
  }
  const codes = outcomes.map(
    (outcome) => outcome.status === "rejected" && OctavoError.from(outcome.reason).code,
  );
  assert(codes.includes("engine_failed"));
  assert.equal(engine.failure?.code, "engine_failed");
  assert.throws(() => engine.generate(generationRequest([1])), { code: "engine_failed" });
  engine.checkIntegrity();
  assert.deepEqual([engine.stats.running, engine.stats.waiting, engine.stats.kvCacheUsage], [0, 0, 0]);
  assert.equal(backend.numLiveSamplerStates, 0);
  await engine.drain(10);
  await engine[Symbol.asyncDispose]();
});

test("drains: new requests are refused, running ones end", async () => {
  const { engine } = createFakeEngine({ maxNumSeqs: 1 });
  const running = collect(engine.generate(generationRequest([1], { maxTokens: 20 })));
  const waiting = collect(engine.generate(generationRequest([2], { maxTokens: 20 })));
  const drained = engine.drain(60_000);
  assert.throws(() => engine.generate(generationRequest([3])), { code: "shutting_down" });
  await drained;
  for (const result of [await running, await waiting])
    assert.equal(result.sequences[0]?.finishReason, "length");
  await engine[Symbol.asyncDispose]();
});

test("past the deadline, what still runs ends with abort", async () => {
  let release: (() => void) | undefined;
  const beforeStep = async (): Promise<void> => {
    if (release === undefined) await new Promise<void>((resolve) => (release = resolve));
  };
  const { engine } = createFakeEngine({ backend: { beforeStep } });
  const running = collect(engine.generate(generationRequest([1], { maxTokens: 50 })));
  await new Promise((resolve) => setImmediate(resolve));
  const drained = engine.drain(0);
  const result = await running;
  assert.equal(result.sequences[0]?.finishReason, "abort");
  release?.();
  await drained;
  assert.equal(engine.stats.kvCacheUsage, 0);
  await engine[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  assert.throws(() => engine.generate(generationRequest([1])), { code: "shutting_down" });
});

test("tells observers how many tokens each step gave and how long the longest sequence became", async () => {
  const { engine } = createFakeEngine({ maxNumSeqs: 3 });
  let generated = 0;
  const longest: (number | undefined)[] = [];
  engine.observe({
    onStep: (step) => void (generated += step.generatedTokens ?? Number.NaN),
    onFinished: (request) => void longest.push(request.maxSequenceTokens),
  });
  const controller = new AbortController();
  const whole = collect(engine.generate(generationRequest([1, 2], { maxTokens: 6, n: 2 })));
  const left = collect(
    engine.generate(generationRequest([3, 4], { maxTokens: 60, n: 2 }), controller.signal),
  );
  const { usage } = await whole;
  controller.abort();
  const { usage: leftUsage } = await left;
  assert.equal(generated, (usage?.completionTokens ?? 0) + (leftUsage?.completionTokens ?? 0));
  assert.equal(usage?.completionTokens, 12);
  assert.equal(longest[0], 6);
  await engine[Symbol.asyncDispose]();
});
