import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend } from "../../backend.js";
import { greedy, LogitModel, logSoftmax, ranking } from "../logit-harness.js";
import { SeededRandom } from "../seeded-random.js";

/** Logprobs, ranks, scores and rows that cannot be computed. */
export function logprobsConformance(open: () => Backend): void {
  describe("logprobs", () => {
    for (const numLogprobs of [0, 1, 5, 20, 77, 200, 1000]) {
      test(`the top ${numLogprobs} of 200`, async () => {
        using backend = open();
        const logits = Array.from(new SeededRandom(31).floats(200, 4), (value) => Math.round(value * 4) / 4);
        using model = await LogitModel.create(backend, [logits], 1);
        const logprobIds = Int32Array.of(199, 0, 55);
        const { rows } = await model.run(
          [0],
          [{ kind: "sample", sampling: greedy, numLogprobs, logprobIds }],
        );
        const expected = logSoftmax(logits);
        const order = ranking(logits).slice(0, numLogprobs);
        const [row] = rows;
        assert.ok(row);
        assert.equal(row.token, ranking(logits)[0]);
        assertLogprobs([row.logprob ?? Number.NaN], [expected[row.token] ?? 0]);
        assert.equal(row.rank, 1);
        assert.deepEqual([...(row.topTokens ?? [])], order, "best first, lower ids first among equals");
        assertLogprobs(
          row.topLogprobs ?? [],
          order.map((id) => expected[id] ?? 0),
        );
        assertLogprobs(
          row.idLogprobs ?? [],
          Array.from(logprobIds, (id) => expected[id] ?? 0),
        );
      });
    }

    test("scores of many more rows than logits are held for at a time", async () => {
      using backend = open();
      const random = new SeededRandom(32);
      const table = Array.from({ length: 300 }, () => random.floats(50, 3));
      using model = await LogitModel.create(backend, table, 300);
      const targets = table.map(() => random.integer(0, 49));
      const { rows } = await model.run(
        table.map((_, row) => row),
        targets.map((target, row) =>
          row % 10 === 9 ? { kind: "hidden" } : { kind: "score", target, numLogprobs: row % 3 },
        ),
        true,
      );
      for (const [index, row] of rows.entries()) {
        const logits = table[index] ?? new Float32Array();
        if (index % 10 === 9) {
          assert.deepEqual(row, { token: -1, hidden: logits });
          continue;
        }
        const target = targets[index] ?? 0;
        assert.equal(row.token, target);
        assert.equal(row.rank, 1 + logits.filter((logit) => logit > (logits[target] ?? 0)).length);
        assertLogprobs([row.logprob ?? Number.NaN], [logSoftmax(logits)[target] ?? 0]);
        assert.deepEqual([...(row.topTokens ?? [])], ranking(logits).slice(0, index % 3));
        assert.deepEqual(row.logits, logits);
      }
    });

    test("very large and very small logits", async () => {
      using backend = open();
      const table = [
        [1e30, 1e30, -1e30, 0],
        [-3e38, -3e38, -3e38, -3e38],
        [80, -80, 0, 1],
      ];
      using model = await LogitModel.create(backend, table, 3);
      const { rows } = await model.run(
        [0, 1, 2],
        table.map(() => ({ kind: "score", target: 1, numLogprobs: 4 })),
      );
      assertLogprobs(
        [rows[0]?.logprob ?? 0, rows[1]?.logprob ?? 0, rows[2]?.logprob ?? 0],
        [-Math.LN2, -Math.log(4), -160],
      );
      assert.equal(rows[0]?.rank, 1, "equals share a rank");
    });

    test("a row that is not finite fails alone", async () => {
      using backend = open();
      // The embedding overflows when scaled, which is how a row comes to hold infinities without a bad weight.
      const table = [
        [1, 2, 3, 4],
        [3e38, 3e38, 1, 1],
        [4, 3, 2, 1],
      ];
      using model = await LogitModel.create(backend, table, 4, 10);
      const { rows } = await model.run(
        [0, 1, 2, 1],
        [
          { kind: "sample", sampling: greedy, numLogprobs: 1 },
          { kind: "sample", sampling: { ...greedy, temperature: 1 }, numLogprobs: 1 },
          { kind: "score", target: 0, numLogprobs: 0 },
          { kind: "hidden" },
        ],
      );
      assert.equal(rows[0]?.token, 3);
      assert.deepEqual(rows[1], { token: -1, error: "non_finite_logits" });
      assert.equal(rows[2]?.rank, 1);
      assert.deepEqual(rows[3], { token: -1, error: "non_finite_logits" });
    });
  });
}

function assertLogprobs(actual: ArrayLike<number>, expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  for (const [i, value] of expected.entries()) {
    const gap = Math.abs((actual[i] ?? Number.NaN) - value);
    assert.ok(gap <= 1e-6 * Math.max(1, Math.abs(value)), `logprob ${i} is ${actual[i]}, expected ${value}`);
  }
}
