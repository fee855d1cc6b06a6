import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, RowSampling } from "../../backend.js";
import { greedy, LogitModel, logSoftmax, ranking, samplerState } from "../logit-harness.js";
import { SeededRandom } from "../seeded-random.js";

const mostRowsPerStep = 500;
/** Draws of each filter from each table. */
const usualDraws = 4000;

/** Greedy choice, the filters, and the distribution of what is drawn, by so many draws of each. */
export function samplingConformance(open: () => Backend, numDraws = usualDraws): void {
  describe("sampling", () => {
    test("greedy takes the most likely token, the lowest id among equals", async () => {
      using backend = open();
      using model = await LogitModel.create(
        backend,
        [
          [1, 5, 5, 2],
          [7, 7, 7, 7],
          [-3, -2, -1, -0.5],
        ],
        3,
      );
      const rows = [0, 1, 2].map(
        () => ({ kind: "sample", sampling: greedy, numLogprobs: undefined }) as const,
      );
      const result = await model.run([0, 1, 2], rows);
      assert.deepEqual(
        result.rows.map((row) => row.token),
        [1, 0, 3],
      );
      assert.deepEqual(
        Object.keys(result.rows[0] ?? {}),
        ["token"],
        "nothing is returned that was not asked for",
      );
    });

    test("a temperature near zero is greedy", async () => {
      using backend = open();
      using model = await LogitModel.create(backend, [[1, 1.001, 1]], 1);
      for (const temperature of [0, 1e-6, 1e-5]) {
        for (let seed = 0n; seed < 20n; seed++)
          assert.equal(await model.sample(0, { ...greedy, temperature, seed }), 1);
      }
    });

    const filters: readonly (readonly [string, Partial<RowSampling>])[] = [
      ["temperature 1", {}],
      ["temperature 2.5", { temperature: 2.5 }],
      ["temperature 0.3", { temperature: 0.3 }],
      ["top-k 1", { topK: 1 }],
      ["top-k 12", { topK: 12 }],
      ["top-k as large as the vocabulary", { topK: 300 }],
      ["top-p 0.8", { topP: 0.8 }],
      ["top-p 0.999", { topP: 0.999 }],
      ["top-p 0", { topP: 0 }],
      ["min-p 0.2", { minP: 0.2 }],
      ["min-p 1", { minP: 1 }],
      ["top-k 20, top-p 0.7", { topK: 20, topP: 0.7 }],
      [
        "min-p 0.02, top-k 25, top-p 0.9, temperature 1.5",
        { minP: 0.02, topK: 25, topP: 0.9, temperature: 1.5 },
      ],
    ];
    const random = new SeededRandom(11);
    const tables: readonly (readonly [string, readonly number[]])[] = [
      ["a peaked row", [...random.floats(300, 2)]],
      ["a flat row with ties", Array.from({ length: 300 }, (_, id) => (id % 7 === 0 ? 0.5 : 0))],
      [
        "a row with impossible tokens",
        Array.from({ length: 300 }, (_, id) => (id % 3 === 0 ? random.normal() : -1e30)),
      ],
    ];
    for (const [filterName, filter] of filters) {
      test(`draws follow the distribution: ${filterName}`, async () => {
        using backend = open();
        using model = await LogitModel.create(
          backend,
          tables.map(([, logits]) => logits),
          mostRowsPerStep,
        );
        for (const [row, [tableName, logits]] of tables.entries()) {
          const sampling = { ...greedy, temperature: 1, ...filter };
          const counts = await countDraws(model, row, sampling, numDraws);
          checkDistribution(counts, expectedDistribution(logits, sampling), tableName);
        }
      });
    }

    test("a mask leaves the tokens whose bits are set, before everything else", async () => {
      using backend = open();
      const logits = new SeededRandom(5).floats(301, 3);
      using model = await LogitModel.create(backend, [logits], 4);
      using banned = samplerState(backend, { badWords: [Int32Array.of(299)] });
      const maskOf = (ids: readonly number[]): Uint32Array => {
        const mask = new Uint32Array(10);
        for (const id of ids) mask[id >> 5] = (mask[id >> 5] ?? 0) | (1 << (id & 31));
        return mask;
      };
      for (const ids of [
        [0],
        [300],
        [31, 32],
        [64, 95, 299],
        Array.from({ length: 32 }, (_, id) => id + 96),
      ]) {
        const best = ranking(logits).find((id) => ids.includes(id));
        assert.equal(await model.sample(0, { ...greedy, mask: maskOf(ids) }), best);
        for (let seed = 0n; seed < 8n; seed++) {
          const drawn = await model.sample(0, {
            ...greedy,
            temperature: 3,
            topK: 40,
            seed,
            mask: maskOf(ids),
          });
          assert.ok(ids.includes(drawn), `${drawn} is not among ${ids.join()}`);
        }
      }
      const everything = new Uint32Array(10).fill(0xffffffff);
      assert.equal(await model.sample(0, { ...greedy, mask: everything }), await model.sample(0, greedy));
      const row = (mask: Uint32Array, more: Partial<RowSampling> = {}) =>
        ({ kind: "sample", sampling: { ...greedy, ...more, mask }, numLogprobs: 1 }) as const;
      const { rows } = await model.run(
        [0, 0, 0, 0],
        [row(maskOf([])), row(maskOf([299]), { state: banned }), row(maskOf([7])), row(everything)],
        true,
      );
      assert.deepEqual(
        rows.map(({ token, error }) => [token, error]),
        [
          [-1, "no_token_allowed"],
          [-1, "no_token_allowed"],
          [7, undefined],
          [ranking(logits)[0], undefined],
        ],
      );
      assert.deepEqual(rows[2]?.topTokens, rows[3]?.topTokens, "logprobs stay those of the raw distribution");
      assert.deepEqual(rows[2]?.logits, rows[3]?.logits);
    });

    test("a draw depends on seed and index alone", async () => {
      using backend = open();
      const logits = Array.from({ length: 64 }, () => 0);
      using model = await LogitModel.create(backend, [logits, logits], 64);
      const draw = (seed: bigint, index: number): Promise<number> =>
        model.sample(0, { ...greedy, temperature: 1, seed, index });
      const alone = await Promise.all(Array.from({ length: 32 }, (_, index) => draw(42n, index)));
      const together = await model.run(
        alone.map(() => 1),
        alone.map((_, index) => ({
          kind: "sample",
          sampling: { ...greedy, temperature: 1, seed: 42n, index },
          numLogprobs: 3,
        })),
      );
      assert.deepEqual(
        together.rows.map((row) => row.token),
        alone,
      );
      assert.ok(new Set(alone).size > 10, "indices give different draws");
      const otherSeed = await Promise.all(alone.map((_, index) => draw(43n, index)));
      assert.notDeepEqual(otherSeed, alone);
      assert.deepEqual(await draw(-1n, 5), await draw(2n ** 64n - 1n, 5), "seeds are taken modulo 2^64");
    });
  });
}

