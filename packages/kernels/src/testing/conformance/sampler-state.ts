import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, SamplerState, SamplerStateSpec } from "../../backend.js";
import { greedy, LogitModel, ranking, samplerState } from "../logit-harness.js";
import { SeededRandom } from "../seeded-random.js";

/** What a sequence's state does to its logits, step after step. */
export function samplerStateConformance(open: () => Backend, hasFewSteps = false): void {
  describe("sampler state", () => {
    const descending = Array.from({ length: 16 }, (_, id) => 16 - id);

    /** Greedy choices of so many steps. */
    const generate = async (
      model: LogitModel,
      state: SamplerState,
      steps: number,
      suppressStops = false,
    ): Promise<number[]> => {
      const tokens: number[] = [];
      for (let index = 0; index < steps; index++) {
        tokens.push(await model.sample(0, { ...greedy, state, index, suppressStops }));
      }
      return tokens;
    };

    const cases: readonly (readonly [string, Partial<SamplerStateSpec>, number[]])[] = [
      ["allowed ids", { allowedTokens: Int32Array.of(9, 4, 12, 4, 99) }, [4, 4]],
      [
        "a bias lifts a token",
        { logitBias: { ids: Int32Array.of(7, 99), values: Float32Array.of(20, 50) } },
        [7, 7],
      ],
      [
        "a bias of -100 bans a token",
        { logitBias: { ids: Int32Array.of(0, 1), values: Float32Array.of(-100, -100) } },
        [2, 2],
      ],
      ["bad words of one token", { badWords: [Int32Array.of(0), Int32Array.of(1)] }, [2, 2]],
      [
        "a bad word is banned once its prefix is there",
        { badWords: [Int32Array.of(0, 0, 0)] },
        [0, 0, 1, 0, 0, 1],
      ],
      ["bad words overlap", { badWords: [Int32Array.of(0, 0), Int32Array.of(0, 1)] }, [0, 2, 0, 2]],
      [
        "a resumed sequence remembers its output",
        { badWords: [Int32Array.of(0, 0)], outputTokens: Int32Array.of(3, 0) },
        [1, 0, 1],
      ],
      [
        "the prompt is no part of a bad word's prefix",
        { badWords: [Int32Array.of(0, 0)], promptTokens: Int32Array.of(0) },
        [0, 1],
      ],
      ["a frequency penalty grows with every use", { frequencyPenalty: 0.75 }, [0, 0, 1, 0, 1, 2, 0]],
      ["a presence penalty comes once", { presencePenalty: 1.5 }, [0, 1, 0, 0]],
      [
        "a repetition penalty counts the prompt",
        { repetitionPenalty: 2, promptTokens: Int32Array.of(0, 1, 2, 3, 4, 5) },
        [6, 7, 0, 0],
      ],
    ];
    for (const [name, spec, expected] of cases) {
      test(name, async () => {
        using backend = open();
        using model = await LogitModel.create(backend, [descending], 1);
        using state = samplerState(backend, spec);
        assert.deepEqual(await generate(model, state, expected.length), expected);
      });
    }

    test("stop tokens are held back while stops are suppressed", async () => {
      using backend = open();
      using model = await LogitModel.create(backend, [descending], 1);
      using state = samplerState(backend, { stopTokens: Int32Array.of(0, 2) });
      assert.deepEqual(await generate(model, state, 2, true), [1, 1]);
      assert.deepEqual(await generate(model, state, 1, false), [0]);
    });

    test("penalties equal vLLM's formulas over many random steps", async () => {
      using backend = open();
      const random = new SeededRandom(21);
      const logits = random.floats(400, 3);
      using model = await LogitModel.create(backend, [logits], 1);
      const promptTokens = Int32Array.from({ length: 300 }, () => random.integer(0, 450));
      const penalties = { repetitionPenalty: 1.2, frequencyPenalty: 0.3, presencePenalty: 0.4 };
      using state = samplerState(backend, { promptTokens, ...penalties });
      const seen = new Set(promptTokens);
      const counts = new Map<number, number>();
      for (let index = 0; index < (hasFewSteps ? 60 : 300); index++) {
        const adjusted = Array.from(logits, (logit, id) => {
          const repeated = seen.has(id)
            ? logit > 0
              ? logit / penalties.repetitionPenalty
              : logit * penalties.repetitionPenalty
            : logit;
          const count = counts.get(id) ?? 0;
          return repeated - penalties.frequencyPenalty * count - (count > 0 ? penalties.presencePenalty : 0);
        });
        const [best = 0, second = 0] = ranking(adjusted);
        const token = await model.sample(0, { ...greedy, state, index });
        const isTie = (adjusted[best] ?? 0) - (adjusted[second] ?? 0) < 1e-5;
        assert.ok(token === best || (isTie && token === second), `step ${index} chose ${token}, not ${best}`);
        seen.add(token);
        counts.set(token, (counts.get(token) ?? 0) + 1);
      }
    });

    test("logprobs stay those of the raw distribution", async () => {
      using backend = open();
      using model = await LogitModel.create(backend, [descending], 2);
      using state = samplerState(backend, {
        logitBias: { ids: Int32Array.of(9), values: Float32Array.of(50) },
        repetitionPenalty: 3,
        promptTokens: Int32Array.of(0),
      });
      const sampling = { ...greedy, temperature: 0.5, state };
      const { rows } = await model.run([0], [{ kind: "sample", sampling, numLogprobs: 2 }], true);
      const [plain] = (await model.run([0], [{ kind: "score", target: 9, numLogprobs: 2 }], true)).rows;
      assert.deepEqual(rows[0], plain);
      assert.equal(rows[0]?.token, 9);
    });

    test("nothing allowed is an error of the row alone, and leaves its state as it was", async () => {
      using backend = open();
      using model = await LogitModel.create(backend, [descending], 3);
      using none = samplerState(backend, { allowedTokens: new Int32Array(0) });
      using banned = samplerState(backend, { allowedTokens: Int32Array.of(3), badWords: [Int32Array.of(3)] });
      using last = samplerState(backend, {
        allowedTokens: Int32Array.of(3),
        stopTokens: Int32Array.of(3),
        frequencyPenalty: 1,
      });
      const rows = [none, banned].map(
        (state) => ({ kind: "sample", sampling: { ...greedy, state }, numLogprobs: 1 }) as const,
      );
      const result = await model.run(
        [0, 0, 0],
        [...rows, { kind: "sample", sampling: greedy, numLogprobs: undefined }],
      );
      assert.deepEqual(result.rows, [
        { token: -1, error: "no_token_allowed" },
        { token: -1, error: "no_token_allowed" },
        { token: 0 },
      ]);
      assert.deepEqual(await generate(model, last, 1, true), [-1]);
      assert.deepEqual(await generate(model, last, 1, false), [3]);
    });
  });
}
