import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { GenerationRequest } from "../api.js";
import type { SamplingParams } from "../sampling/sampling-params.js";
import type { Grammar, GrammarSpec } from "@octavo/text/structured/grammar";
import {
  collect,
  type Collected,
  createFakeEngine,
  eosToken,
  type FixtureOptions,
  generationRequest,
} from "../testing/fakes/engine-fixture.js";
import { FakeTokenizer } from "@octavo/text/testing/fake-tokenizer";
import { type Futures, OracleDrafter } from "../testing/drafters/oracle-drafter.js";

interface Counts {
  numSteps: number;
  numDrafts: number;
  draftTokens: number;
  acceptedTokens: number;
}

interface Run {
  readonly results: readonly Collected[];
  readonly counts: Counts;
}

const draftLength = 5;

/** Runs requests at once with drafts from `futures`; every step ends with blocks conserved. */
async function run(
  requests: readonly GenerationRequest[],
  futures: Futures | undefined,
  options: FixtureOptions & { readonly isCostly?: boolean; readonly shareRight?: number } = {},
  spec?: GrammarSpec,
): Promise<Run> {
  const { isCostly = false, shareRight = 1, ...fixture } = options;
  const vocabSize = fixture.tokenizer?.vocabSize ?? 64;
  const drafter = futures && new OracleDrafter(futures, { vocabSize, seed: 5, isCostly, shareRight });
  const { engine, backend } = createFakeEngine({
    hooks: { afterStep: (running) => running.checkIntegrity() },
    ...(drafter && {
      speculation: { createDrafter: () => drafter, numSpeculativeTokens: draftLength, adaptive: false },
    }),
    ...fixture,
  });
  const counts: Counts = { numSteps: 0, numDrafts: 0, draftTokens: 0, acceptedTokens: 0 };
  engine.observe({
    onStep: () => void (counts.numSteps += 1),
    onDraft: (draftTokens, acceptedTokens) => {
      counts.numDrafts += 1;
      counts.draftTokens += draftTokens;
      counts.acceptedTokens += acceptedTokens;
    },
  });
  const grammar: Grammar | undefined = spec && (await engine.compileGrammar(spec));
  const results = await Promise.all(
    requests.map((request) =>
      collect(engine.generate(grammar === undefined ? request : { ...request, grammar })),
    ),
  );
  assert.equal(backend.numLiveSamplerStates, 0);
  assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
  await engine[Symbol.asyncDispose]();
  return { results, counts };
}

/** The same requests without drafts and with drafts that know the output; the results must not differ. */
async function compare(
  requests: readonly GenerationRequest[],
  options: Parameters<typeof run>[2] = {},
  spec?: GrammarSpec,
): Promise<{ readonly plain: Run; readonly drafted: Run }> {
  const plain = await run(requests, undefined, options, spec);
  const futures: Futures = (id, index) => {
    const at = requests.findIndex(({ requestId }) => requestId === id);
    return plain.results[at]?.sequences[index]?.tokens;
  };
  const drafted = await run(requests, futures, options, spec);
  assert.deepEqual(
    drafted.results.map(({ sequences, usage }) => ({ sequences, usage })),
    plain.results.map(({ sequences, usage }) => ({ sequences, usage })),
  );
  return { plain, drafted };
}

function requestsWith(params: Partial<SamplingParams>, count = 4): GenerationRequest[] {
  return Array.from({ length: count }, (_, seed) =>
    generationRequest([seed + 1, 7, 9, seed], { maxTokens: 40, seed: BigInt(seed), ...params }),
  );
}

