import assert from "node:assert/strict";
import { test } from "node:test";
import type { EngineObserver, FinishedRequest, StepRecord } from "./api.js";
import { collect, createFakeEngine, eosToken, generationRequest } from "./testing/fakes/engine-fixture.js";

test("generates tokens, text and one end", async () => {
  const { engine, backend } = createFakeEngine();
  const result = await collect(engine.generate(generationRequest([1, 2, 3], { maxTokens: 10 })));
  const [sequence] = result.sequences;
  assert.equal(sequence?.tokens.length, 10);
  assert.equal(sequence.finishReason, "length");
  assert.deepEqual(result.usage, { promptTokens: 3, completionTokens: 10, cachedTokens: 0 });
  assert.equal(result.events.filter((event) => event.kind === "done").length, 1);
  assert.equal(result.events.at(-1)?.kind, "done");
  assert.equal(backend.numSteps, 10, "one step a token, the first with the prompt");
  await engine[Symbol.asyncDispose]();
});

test("a hook may hold the next step up", async () => {
  const held: (() => void)[] = [];
  const afterStep = (): Promise<void> => new Promise((resolve) => held.push(resolve));
  const { engine, backend } = createFakeEngine({ hooks: { afterStep } });
  const running = collect(engine.generate(generationRequest([1, 2, 3], { maxTokens: 3 })));
  for (let step = 1; step <= 3; step += 1) {
    while (held.length < step) await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(backend.numSteps, step);
    held[step - 1]?.();
  }
  assert.equal((await running).sequences[0]?.tokens.length, 3);
  await engine[Symbol.asyncDispose]();
});

test("ends at EOS, at stop ids and at the context's end, each with its reason", async () => {
  const script = (context: readonly number[]): number =>
    context.length === 6 ? eosToken : context.length === 4 ? 9 : 3;
  const { engine } = createFakeEngine({ backend: { script }, maxModelLen: 10 });
  const run = async (params: Parameters<typeof generationRequest>[1]): Promise<unknown[]> => {
    const { sequences } = await collect(
      engine.generate(generationRequest([1, 2], { maxTokens: undefined, ...params })),
    );
    const [sequence] = sequences;
    return [sequence?.finishReason, sequence?.stopReason, sequence?.tokens, sequence?.text];
  };
  assert.deepEqual(await run({ ignoreEos: false }), ["stop", undefined, [3, 3, 9, 3, eosToken], "ddjd"]);
  assert.deepEqual(await run({ stopTokenIds: [9] }), ["stop", 9, [3, 3, 9], "dd"]);
  assert.deepEqual(await run({ stopTokenIds: [9], includeStopStrInOutput: true }), [
    "stop",
    9,
    [3, 3, 9],
    "ddj",
  ]);
  assert.deepEqual(await run({}), ["length", undefined, [3, 3, 9, 3, eosToken, 3, 3, 3], "ddjdddd"]);
  assert.deepEqual(await run({ stop: ["jd"] }), ["stop", "jd", [3, 3, 9, 3], "dd"]);
  await engine[Symbol.asyncDispose]();
});

test("min_tokens keeps EOS and stop ids from being sampled", async () => {
  const { engine, backend } = createFakeEngine({ backend: { script: () => eosToken } });
  const params = { ignoreEos: false, minTokens: 4, maxTokens: 10 };
  const { sequences } = await collect(engine.generate(generationRequest([1], params)));
  assert.equal(sequences[0]?.tokens.length, 5);
  assert.equal(sequences[0].tokens.indexOf(eosToken), 4);
  assert.equal(backend.numLiveSamplerStates, 0);
  await engine[Symbol.asyncDispose]();
});

test("bias, allowed ids, bad words and penalties reach the sampler", async () => {
  const { engine } = createFakeEngine({ backend: { script: () => 0 } });
  const first = async (params: Parameters<typeof generationRequest>[1]): Promise<string | undefined> => {
    const { sequences } = await collect(
      engine.generate(generationRequest([30], { maxTokens: 6, ...params })),
    );
    return sequences[0]?.text;
  };
  assert.equal(await first({}), "aaaaaa");
  assert.equal(
    await first({
      logitBias: new Map([
        [1, 100.5 + 100],
        [0, -100],
      ]),
    }),
    "bbbbbb",
  );
  assert.equal(await first({ allowedTokenIds: [2] }), "cccccc");
  assert.doesNotMatch((await first({ badWords: ["aa"] })) ?? "aa", /aa/);
  assert.doesNotMatch((await first({ badWords: ["a"] })) ?? "a", /a/);
  assert.notEqual(await first({ presencePenalty: 2, frequencyPenalty: 2, repetitionPenalty: 100 }), "aaaaaa");
  await engine[Symbol.asyncDispose]();
});

