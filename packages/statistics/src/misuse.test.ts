import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import * as fc from "fast-check";
import * as s from "./index.js";

/** NaN anywhere in a result would travel on unseen. */
function holdsNaN(value: unknown): boolean {
  if (typeof value === "number") return Number.isNaN(value);
  if (value === null || typeof value !== "object") return false;
  return Object.values(value).some(holdsNaN);
}

const hostile = fc.oneof(
  fc.constantFrom(
    Number.NaN,
    Infinity,
    -Infinity,
    -1,
    -0.5,
    0,
    1,
    0.5,
    1e-300,
    1e300,
    2,
    1.5,
    0.99,
    1 - 2 ** -53,
  ),
  fc.double({ min: -3, max: 3, noNaN: true }),
  fc.integer({ min: 0, max: 60 }),
);
const count = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(Number.NaN, -1, 0.5, Infinity));
/** Often empty, single or all equal. */
const sample = fc.oneof(
  fc.array(fc.integer({ min: -5, max: 5 }), { maxLength: 12 }),
  fc.array(fc.constant(3), { maxLength: 9 }),
  fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { maxLength: 12 }),
  fc.array(hostile, { maxLength: 4 }),
);
const clusters = fc.array(sample, { maxLength: 12 });
const share = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), hostile);
const alternative = fc.constantFrom("two-sided" as const, "less" as const, "greater" as const);
const proportion = fc.record({ successes: count, trials: count });
const table = fc.record({ both: count, lost: count, gained: count, neither: count });
const units = fc.array(fc.record({ effect: hostile, variance: hostile }), { maxLength: 6 });
const calibration = fc.record({ sensitivity: proportion, specificity: proportion });
const statistic = fc.oneof(
  fc.constant({ kind: "mean" } as const),
  fc.record({ kind: fc.constant("quantile" as const), level: share }),
  fc.record({ kind: fc.constant("share-above" as const), limit: hostile }),
);

/** For calls by name. */
const functions = { ...s };

const runs = { numRuns: 400, seed: 7 };

/** Whatever is given, a function answers without a NaN or throws `invalid_option`. */
function neverLeaks<Values extends unknown[]>(
  name: string,
  arbitrary: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  call: (...values: Values) => unknown,
): void {
  test(`${name} never leaks a NaN`, () => {
    fc.assert(
      fc.property(fc.tuple(...(arbitrary as fc.Arbitrary<unknown>[])), (values) => {
        try {
          const result = call(...(values as Values));
          assert.ok(!holdsNaN(result), JSON.stringify(result));
        } catch (error) {
          if (!(error instanceof OctavoError)) throw error;
          assert.equal(error.code, "invalid_option");
          assert.notEqual(error.param, undefined, error.message);
        }
      }),
      runs,
    );
  });
}

