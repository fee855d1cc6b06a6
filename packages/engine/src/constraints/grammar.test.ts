import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { GenerationRequest } from "../api.js";
import type { SamplingParams } from "../sampling/sampling-params.js";
import type { GrammarSpec, Matcher } from "@octavo/text/structured/grammar";
import {
  collect,
  type Collected,
  createFakeEngine,
  type FixtureOptions,
  generationRequest,
} from "../testing/fakes/engine-fixture.js";
import { FakeTokenizer } from "@octavo/text/testing/fake-tokenizer";
import { TestRandom } from "@octavo/text/testing/random";

const eos = 140;
const words = ["true", "false", "null", '":', '", "', '"}', "name", "ab", "abc", " ", "12"];
const pieces = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  ...words,
  ...Array.from({ length: eos - 128 - words.length }, (_, index) => `<unused${index}>`),
  "</s>",
];
const tokenizer = new FakeTokenizer({ pieces, specialTokenIds: [eos], eosTokenId: eos });

function open(options: FixtureOptions = {}): ReturnType<typeof createFakeEngine> {
  return createFakeEngine({ tokenizer, eosTokenIds: [eos], maxModelLen: 256, numBlocks: 128, ...options });
}

const person: GrammarSpec = {
  kind: "json_schema",
  schema: {
    type: "object",
    properties: {
      name: { type: "string", maxLength: 6 },
      ok: { type: "boolean" },
      list: { type: "array", items: { type: "integer", minimum: 0, maximum: 300 }, maxItems: 3 },
    },
    required: ["name", "ok"],
  },
};

const params: Partial<SamplingParams> = { maxTokens: 120, ignoreEos: false, temperature: 1.5 };

function isPerson(text: string): boolean {
  const value = JSON.parse(text) as { readonly name: string; readonly ok: boolean };
  return typeof value.name === "string" && value.name.length <= 6 && typeof value.ok === "boolean";
}

