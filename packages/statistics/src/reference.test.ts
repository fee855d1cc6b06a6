import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as statistics from "./index.js";

/** What other software, or a definition followed by brute force, says; written by tools/oracle/statistics/make_figures.py. */
interface ReferenceCase {
  readonly call: string;
  readonly arguments: readonly unknown[];
  /** Fields of a result that are left out are not compared. */
  readonly expected: unknown;
}

const relativeTolerance = 1e-9;

const { cases } = JSON.parse(
  readFileSync(new URL("../fixtures/reference.json", import.meta.url), "utf8"),
) as { readonly cases: readonly ReferenceCase[] };

function compare(actual: unknown, expected: unknown, path: string): void {
  if (typeof expected === "number") {
    assert.equal(typeof actual, "number", `${path} is ${String(actual)}, expected ${expected}`);
    const distance = Math.abs((actual as number) - expected);
    // Below 1e-300 doubles have fewer digits.
    const allowed = relativeTolerance * Math.max(Math.abs(expected), 1e-300);
    // What is 0 in exact arithmetic, such as the determination of nothing, comes out as a rounding error.
    assert.ok(
      distance <= allowed || (expected === 0 && distance < 1e-12),
      `${path} is ${String(actual)}, expected ${expected}`,
    );
  } else if (expected !== null && typeof expected === "object") {
    assert.ok(actual !== null && typeof actual === "object", `${path} is ${String(actual)}`);
    for (const [key, value] of Object.entries(expected)) {
      compare((actual as Record<string, unknown>)[key], value, `${path}.${key}`);
    }
  } else {
    assert.equal(actual, expected, path);
  }
}

const byCall = new Map<string, ReferenceCase[]>();
for (const reference of cases) byCall.set(reference.call, [...(byCall.get(reference.call) ?? []), reference]);
const functions = statistics as unknown as Readonly<
  Record<string, (...values: readonly unknown[]) => unknown>
>;

for (const [call, group] of byCall) {
  test(`${call} gives the reference's figures (${group.length} cases)`, () => {
    for (const { arguments: values, expected } of group) {
      compare(functions[call]!(...values), expected, `${call}(${JSON.stringify(values).slice(0, 120)})`);
    }
  });
}

/** No closed form, or random numbers: held to their promises by simulation instead. */
const simulated = [
  "BoundedMeanSequence",
  "ClusterBootstrap",
  "EProcess",
  "MeanEProcess",
  "Random",
  "asymptoticMeanSequence",
  "WeightedClusters",
  "balancedAccuracy",
  "clusterBootstrap",
  "correctedRate",
  "twoSampleBootstrap",
];
/** Thin, and tested by hand. */
const byHand = [
  "agreementTable",
  "detectableDifference",
  "mean",
  "midranks",
  "minimumClusters",
  "nonInferiority",
  "noMeanEvidence",
  "quantileBound",
  "sortedQuantile",
  "wassersteinOfCounts",
];

test("every export has reference figures, or is named as tested otherwise", () => {
  const missing = Object.keys(statistics).filter(
    (name) => !byCall.has(name) && !simulated.includes(name) && !byHand.includes(name),
  );
  assert.deepEqual(missing, []);
});
