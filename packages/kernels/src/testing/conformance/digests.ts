import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, OutputRow } from "../../backend.js";
import { greedy, LogitModel } from "../logit-harness.js";
import { SeededRandom } from "../seeded-random.js";
import { xxhash64 } from "../../xxhash64.js";

/** Digests of rows of logits: of exactly those rows that want one, whatever else they want. */
export function digestsConformance(open: () => Backend): void {
  describe("digests", () => {
    test("the reference hash gives the published values", () => {
      const text = (characters: string): Uint8Array => new TextEncoder().encode(characters);
      assert.equal(xxhash64(text("")), "ef46db3751d8e999");
      assert.equal(xxhash64(text("a")), "d24ec4f1a98c6e5b");
      assert.equal(xxhash64(text("abc")), "44bc2cf5ad770999");
      assert.equal(
        xxhash64(text("Call me Ishmael. Some years ago--never mind how long precisely-")),
        "02a2e85470d6fd96",
      );
    });

    for (const size of [1, 2, 7, 8, 9, 15, 16, 33, 200]) {
      test(`of ${size} logits`, async () => {
        using backend = open();
        const random = new SeededRandom(size);
        const table = Array.from({ length: size }, () => random.floats(size, 4));
        using model = await LogitModel.create(backend, table, 80);
        const tokens = Array.from({ length: 80 }, (_, row) => row % size);
        const outputs = tokens.map((_, row): OutputRow => {
          if (row % 11 === 10) return { kind: "hidden" };
          if (row % 7 === 6) return { kind: "score", target: 0, numLogprobs: 0 };
          const numLogprobs = row % 3 === 0 ? 1 : undefined;
          return {
            kind: "sample",
            sampling: { ...greedy, temperature: row % 2 },
            numLogprobs,
            wantDigest: row % 5 !== 4,
          };
        });
        const { rows } = await model.run(tokens, outputs);
        for (const [index, { digest }] of rows.entries()) {
          const output = outputs[index];
          const wanted = output?.kind === "sample" && output.wantDigest === true;
          const logits = Float32Array.from(table[tokens[index] ?? 0] ?? []);
          assert.equal(digest, wanted ? xxhash64(new Uint8Array(logits.buffer)) : undefined, `row ${index}`);
        }
      });
    }

    test("not of a row in error, nor of one after a rejected draft token", async () => {
      using backend = open();
      using model = await LogitModel.create(
        backend,
        [
          [0, 5],
          [5, 0],
        ],
        3,
      );
      const sample = { kind: "sample", sampling: greedy, numLogprobs: undefined, wantDigest: true } as const;
      const { rows } = await model.run([0, 0], [sample, { ...sample, afterDraft: true }]);
      assert.equal(rows[1]?.token, -1);
      assert.equal(rows[1]?.digest, undefined);
      const nothing = { ...sample, sampling: { ...greedy, mask: Uint32Array.of(0) } };
      const refused = await model.run([0], [nothing]);
      assert.deepEqual(refused.rows, [{ token: -1, error: "no_token_allowed" }]);
    });
  });
}