describe("speculation", () => {
  it("takes several tokens per step where drafts are accepted", async () => {
    const { plain, drafted } = await compare(requestsWith({}, 1));
    assert.equal(plain.counts.numDrafts, 0);
    assert.equal(drafted.counts.draftTokens, drafted.counts.acceptedTokens);
    assert.ok(drafted.counts.numSteps <= plain.counts.numSteps / 2, `${drafted.counts.numSteps} steps`);
    const { record } = drafted.results[0]!;
    assert.equal(record?.draftTokens, drafted.counts.draftTokens);
    assert.equal(record?.acceptedDraftTokens, drafted.counts.acceptedTokens);
    assert.equal(plain.results[0]?.record?.draftTokens, 0);
  });

  it("never changes what is sampled, whatever is drafted", async () => {
    const cases: Partial<SamplingParams>[] = [
      { temperature: 1.3 },
      { temperature: 0.8, n: 3 },
      { temperature: 1, repetitionPenalty: 1.4, frequencyPenalty: 0.4, presencePenalty: 0.3 },
      { temperature: 1.2, logprobs: 3, logprobTokenIds: [4, 5] },
      { temperature: 1.5, minTokens: 12, ignoreEos: false, stopTokenIds: [3, 4, 5, 6, 7, 8] },
      { temperature: 1, badWords: ["ab", "c", "de"], logitBias: new Map([[2, 3]]) },
    ];
    for (const params of cases) {
      for (const shareRight of [1, 0.6]) {
        const { drafted } = await compare(requestsWith(params), {
          shareRight,
          isCostly: shareRight < 1,
          blockSize: 2,
        });
        assert.ok(drafted.counts.acceptedTokens > 20, JSON.stringify(params));
        if (shareRight < 1) assert.ok(drafted.counts.acceptedTokens < drafted.counts.draftTokens);
      }
    }
  });

  it("ends in the middle of an accepted run", async () => {
    const script = (context: readonly number[]): number => (context.length * 3) % 26;
    const backend = { script };
    const text = (await run([generationRequest([1, 2, 3], { maxTokens: 30 })], undefined, { backend }))
      .results[0]!.sequences[0]!.text;
    for (let cut = 3; cut < 16; cut += 1) {
      const stop = [text.slice(cut, cut + 2)];
      for (const params of [
        { stop },
        { stop, includeStopStrInOutput: true },
        { stop, minTokens: cut },
        { maxTokens: cut },
        { stopTokenIds: [(cut * 3) % 26] },
        { stopTokenIds: [(cut * 3) % 26], minTokens: cut - 2 },
      ]) {
        const request = generationRequest([1, 2, 3], { maxTokens: 30, ...params });
        await compare([request], { backend });
      }
    }
    const eos = (context: readonly number[]): number => (context.length > 14 ? eosToken : 5);
    await compare([generationRequest([1], { maxTokens: 30, ignoreEos: false })], {
      backend: { script: eos },
    });
    await compare([generationRequest([1], { maxTokens: undefined })], { maxModelLen: 21 });
  });

  it("keeps to a grammar, and truncates drafts that do not", async () => {
    const eos = 140;
    const words = ["true", "false", '":', '", "', '"}', "name", "ab", " ", "12"];
    const pieces = [
      ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
      ...words,
      ...Array.from({ length: eos - 128 - words.length }, (_, index) => `<unused${index}>`),
      "</s>",
    ];
    const tokenizer = new FakeTokenizer({ pieces, specialTokenIds: [eos], eosTokenId: eos });
    const fixture = { tokenizer, eosTokenIds: [eos], maxModelLen: 256, numBlocks: 256 };
    const spec: GrammarSpec = {
      kind: "json_schema",
      schema: {
        type: "object",
        properties: {
          name: { type: "string", maxLength: 6 },
          list: { type: "array", items: { type: "integer", maximum: 300 }, maxItems: 4 },
        },
        required: ["name", "list"],
      },
    };
    for (const params of [{}, { logprobs: 1 }, { frequencyPenalty: 0.3 }, { minTokens: 9, n: 2 }]) {
      for (const shareRight of [1, 0.7]) {
        const requests = requestsWith({ temperature: 1.3, maxTokens: 120, ignoreEos: false, ...params });
        const { drafted } = await compare(requests, { ...fixture, shareRight }, spec);
        assert.ok(drafted.counts.acceptedTokens > 30);
        // Wrong draft tokens are any of the vocabulary: the grammar rules out nearly all of them before they are computed.
        if (shareRight < 1)
          assert.ok(
            drafted.counts.draftTokens < drafted.counts.acceptedTokens + 3 * drafted.counts.numDrafts,
          );
      }
    }
  });

  it("ends reasoning that has spent its budget", async () => {
    // "B" begins reasoning and "C" ends it, and both come by chance.
    const [start, end] = [27, 28];
    let numForced = 0;
    let numAccepted = 0;
    for (const maxTokens of [0, 1, 3, 7]) {
      for (const isOpen of [false, true]) {
        const thinking = {
          maxTokens,
          startTags: ["B"],
          endTags: ["C"],
          endTokens: Int32Array.of(30, 31, end),
          isOpen,
        };
        const params = { temperature: 1.3, maxTokens: 60, logitBias: new Map([[start, 2]]) };
        const requests = requestsWith(params).map((request) => ({ ...request, thinking }));
        const { plain, drafted } = await compare(requests, { shareRight: maxTokens % 2 === 0 ? 1 : 0.8 });
        numAccepted += drafted.counts.acceptedTokens;
        for (const { sequences } of plain.results) numForced += sequences[0]!.text.split("EFC").length - 1;
      }
    }
    assert.ok(numForced > 40, `${numForced} ends`);
    assert.ok(numAccepted > 200, `${numAccepted} accepted`);
  });

  it("leaves evidence of what drafts cost", async () => {
    const requests = requestsWith({ temperature: 1 });
    const plain = await run(requests, undefined);
    const futures: Futures = (id, index) =>
      plain.results[requests.findIndex(({ requestId }) => requestId === id)]?.sequences[index]?.tokens;
    const drafter = new OracleDrafter(futures, { vocabSize: 64, seed: 3 });
    const { engine } = createFakeEngine({
      backend: { computeMs: ({ numTokens }) => 1 + numTokens },
      speculation: { createDrafter: () => drafter, numSpeculativeTokens: 5, adaptive: false },
    });
    let computeMs = 0;
    let draftTokens = 0;
    engine.observe({
      onStep: (step) => {
        computeMs += step.computeMs;
        draftTokens += step.draftTokens ?? 0;
      },
    });
    const results = await Promise.all(requests.map((request) => collect(engine.generate(request))));
    const sum = (of: (record: NonNullable<Collected["record"]>) => number): number =>
      results.reduce((total, { record }) => total + of(record!), 0);
    assert.ok(Math.abs(sum(({ kernelMs }) => kernelMs) - computeMs) < 1e-6);
    assert.equal(
      sum((record) => record.draftTokens),
      draftTokens,
    );
    for (const step of engine.evidence.steps) {
      const total = step.shares.reduce((ms, share) => ms + share.ms, 0);
      assert.ok(Math.abs(total - step.computeMs) < 1e-9);
      assert.equal(
        step.shares.reduce((tokens, share) => tokens + share.draftTokens, 0),
        step.draftTokens,
      );
      assert.equal(
        step.computeMs,
        1 + step.prefillTokens + step.decodeTokens + step.draftTokens,
        "every token is somebody's",
      );
    }
    await engine[Symbol.asyncDispose]();
  });

  it("holds when sequences are preempted for want of blocks", async () => {
    const requests = requestsWith({ temperature: 1, maxTokens: 60, n: 2 }, 5);
    const { drafted } = await compare(requests, {
      numBlocks: 34,
      maxNumBatchedTokens: 24,
      shareRight: 0.9,
      isCostly: true,
    });
    assert.ok(drafted.results.some(({ record }) => (record?.preemptions ?? 0) > 0));
    assert.ok(drafted.counts.acceptedTokens > 50);
  });

  it("finds what drafts computed in the prefix cache", async () => {
    const request = generationRequest([1, 2, 3, 4], { maxTokens: 40 });
    const [plain] = (await run([request], undefined)).results;
    const tokens = plain!.sequences[0]!.tokens;
    const drafter = new OracleDrafter(() => tokens, { vocabSize: 64, seed: 1, shareRight: 1 });
    const { engine } = createFakeEngine({
      speculation: { createDrafter: () => drafter, numSpeculativeTokens: 7, adaptive: false },
    });
    await collect(engine.generate(request));
    const next = generationRequest([1, 2, 3, 4, ...tokens, 5], { maxTokens: 1 });
    const { usage } = await collect(engine.generate(next));
    // 44 tokens, the last of which was never computed: ten full blocks of four.
    assert.equal(usage?.cachedTokens, 40);
    await engine[Symbol.asyncDispose]();
  });

  it("releases a request that is aborted while its draft is made", async () => {
    const futures: Futures = () => Array.from({ length: 100 }, () => 4);
    const drafter = new OracleDrafter(futures, { vocabSize: 64, seed: 2, isCostly: true });
    const controller = new AbortController();
    let numDrafted = 0;
    const draft = drafter.draft.bind(drafter);
    drafter.draft = (requests) => {
      numDrafted += 1;
      const pending = draft(requests);
      if (numDrafted === 3) controller.abort();
      return pending;
    };
    const { engine, backend } = createFakeEngine({
      hooks: { afterStep: (running) => running.checkIntegrity() },
      speculation: { createDrafter: () => drafter, numSpeculativeTokens: 4, adaptive: false },
    });
    const left = collect(
      engine.generate(generationRequest([1, 2], { maxTokens: 50, n: 2 }), controller.signal),
    );
    const stays = collect(engine.generate(generationRequest([1, 2], { maxTokens: 50 })));
    assert.equal((await left).sequences[0]?.finishReason, "abort");
    assert.equal((await stays).sequences[0]?.tokens.length, 50);
    assert.equal(drafter.numSequences, 0);
    assert.equal(backend.numLiveSamplerStates, 0);
    assert.equal(engine.stats.kvCacheUsage, 0);
    await engine[Symbol.asyncDispose]();
  });

  it("fails only the request whose row fails within a run", async () => {
    const script = (): number => 4;
    const futures: Futures = () => Array.from({ length: 100 }, () => 4);
    const drafter = new OracleDrafter(futures, { vocabSize: 64, seed: 2, shareRight: 1 });
    const { engine } = createFakeEngine({
      backend: {
        script,
        rowError: (context) => (context[0] === 9 && context.length === 17 ? "non_finite_logits" : undefined),
      },
      hooks: { afterStep: (running) => running.checkIntegrity() },
      speculation: { createDrafter: () => drafter, numSpeculativeTokens: 4, adaptive: false },
    });
    const events: number[] = [];
    const bad = (async () => {
      for await (const event of engine.generate(generationRequest([9, 2], { maxTokens: 50 })))
        if (event.kind === "delta") events.push(...event.deltas.flatMap(({ tokens }) => tokens));
    })();
    const good = collect(engine.generate(generationRequest([1, 2], { maxTokens: 50 })));
    await assert.rejects(bad, { code: "internal_error" });
    assert.equal(events.length, 15, "what came before the failure was given out");
    assert.equal((await good).sequences[0]?.tokens.length, 50);
    assert.equal(engine.stats.kvCacheUsage, 0);
    await engine[Symbol.asyncDispose]();
  });

  it("refuses numbers that cannot be", () => {
    const drafter = new OracleDrafter(() => undefined, { vocabSize: 64, seed: 1 });
    for (const numSpeculativeTokens of [0, -1, 1.5, Number.NaN]) {
      assert.throws(
        () => createFakeEngine({ speculation: { createDrafter: () => drafter, numSpeculativeTokens } }),
        { code: "invalid_option", param: "num_speculative_tokens" },
      );
    }
  });
});
