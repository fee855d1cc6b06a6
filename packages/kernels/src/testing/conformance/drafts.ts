import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, OutputRow, RowResult, RowSampling, SamplerState } from "../../backend.js";
import { greedy, LogitModel, samplerState } from "../logit-harness.js";
import { SeededRandom } from "../seeded-random.js";

type SampleRow = Extract<OutputRow, { kind: "sample" }>;

const vocabSize = 24;

/** Several tokens of a sequence sampled in one step, each only where the draft before it was met. */
export function draftsConformance(open: () => Backend): void {
  describe("rows after drafts", () => {
    /** Token t is followed by t + 1, or by others where a temperature says so. */
    const table = (random: SeededRandom): Float32Array[] =>
      Array.from({ length: vocabSize }, (_, token) => {
        const logits = random.floats(vocabSize, 1);
        logits[(token + 1) % vocabSize]! += 3;
        return logits;
      });

    test("end with the first rejected draft token", async () => {
      using backend = open();
      using model = await LogitModel.create(backend, table(new SeededRandom(3)), 8);
      const row = (afterDraft: boolean, numLogprobs?: number): SampleRow => ({
        kind: "sample",
        sampling: greedy,
        numLogprobs,
        logprobIds: Int32Array.of(2),
        afterDraft,
      });
      const outputs: OutputRow[] = [
        row(false),
        row(true, 2),
        row(true, 1),
        row(true, 3),
        row(false, 1),
        { kind: "score", target: 5, numLogprobs: 1 },
      ];
      const { rows } = await model.run([4, 5, 6, 8, 9, 5], outputs);
      assert.deepEqual(
        rows.map(({ token }) => token),
        [5, 6, 7, -1, 10, 5],
      );
      assert.deepEqual(rows[3], { token: -1 });
      const alone = await model.run(
        [4, 5, 6, 0, 9, 5],
        [...outputs.slice(0, 3), row(false), ...outputs.slice(4)],
      );
      assert.deepEqual(
        rows.filter((_, index) => index !== 3),
        alone.rows.filter((_, index) => index !== 3),
      );
      const withLogits = await model.run([4, 5, 6, 8, 9, 5], outputs, true);
      assert.deepEqual(
        withLogits.rows.map(({ token }) => token),
        [5, 6, 7, -1, 10, 5],
      );
      assert.deepEqual(
        withLogits.rows[4]?.logits,
        (await model.run([9], [row(false)], true)).rows[0]?.logits,
      );
    });

    test("give what one step a token gives: sampled, masked, with penalties and bad words", async () => {
      using backend = open();
      const random = new SeededRandom(8);
      using model = await LogitModel.create(backend, table(random), 160);
      const newState = (seed: number): SamplerState | undefined =>
        seed % 2 === 0
          ? samplerState(backend, {
              frequencyPenalty: 0.8,
              repetitionPenalty: 1.3,
              promptTokens: Int32Array.of(1, 2, 3),
              stopTokens: Int32Array.of(seed % vocabSize),
              badWords: [Int32Array.of(seed % vocabSize, (seed + 1) % vocabSize)],
            })
          : undefined;
      const sampling = (seed: number, index: number, state: SamplerState | undefined): RowSampling => ({
        ...greedy,
        temperature: [0, 0.6, 1.2][seed % 3] ?? 0,
        topP: seed % 5 === 0 ? 0.9 : 1,
        seed: BigInt(seed) * 0x9e3779b97f4a7c15n,
        index,
        suppressStops: index < 4,
        ...(state !== undefined && { state }),
        ...(index === 3 && { mask: Uint32Array.of(0x555555) }),
      });
      const length = 12;
      const expected: number[][] = [];
      for (let seed = 0; seed < 12; seed++) {
        const state = newState(seed);
        const tokens = [seed];
        for (let index = 0; index < length; index++)
          tokens.push(await model.sample(tokens.at(-1) ?? 0, sampling(seed, index, state)));
        state?.[Symbol.dispose]();
        expected.push(tokens);
      }
      // All in one step, so that runs cross whatever the backend takes at once; some drafts are wrong at some point.
      const wrongAt = expected.map((_, seed) => (seed % 4 === 0 ? length : random.integer(1, length)));
      const states = expected.map((_, seed) => newState(seed));
      const fed = expected.flatMap((tokens, seed) =>
        tokens
          .slice(0, length)
          .map((token, index) => (index === wrongAt[seed] ? (token + 1) % vocabSize : token)),
      );
      const outputs = expected.flatMap((tokens, seed) =>
        tokens.slice(0, length).map((_, index): SampleRow => ({
          kind: "sample",
          sampling: sampling(seed, index, states[seed]),
          numLogprobs: undefined,
          afterDraft: index > 0,
        })),
      );
      const { rows } = await model.run(fed, outputs);
      for (const [seed, tokens] of expected.entries()) {
        const got = rows.slice(seed * length, (seed + 1) * length).map((row: RowResult) => row.token);
        const numMet = Math.min(wrongAt[seed] ?? 0, length);
        const unmet = Array.from({ length: length - numMet }, () => -1);
        assert.deepEqual(got, [...tokens.slice(1, numMet + 1), ...unmet], `sequence ${seed}`);
        // The state counted what was sampled, no more: it goes on as the one that was fed token by token.
        const state = states[seed];
        if (state === undefined || numMet === length) continue;
        const next = await model.sample(tokens[numMet] ?? 0, sampling(seed, numMet, state));
        assert.equal(next, tokens[numMet + 1]);
      }
      for (const state of states) state?.[Symbol.dispose]();
    });
  });
}