for (const name of ["normalCdf", "normalPdf", "normalQuantile", "lnGamma"] as const) {
  neverLeaks(name, [hostile], functions[name]);
}
for (const name of [
  "studentTCdf",
  "studentTQuantile",
  "chiSquareCdf",
  "chiSquareQuantile",
  "regularizedIncompleteGamma",
  "lnChoose",
  "requestsForQuantileBound",
  "signTest",
] as const) {
  neverLeaks(name, [hostile, hostile], functions[name]);
}
for (const name of [
  "betaCdf",
  "betaQuantile",
  "regularizedIncompleteBeta",
  "binomialCdf",
  "binomialPmf",
  "binomialTail",
  "binomialQuantile",
  "wilsonInterval",
  "clopperPearson",
] as const) {
  neverLeaks(name, [hostile, hostile, hostile], functions[name]);
}
neverLeaks("holm", [fc.array(share, { maxLength: 6 })], s.holm);
for (const name of ["mean", "variance"] as const) {
  neverLeaks(name, [sample], functions[name]);
}
for (const name of ["kolmogorovSmirnov", "wasserstein"] as const) {
  neverLeaks(name, [sample, sample], (a: number[], b: number[]): unknown => functions[name](a, b));
}
neverLeaks("wassersteinOfCounts", [sample, sample, sample], (values: number[], a: number[], b: number[]) =>
  s.wassersteinOfCounts(values, a, b),
);
neverLeaks("jensenShannon", [sample, sample], (a: number[], b: number[]) => s.jensenShannon(a, b, "e"));
neverLeaks("welchTTest", [sample, sample, alternative], (a, b, side: s.Alternative) =>
  s.welchTTest(a as number[], b as number[], { alternative: side }),
);
neverLeaks("pairedTTest", [sample, share], (a: number[], confidence: number) =>
  s.pairedTTest(a, { confidence }),
);
neverLeaks("meanInterval", [sample, share], s.meanInterval);
neverLeaks("quantile", [sample, share], s.quantile);
neverLeaks("quantileInterval", [sample, share, share], s.quantileInterval);
neverLeaks("quantileBound", [sample, share, share], s.quantileBound);
neverLeaks("tailMean", [sample, share], (a: number[], level: number) => s.tailMean(a, level));
neverLeaks("newcombeDifference", [proportion, proportion, share], s.newcombeDifference);
neverLeaks("mcnemarExact", [table, alternative], s.mcnemarExact);
neverLeaks(
  "mcnemarNonInferiority",
  [table, share, share],
  (cells: s.PairedTable, margin: number, alpha: number) => s.mcnemarNonInferiority(cells, { margin, alpha }),
);
neverLeaks("pairedDifference", [table, share], s.pairedDifference);
neverLeaks("nonInferiority", [hostile, hostile, hostile], (low: number, high: number, margin: number) =>
  s.nonInferiority({ interval: [low, high], margin }),
);
neverLeaks(
  "twoSampleBootstrap",
  [clusters, clusters, statistic],
  (a: number[][], b: number[][], of: s.ClusterStatistic) =>
    s.twoSampleBootstrap(a, b, { statistic: of, compare: "ratio", resamples: 50 }),
);
neverLeaks(
  "clusterBootstrap",
  [clusters, statistic, share],
  (a: number[][], of: s.ClusterStatistic, confidence: number) =>
    s.clusterBootstrap(a, { statistic: of, resamples: 50, confidence }),
);
neverLeaks("EProcess", [share, fc.array(share, { maxLength: 20 })], (rate: number, values: number[]) => {
  const process = new s.EProcess({ rate });
  for (const value of values) process.observe(value);
  return { value: process.value, pValue: process.pValue, rate: process.observedRate };
});
neverLeaks(
  "BoundedMeanSequence",
  [hostile, hostile, fc.array(share, { maxLength: 20 })],
  (low: number, high: number, values: number[]) => {
    const sequence = new s.BoundedMeanSequence({ range: [low, high] });
    for (const value of values) sequence.observe(value);
    const above = low <= high ? sequence.pValueAbove((low + high) / 2) : 1;
    return { interval: sequence.interval, mean: sequence.mean, above };
  },
);
neverLeaks("exceedanceRateBound", [count, count, share], (all: number, rank: number, confidence: number) =>
  s.exceedanceRateBound({ count: all, rank }, confidence),
);
neverLeaks(
  "pairsForDifference",
  [share, share, share],
  (discordance: number, difference: number, power: number) =>
    s.pairsForDifference({ discordance, difference, power }),
);
neverLeaks(
  "pairsForNonInferiority",
  [share, share, hostile],
  (discordance: number, margin: number, difference: number) =>
    s.pairsForNonInferiority({ discordance, margin, difference }),
);
neverLeaks("detectableDifference", [count, share], (pairs: number, discordance: number) =>
  s.detectableDifference({ pairs, discordance }),
);
neverLeaks(
  "cohenKappa",
  [fc.array(fc.array(count, { maxLength: 3 }), { maxLength: 3 }), share],
  (counts: number[][], confidence: number) => s.cohenKappa(counts, { confidence, weights: "linear" }),
);
neverLeaks("balancedAccuracy", [calibration, share], s.balancedAccuracy);
neverLeaks("correctedRate", [proportion, calibration, share], s.correctedRate);
neverLeaks(
  "predictionPoweredMean",
  [sample, sample, sample],
  (labels: number[], judgedLabelled: number[], judgedOnly: number[]) =>
    s.predictionPoweredMean({ labels, judgedLabelled, judgedOnly }),
);
neverLeaks("randomEffects", [units], s.randomEffects);
neverLeaks("cochranQ", [units], s.cochranQ);
neverLeaks(
  "clusterRobustRegression",
  [
    sample,
    fc.array(fc.array(hostile, { maxLength: 2 }), { maxLength: 12 }),
    fc.array(count, { maxLength: 12 }),
  ],
  (outcomes: number[], predictors: number[][], owners: number[]) =>
    s.clusterRobustRegression({ outcomes, predictors, names: ["x"], clusters: owners }),
);

test("what is wrong is named", () => {
  assert.throws(() => s.meanInterval([1, Number.NaN]), {
    code: "invalid_option",
    param: "values[1]",
    message: "values[1] is NaN; expected a finite number.",
  });
  assert.throws(() => s.meanInterval([]), { message: "values has 0 values; at least 1 are needed." });
  assert.throws(() => s.wilsonInterval(5, 4), { param: "successes" });
  assert.throws(() => s.pairedDifference({ both: 0, lost: 0, gained: 0, neither: 0 }), {
    code: "invalid_option",
  });
  assert.throws(
    () =>
      s.clusterRobustRegression({
        outcomes: [1, 2, 3, 4],
        predictors: [[2], [2], [2], [2]],
        names: ["length"],
        clusters: [1, 1, 2, 2],
      }),
    { message: '"length" does not vary, or is a combination of the others; leave it out.' },
  );
});

test("what is too little or too uniform is undefined, not invented", () => {
  assert.deepEqual(s.meanInterval([4]), { estimate: 4, interval: undefined, confidence: 0.95 });
  assert.equal(s.meanInterval([4, 4, 4]).interval, undefined);
  assert.equal(s.welchTTest([1, 1], [2, 2]).pValue, undefined);
  assert.equal(s.welchTTest([1], [2, 3]).pValue, undefined);
  assert.equal(s.pairedTTest([0.5]).interval, undefined);
  assert.equal(s.variance([3]), undefined);
  assert.equal(s.randomEffects([{ effect: 1, variance: 2 }]).interval, undefined);
  assert.deepEqual(s.wilsonInterval(0, 0), [0, 1]);
});