test("a seed fixes the draws, and each of n sequences has its own", async () => {
  const { engine } = createFakeEngine();
  const run = async (params: Parameters<typeof generationRequest>[1]): Promise<string[]> => {
    const { sequences } = await collect(
      engine.generate(generationRequest([1, 2, 3, 4, 5, 6], { temperature: 1, ...params })),
    );
    return sequences.map((sequence) => sequence.text);
  };
  const [alone] = await run({ seed: 42n });
  const three = await run({ seed: 42n, n: 3 });
  assert.equal(three[0], alone);
  assert.equal(new Set(three).size, 3);
  assert.deepEqual(await run({ seed: 42n, n: 3 }), three);
  assert.notDeepEqual(await run({ seed: undefined }), await run({ seed: undefined }));
  await engine[Symbol.asyncDispose]();
});

test("n sequences compute the prompt once, with the prefix cache or without", async () => {
  for (const enablePrefixCaching of [true, false]) {
    const { engine } = createFakeEngine({ enablePrefixCaching });
    let prefillTokens = 0;
    engine.observe({
      onStep: (step) => {
        prefillTokens += step.prefillTokens;
      },
    });
    const prompt = Array.from({ length: 30 }, (_, position) => position);
    const result = await collect(
      engine.generate(generationRequest(prompt, { n: 4, maxTokens: 3, temperature: 1 })),
    );
    assert.deepEqual(
      result.sequences.map((sequence) => sequence.tokens.length),
      [3, 3, 3, 3],
    );
    assert.equal(prefillTokens, 30 + 3 * 2, "siblings compute the last, partial block alone");
    assert.deepEqual(result.usage, { promptTokens: 30, completionTokens: 12, cachedTokens: 0 });
    await engine[Symbol.asyncDispose]();
  }
});

test("prompt logprobs come first, complete and with alternatives", async () => {
  const { engine } = createFakeEngine({ maxNumBatchedTokens: 3 });
  const prompt = [1, 2, 3, 4, 5, 6, 7];
  const request = generationRequest(prompt, {
    promptLogprobs: 2,
    logprobs: 1,
    maxTokens: 2,
    logprobTokenIds: [5],
  });
  const result = await collect(engine.generate(request));
  assert.equal(result.events[0]?.kind, "prompt");
  assert.equal(result.promptLogprobs?.length, 7);
  assert.equal(result.promptLogprobs[0], undefined);
  for (const [position, entry] of result.promptLogprobs.entries()) {
    if (position === 0) continue;
    assert(entry !== undefined);
    assert.equal(entry.token, prompt[position]);
    assert.equal(entry.top.length, 2);
    assert(entry.logprob < 0 && entry.rank >= 1);
  }
  const [first] = result.sequences[0]?.logprobs ?? [];
  assert.equal(first?.token, result.sequences[0]?.tokens[0]);
  assert(first?.top.some((alternative) => alternative.token === 5));
  const again = await collect(
    engine.generate(generationRequest(prompt, { promptLogprobs: 2, maxTokens: 1 })),
  );
  assert.deepEqual(again.promptLogprobs, result.promptLogprobs, "cached blocks do not hide logprobs");
  assert.equal(again.usage?.cachedTokens, 0);
  const single = await collect(engine.generate(generationRequest([1], { promptLogprobs: 0, maxTokens: 1 })));
  assert.deepEqual(single.promptLogprobs, [undefined]);
  await engine[Symbol.asyncDispose]();
});