describe("generation under a grammar", () => {
  it("generates only texts of the grammar, complete unless max_tokens ends them", async () => {
    const { engine } = open();
    const grammar = await engine.compileGrammar(person);
    let numWhole = 0;
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, seed) =>
        collect(
          engine.generate(
            generationRequest([seed + 1, 5, 9], { ...params, n: 2, seed: BigInt(seed) }, { grammar }),
          ),
        ),
      ),
    );
    for (const { sequences } of results) {
      for (const { text, finishReason } of sequences) {
        if (finishReason !== "stop") continue;
        numWhole += 1;
        assert.ok(isPerson(text), text);
      }
    }
    assert.ok(numWhole >= 20, `${numWhole} of 24 came to an end`);
    engine.checkIntegrity();
    await engine[Symbol.asyncDispose]();
  });

  it("gives the same tokens alone, in a batch, in chunks, and preempted at random", async () => {
    const requests = (): GenerationRequest[] =>
      Array.from({ length: 6 }, (_, index) =>
        generationRequest(
          Array.from({ length: 3 + index * 7 }, (_unused, position) => (position * 7 + index) % 100),
          { ...params, maxTokens: 60, seed: BigInt(index), n: 1 + (index % 2), minTokens: index },
        ),
      );
    const run = async (options: FixtureOptions, atOnce: boolean): Promise<string[]> => {
      const { engine, backend } = open(options);
      const grammar = await engine.compileGrammar(person);
      const results: Collected[] = [];
      const start = (request: GenerationRequest): Promise<Collected> =>
        collect(engine.generate({ ...request, grammar }));
      if (atOnce) results.push(...(await Promise.all(requests().map(start))));
      else for (const request of requests()) results.push(await start(request));
      assert.equal(backend.numLiveSamplerStates, 0);
      await engine[Symbol.asyncDispose]();
      return results.flatMap(({ sequences }) =>
        sequences.map(({ tokens, finishReason }) => `${tokens.join()} ${finishReason}`),
      );
    };
    const alone = await run({ enablePrefixCaching: false }, false);
    const random = new TestRandom(3);
    const hooks: FixtureOptions["hooks"] = {
      choosePreemptions: (running) =>
        random.next() < 0.2 && running.length > 0 ? [random.below(running.length)] : [],
      afterStep: (engine) => engine.checkIntegrity(),
    };
    assert.deepEqual(await run({}, true), alone);
    assert.deepEqual(await run({ hooks, maxNumBatchedTokens: 16 }, true), alone);
  });

  it("ends only where the text is complete, and as soon as nothing can follow", async () => {
    // The model always wants to end.
    const { engine } = open({ backend: { script: () => eos } });
    const finish = async (
      spec: GrammarSpec,
      more: Partial<SamplingParams> = {},
    ): Promise<readonly unknown[]> => {
      const grammar = await engine.compileGrammar(spec);
      const { sequences } = await collect(
        engine.generate(generationRequest([1], { ...params, temperature: 0, ...more }, { grammar })),
      );
      const [sequence] = sequences;
      return [sequence?.text.length, sequence?.finishReason, sequence?.stopReason];
    };
    assert.deepEqual(await finish({ kind: "regex", pattern: "x{3,9}" }), [3, "stop", undefined]);
    assert.deepEqual(await finish({ kind: "regex", pattern: "x{3,9}" }, { minTokens: 5 }), [
      5,
      "stop",
      undefined,
    ]);
    assert.deepEqual(await finish({ kind: "regex", pattern: "x{3,9}" }, { ignoreEos: true }), [
      9,
      "stop",
      undefined,
    ]);
    assert.deepEqual(await finish({ kind: "regex", pattern: "x{3}" }, { minTokens: 8 }), [
      3,
      "stop",
      undefined,
    ]);
    assert.deepEqual(await finish({ kind: "regex", pattern: "x{3}" }, { maxTokens: 3 }), [
      3,
      "stop",
      undefined,
    ]);
    assert.deepEqual(await finish({ kind: "regex", pattern: "x{3,9}" }, { maxTokens: 2 }), [
      2,
      "length",
      undefined,
    ]);
    assert.deepEqual(await finish({ kind: "regex", pattern: "xyz{3}" }, { stop: ["yz"] }), [1, "stop", "yz"]);
    assert.deepEqual(await finish({ kind: "regex", pattern: "x{2,9}" }, { stopTokenIds: [139] }), [
      2,
      "stop",
      undefined,
    ]);
    await engine[Symbol.asyncDispose]();
  });

  it("computes tokens without a choice together, with the same outcome", async () => {
    const spec: GrammarSpec = { kind: "regex", pattern: "[uv]_-_-_-_-[uv]!!!!!!" };
    const outcome = async (
      more: Partial<SamplingParams>,
    ): Promise<{ text: string; numSteps: number; numTokens: number }> => {
      const { engine, backend } = open();
      const grammar = await engine.compileGrammar(spec);
      const { sequences, usage } = await collect(
        engine.generate(generationRequest([3, 4], { ...params, ...more }, { grammar })),
      );
      await engine[Symbol.asyncDispose]();
      return { text: sequences[0]!.text, numSteps: backend.numSteps, numTokens: usage!.completionTokens };
    };
    const together = await outcome({});
    const apart = await outcome({ logprobs: 0 });
    assert.equal(together.text, apart.text);
    assert.deepEqual([together.numTokens, apart.numTokens], [16, 16]);
    assert.deepEqual([together.numSteps, apart.numSteps], [2, 16]);
    assert.equal((await outcome({ maxTokens: 5 })).text, together.text.slice(0, 5));
    assert.equal((await outcome({ stop: ["-_-"] })).text, together.text.slice(0, 2));
    assert.equal((await outcome({ repetitionPenalty: 1.2 })).numSteps, 16);
  });

  it("takes no more than some of many tokens without a choice at a time", async () => {
    const texts: string[] = [];
    for (const logprobs of [undefined, 0]) {
      const { engine, backend } = open({ maxNumBatchedTokens: 128 });
      const grammar = await engine.compileGrammar({ kind: "regex", pattern: "[uv]_{150}" });
      const request = generationRequest([3, 4], { ...params, maxTokens: 200, logprobs }, { grammar });
      const { sequences } = await collect(engine.generate(request));
      texts.push(sequences[0]!.text);
      assert.equal(backend.numSteps, logprobs === undefined ? 3 : 151);
      await engine[Symbol.asyncDispose]();
    }
    assert.equal(texts[0], texts[1]);
  });

  it("lets the event loop turn while a mask takes much work, and is aborted meanwhile", async () => {
    const { engine } = open();
    const grammar = await engine.compileGrammar({ kind: "regex", pattern: "[uv]{40}" });
    const limits = { parts: 50 };
    /** As the grammar, with masks that take 50 turns' work, or never end. */
    const slow = (): Matcher => {
      const matcher = grammar.start();
      matcher.preparing = function* () {
        for (let part = 0; part < limits.parts; part += 1) yield 10_000;
      };
      return matcher;
    };
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    using _ = { [Symbol.dispose]: () => void (isOver = true) };
    const request = generationRequest([1], { ...params, seed: 1n });
    const plain = await collect(engine.generate({ ...request, grammar }));
    const before = turns;
    const sliced = { maskWords: grammar.maskWords, start: slow };
    assert.equal(
      (await collect(engine.generate({ ...request, grammar: sliced }))).sequences[0]?.text,
      plain.sequences[0]?.text,
    );
    assert.ok(turns - before >= 39 * 50, `${turns - before} turns`);
    limits.parts = Infinity;
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 5);
    const left = await collect(engine.generate({ ...request, grammar: sliced }, abort.signal));
    assert.equal(left.sequences[0]?.finishReason, "abort");
    engine.checkIntegrity();
    await engine[Symbol.asyncDispose]();
  });

  it("tells a request alone what is wrong with it", async () => {
    const { engine } = open();
    const grammar = await engine.compileGrammar({ kind: "choice", choices: ["ab"] });
    const request = (more: Partial<SamplingParams>): Promise<Collected> =>
      collect(engine.generate(generationRequest([1], { ...params, ...more }, { grammar })));
    await assert.rejects(request({ allowedTokenIds: [5] }), {
      code: "invalid_request",
      message: /constraint on the output/,
    });
    assert.equal((await request({})).sequences[0]?.text, "ab");
    assert.throws(
      () =>
        engine.generate(
          generationRequest([1], params, { grammar: { maskWords: 1, start: grammar.start.bind(grammar) } }),
        ),
      { code: "invalid_request", param: "grammar" },
    );
    await assert.rejects(engine.compileGrammar({ kind: "regex", pattern: "[" }), { code: "invalid_request" });
    const observed: boolean[] = [];
    using _ = engine.observe({
      onGrammarCompiled: (seconds, cached) => void observed.push(cached && seconds >= 0),
    });
    await engine.compileGrammar({ kind: "choice", choices: ["ab"] });
    assert.deepEqual(observed, [true]);
    await engine[Symbol.asyncDispose]();
  });
});
