import assert from "node:assert/strict";
import test from "node:test";
import { quantile } from "../intervals/quantile.js";
import { Random } from "../random.js";
import { mean } from "../sample.js";
import { WeightedClusters } from "./weighted-clusters.js";

test("a resample's statistics are those of the drawn clusters written out", () => {
  const random = new Random(5);
  for (let round = 0; round < 50; round++) {
    const clusters = Array.from({ length: random.integer(1, 12) }, () =>
      Array.from({ length: random.integer(0, 9) }, () => random.integer(-20, 20)),
    );
    const weighted = new WeightedClusters(clusters);
    for (let draw = 0; draw < 4; draw++) {
      // The first round is of the clusters as they are.
      const seed = round * 10 + draw;
      if (draw > 0) weighted.resample(new Random(seed));
      const again = new Random(seed);
      const written =
        draw === 0
          ? clusters.flat()
          : clusters.flatMap(() => clusters[again.integer(0, clusters.length - 1)]!);
      const levels = [0.01, 0.25, 0.5, 0.51, 0.9, 0.95, 0.99];
      const found = weighted.evaluate([
        { kind: "mean" },
        { kind: "share-above", limit: 3 },
        ...levels.map((level) => ({ kind: "quantile", level }) as const),
      ]);
      if (written.length === 0) {
        assert.ok(found.every((value) => Number.isNaN(value)));
        continue;
      }
      assert.ok(Math.abs(found[0]! - mean(written)) < 1e-12);
      assert.equal(found[1], written.filter((value) => value > 3).length / written.length);
      assert.deepEqual(
        found.slice(2),
        levels.map((level) => quantile(written, level)),
      );
    }
  }
});