async function countDraws(
  model: LogitModel,
  row: number,
  sampling: RowSampling,
  numDraws: number,
): Promise<number[]> {
  const rowsPerStep = Math.min(mostRowsPerStep, numDraws);
  const counts = Array.from({ length: model.vocabSize }, () => 0);
  for (let first = 0; first < numDraws; first += rowsPerStep) {
    const outputs = Array.from({ length: rowsPerStep }, (_, i) => {
      const seeded = { ...sampling, seed: BigInt(Math.floor((first + i) / 50)), index: (first + i) % 50 };
      return { kind: "sample", sampling: seeded, numLogprobs: undefined } as const;
    });
    const { rows } = await model.run(
      outputs.map(() => row),
      outputs,
    );
    for (const { token } of rows) counts[token] = (counts[token] ?? 0) + 1;
  }
  return counts;
}

/** Probabilities after temperature, min-p, top-k and top-p, in this order, each renormalised. */
function expectedDistribution(logits: readonly number[], sampling: RowSampling): number[] {
  const order = ranking(logits.map(Math.fround));
  const probability = logSoftmax(logits.map((logit) => logit / sampling.temperature)).map(Math.exp);
  const most = probability[order[0] ?? 0] ?? 0;
  let kept = order.filter((id) => (probability[id] ?? 0) >= sampling.minP * most * (1 - 1e-6));
  if (sampling.topK > 0) kept = kept.slice(0, sampling.topK);
  const mass = kept.reduce((sum, id) => sum + (probability[id] ?? 0), 0);
  let before = 0;
  kept = kept.filter((id, place) => {
    const keep = place === 0 || before < sampling.topP * mass * (1 - 1e-6);
    before += probability[id] ?? 0;
    return keep || sampling.topP >= 1;
  });
  const total = kept.reduce((sum, id) => sum + (probability[id] ?? 0), 0);
  const keptIds = new Set(kept);
  return probability.map((p, id) => (keptIds.has(id) ? p / total : 0));
}

/** No draw outside the support, and Pearson's statistic within 5 standard deviations of its mean. */
function checkDistribution(counts: readonly number[], expected: readonly number[], name: string): void {
  const numDraws = counts.reduce((sum, count) => sum + count, 0);
  let statistic = 0;
  let degrees = -1;
  let pooledCount = 0;
  let pooledExpected = 0;
  for (const [id, p] of expected.entries()) {
    const count = counts[id] ?? 0;
    if (p === 0)
      assert.equal(count, 0, `${name}: token ${id} was drawn ${count} times though it was filtered out`);
    if (p * numDraws >= 5) {
      statistic += (count - p * numDraws) ** 2 / (p * numDraws);
      degrees += 1;
    } else {
      pooledCount += count;
      pooledExpected += p * numDraws;
    }
  }
  if (pooledExpected > 0) {
    statistic += (pooledCount - pooledExpected) ** 2 / Math.max(pooledExpected, 1);
    degrees += 1;
  }
  const bound = Math.max(degrees, 0) + 5 * Math.sqrt(2 * Math.max(degrees, 1));
  assert.ok(statistic <= bound, `${name}: chi-square ${statistic} with ${degrees} degrees of freedom`);
}
