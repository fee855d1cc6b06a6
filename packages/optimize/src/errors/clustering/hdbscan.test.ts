import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Random } from "@octavo/statistics";
import { hdbscan, type HdbscanOptions } from "./hdbscan.js";

interface Fixture {
  readonly options: HdbscanOptions;
  readonly dimensions: number;
  readonly points: readonly number[];
  readonly labels: readonly number[];
}

/** Labels as groups: which rows are together, whatever they are called. */
function grouping(labels: ArrayLike<number>): readonly (readonly number[])[] {
  const groups = new Map<number, number[]>();
  for (let row = 0; row < labels.length; row++) {
    const label = labels[row]!;
    groups.set(label === -1 ? -1 : label, [...(groups.get(label) ?? []), row]);
  }
  const noise = groups.get(-1) ?? [];
  groups.delete(-1);
  return [noise, ...[...groups.values()].toSorted((a, b) => a[0]! - b[0]!)];
}

test("labels are scikit-learn's", () => {
  const url = new URL("../../../fixtures/hdbscan.json", import.meta.url);
  const { cases } = JSON.parse(readFileSync(url, "utf8")) as { cases: readonly Fixture[] };
  for (const { options, dimensions, points, labels } of cases) {
    const values = Float32Array.from(points);
    const weights = labels.map(() => 1);
    assert.deepEqual(
      grouping(hdbscan({ values, dimensions, weights }, options)),
      grouping(labels),
      JSON.stringify(options),
    );
  }
});

test("equal points may be one row with a weight", () => {
  const random = new Random(4);
  const rows = Array.from({ length: 40 }, (_, index) => {
    const center = index % 4;
    return [10 * center + random.normal(), random.normal()];
  });
  const counts = rows.map((_, index) => 1 + (index % 3));
  const repeated = rows.flatMap((row, index) => Array.from({ length: counts[index]! }, () => row));
  const options = { minClusterSize: 6 };
  const once = hdbscan({ values: Float32Array.from(rows.flat()), dimensions: 2, weights: counts }, options);
  const all = hdbscan(
    { values: Float32Array.from(repeated.flat()), dimensions: 2, weights: repeated.map(() => 1) },
    options,
  );
  const spread = [...once].flatMap((label, index) => Array.from({ length: counts[index]! }, () => label));
  assert.deepEqual(grouping(spread), grouping(all));
});

test("one point, none, and values that are no rows", () => {
  assert.deepEqual([...hdbscan({ values: new Float32Array(0), dimensions: 3, weights: [] })], []);
  assert.equal(hdbscan({ values: new Float32Array(3), dimensions: 3, weights: [5] }).length, 1);
  assert.throws(() => hdbscan({ values: new Float32Array(5), dimensions: 3, weights: [1, 1] }), {
    code: "invalid_option",
    param: "values",
  });
});