test("prompt logprobs may begin later, and what precedes may then come from the cache", async () => {
  const { engine } = createFakeEngine({ maxNumBatchedTokens: 4 });
  const prompt = Array.from({ length: 40 }, (_, index) => 1 + (index % 7));
  const run = (promptLogprobsFrom?: number) => {
    const request = generationRequest(prompt, { promptLogprobs: 1, maxTokens: 1 });
    return collect(
      engine.generate(promptLogprobsFrom === undefined ? request : { ...request, promptLogprobsFrom }),
    );
  };
  const whole = (await run()).promptLogprobs ?? [];
  const part = await run(37);
  assert.equal(part.promptLogprobs?.length, 40);
  assert.ok(part.promptLogprobs.slice(0, 37).every((entry) => entry === undefined));
  assert.deepEqual(part.promptLogprobs.slice(37), whole.slice(37));
  assert.ok((part.usage?.cachedTokens ?? 0) > 0);
  assert.deepEqual((await run(40)).promptLogprobs, Array(40).fill(undefined));
  for (const from of [0, 41, 1.5]) {
    await assert.rejects(async () => run(from), /prompt_logprobs_from/);
  }
  await engine[Symbol.asyncDispose]();
});

test("embeds with either pooling, from the cache where it may", async () => {
  const { engine } = createFakeEngine({ maxNumBatchedTokens: 5 });
  const embed = (pooling: "mean" | "last", normalize = true): ReturnType<typeof engine.embed> =>
    engine.embed({
      kind: "embed",
      requestId: "e",
      promptTokens: Int32Array.from({ length: 13 }, (_, id) => id),
      pooling,
      normalize,
    });
  const mean = await embed("mean");
  assert(Math.abs(mean.embedding.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-6);
  assert.deepEqual(mean.usage, { promptTokens: 13, completionTokens: 0, cachedTokens: 0 });
  const last = await embed("last", false);
  assert.equal(last.usage.cachedTokens, 12);
  assert.notDeepEqual(last.embedding, mean.embedding);
  assert.deepEqual((await embed("mean")).embedding, mean.embedding);
  await engine[Symbol.asyncDispose]();
});

test("a preempted prompt resumes at its last scored row, whatever is cached beyond", async () => {
  const promptTokens = Int32Array.from({ length: 21 }, (_, position) => position);
  const run = async (preemptBefore: number | undefined): Promise<unknown> => {
    let step = 0;
    const { engine } = createFakeEngine({
      maxNumBatchedTokens: 8,
      hooks: {
        choosePreemptions: () => (step === preemptBefore ? [0] : []),
        afterStep: () => {
          step += 1;
        },
      },
    });
    await collect(engine.generate(generationRequest([...promptTokens, 1], { maxTokens: 1 })));
    step = 0;
    const embedded = await engine.embed({
      kind: "embed",
      requestId: "e",
      promptTokens,
      pooling: "mean",
      normalize: false,
    });
    step = 0;
    const scored = await collect(
      engine.generate(generationRequest([...promptTokens], { promptLogprobs: 1, maxTokens: 1 })),
    );
    const preemptions = scored.record?.preemptions;
    assert.equal(preemptions, preemptBefore === undefined ? 0 : 1);
    await engine[Symbol.asyncDispose]();
    return [embedded.embedding, scored.promptLogprobs];
  };
  const undisturbed = await run(undefined);
  for (const preemptBefore of [1, 2]) assert.deepEqual(await run(preemptBefore), undisturbed);
});

test("shares prefixes between requests, but not across salts", async () => {
  const { engine } = createFakeEngine();
  const lookups: number[][] = [];
  engine.observe({ onPrefixLookup: (queried, hit) => lookups.push([queried, hit]) });
  const prompt = Array.from({ length: 22 }, (_, position) => position);
  const cachedTokens = async (cacheSalt?: string): Promise<number | undefined> => {
    const request = generationRequest(prompt, { maxTokens: 4 }, cacheSalt === undefined ? {} : { cacheSalt });
    return (await collect(engine.generate(request))).usage?.cachedTokens;
  };
  assert.equal(await cachedTokens(), 0);
  assert.equal(await cachedTokens(), 20);
  assert.equal(await cachedTokens("a"), 0);
  assert.equal(await cachedTokens("b"), 0);
  assert.equal(await cachedTokens("a"), 20);
  assert.deepEqual(lookups, [
    [22, 0],
    [22, 20],
    [22, 0],
    [22, 0],
    [22, 20],
  ]);
  assert.equal(engine.resetPrefixCache(), true);
  assert.equal(engine.stats.cachedBlocks, 0);
  assert.equal(await cachedTokens(), 0);
  await engine[Symbol.asyncDispose]();
});

test("finds blocks of its own cache scope only, whatever salts and scopes are called", async () => {
  const { engine } = createFakeEngine();
  const prompt = Array.from({ length: 22 }, (_, position) => position);
  const names = [undefined, "a", "b", "as", "1:a", "a1:a", "o1:a", "s", "0:", "", "o0:"];
  const senders = names.flatMap((cacheScope) =>
    names.filter((salt) => salt !== "").map((cacheSalt) => ({ cacheScope, cacheSalt })),
  );
  const cachedTokens = async ({ cacheScope, cacheSalt }: (typeof senders)[number]) => {
    const request = generationRequest(
      prompt,
      { maxTokens: 1 },
      {
        account: { tenant: "same", ...(cacheScope !== undefined && { cacheScope }) },
        ...(cacheSalt !== undefined && { cacheSalt }),
      },
    );
    return (await collect(engine.generate(request))).usage?.cachedTokens;
  };
  for (const sender of senders) assert.equal(await cachedTokens(sender), 0, JSON.stringify(sender));
  const last = senders.slice(-3);
  assert.deepEqual(await Promise.all(last.map(cachedTokens)), [20, 20, 20]);
  await engine[Symbol.asyncDispose]();
});

test("observers see steps, first tokens, gaps, preemptions and ends that agree with the records", async () => {
  const { engine } = createFakeEngine({ numBlocks: 10, maxModelLen: 40, maxNumBatchedTokens: 32 });
  const steps: StepRecord[] = [];
  const finished: FinishedRequest[] = [];
  const counts = { first: 0, gaps: 0, preemptions: 0 };
  const observer: EngineObserver = {
    onStep: (step) => steps.push(step),
    onFinished: (request) => finished.push(request),
    onFirstToken: () => {
      counts.first += 1;
    },
    onInterToken: (_request, gapMs) => {
      assert(gapMs >= 0);
      counts.gaps += 1;
    },
    onPreemption: () => {
      counts.preemptions += 1;
    },
  };
  const subscription = engine.observe(observer);
  const results = await Promise.all(
    [1, 2, 3, 4].map((first) =>
      collect(engine.generate(generationRequest([first, 8, 9, 10, 11], { maxTokens: 20 }))),
    ),
  );
  subscription[Symbol.dispose]();
  await collect(engine.generate(generationRequest([1], { maxTokens: 1 })));
  assert.equal(finished.length, 4);
  assert.deepEqual(counts, {
    first: 4,
    gaps: 4 * 19,
    preemptions: finished.reduce((sum, { record }) => sum + record.preemptions, 0),
  });
  assert(counts.preemptions > 0, "ten blocks do not hold four sequences of seven");
  assert.equal(
    steps.reduce((sum, step) => sum + step.preemptions, 0),
    counts.preemptions,
  );
  assert.deepEqual(
    steps.map(({ step }) => step),
    steps.map((_, index) => index),
  );
  for (const step of steps) {
    assert(step.blocksUsed <= 10 && step.durationMs >= 0 && step.numSequences > 0);
    assert(step.prefillTokens + step.decodeTokens <= 32);
  }
  for (const { record } of results) {
    assert(record !== undefined && record.timeToFirstTokenMs !== undefined);
    assert(record.queueMs >= 0 && record.prefillMs > 0 && record.decodeMs > 0);
    assert(record.timeToFirstTokenMs >= record.queueMs && record.e2eMs >= record.timeToFirstTokenMs);
    assert(Math.abs(record.queueMs + record.prefillMs - record.timeToFirstTokenMs) < 1e-6);
  }
  await engine[Symbol.asyncDispose]();
});

test("an observer that throws is removed and affects nothing else", async () => {
  const { engine } = createFakeEngine();
  let calls = 0;
  engine.observe({
    onStep: () => {
      calls += 1;
      throw new TypeError("observer");
    },
  });
  const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
  await collect(engine.generate(generationRequest([1])));
  assert.match((await warned).message, /onStep/);
  assert.equal(calls, 1);
  assert.equal(engine.failure, undefined);
  await engine[Symbol.asyncDispose]();
});

test("leaves the event loop a turn between steps, however fast the backend", async () => {
  const { engine, backend } = createFakeEngine({ backend: { answersAtOnce: true } });
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  turn();
  await collect(engine.generate(generationRequest([1], { maxTokens: 100 })));
  isOver = true;
  assert.equal(backend.numSteps, 100);
  assert(turns >= 99, `${turns} turns in 100 steps`);
  await engine[Symbol.asyncDispose]();
});
