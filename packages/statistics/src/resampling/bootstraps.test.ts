import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../random.js";
import { clusterBootstrap, twoSampleBootstrap } from "./two-sample-bootstrap.js";

/** Requests whose gaps share a level: the p90 of gaps depends on how levels spread, not on how many gaps there are. */
function requests(random: Random, count: number, scale: number): number[][] {
  return Array.from({ length: count }, () => {
    const level = scale * Math.exp(0.3 * random.normal());
    return Array.from({ length: random.integer(5, 20) }, () => level * (0.5 + random.exponential(0.5)));
  });
}

test("a ratio of quantiles of clustered gaps is covered about as often as it says", () => {
  const random = new Random(31);
  const rounds = 300;
  let covered = 0;
  for (let round = 0; round < rounds; round++) {
    const { interval } = twoSampleBootstrap(requests(random, 60, 2), requests(random, 60, 1), {
      statistic: { kind: "quantile", level: 0.9 },
      compare: "ratio",
      resamples: 200,
      seed: round,
    });
    if (interval && interval[0] <= 2 && 2 <= interval[1]) covered++;
  }
  assert.ok(covered >= 0.91 * rounds && covered <= 0.99 * rounds, `${covered} of ${rounds}`);
});

test("a difference of means of clusters, and a share, are covered about as often as they say", () => {
  const random = new Random(8);
  const rounds = 300;
  let means = 0;
  let sharesCovered = 0;
  for (let round = 0; round < rounds; round++) {
    const scores = (share: number) =>
      Array.from({ length: 40 }, () => {
        const own = random.uniform() < share ? 1 : 0;
        return Array.from({ length: 4 }, () => (random.uniform() < 0.9 ? own : 1 - own));
      });
    const options = { resamples: 200, seed: round };
    const difference = twoSampleBootstrap(scores(0.7), scores(0.5), {
      statistic: { kind: "mean" },
      compare: "difference",
      ...options,
    }).interval!;
    // 0.9 s + 0.1 (1 - s) of answers are right where a share s of clusters is.
    if (difference[0] <= 0.16 && 0.16 <= difference[1]) means++;
    const share = clusterBootstrap(scores(0.5), {
      statistic: { kind: "share-above", limit: 0.5 },
      ...options,
    });
    if (share.interval![0] <= 0.5 && 0.5 <= share.interval![1]) sharesCovered++;
  }
  for (const covered of [means, sharesCovered]) {
    assert.ok(covered >= 0.91 * rounds && covered <= 0.99 * rounds, `${covered} of ${rounds}`);
  }
});

test("ten clusters are few, and the interval of a mean knows it", () => {
  const random = new Random(10);
  const rounds = 2000;
  let covered = 0;
  for (let round = 0; round < rounds; round++) {
    const clusters = Array.from({ length: 10 }, () => {
      const level = random.normal();
      return [level, level + 0.1 * random.normal()];
    });
    const { interval } = clusterBootstrap(clusters, {
      statistic: { kind: "mean" },
      resamples: 200,
      seed: round,
    });
    if (interval![0] <= 0 && 0 <= interval![1]) covered++;
  }
  assert.ok(covered >= 0.925 * rounds && covered <= 0.97 * rounds, `${covered} of ${rounds}`);
});

test("without an effect the ratio of tails seldom excludes 1", () => {
  const random = new Random(77);
  const rounds = 300;
  let alarms = 0;
  for (let round = 0; round < rounds; round++) {
    const interval = twoSampleBootstrap(requests(random, 50, 1), requests(random, 70, 1), {
      statistic: { kind: "quantile", level: 0.95 },
      compare: "ratio",
      resamples: 200,
      seed: round,
    }).interval!;
    if (interval[0] > 1 || interval[1] < 1) alarms++;
  }
  assert.ok(alarms <= 0.085 * rounds, `${alarms} of ${rounds}`);
});

test("seeded, and undefined where there is too little", () => {
  const random = new Random(2);
  const [a, b] = [requests(random, 20, 1), requests(random, 20, 1)];
  const ask = (seed: number, level = 0.9) =>
    twoSampleBootstrap(a, b, { statistic: { kind: "quantile", level }, compare: "ratio", seed });
  assert.deepEqual(ask(1), ask(1));
  assert.notDeepEqual(ask(1).interval, ask(2).interval);
  // Some 250 gaps have no finite bound on their p99.
  assert.equal(ask(1, 0.99).interval, undefined);
  assert.ok(Number.isFinite(ask(1, 0.99).estimate));
  const few = twoSampleBootstrap(a.slice(0, 7), b, { statistic: { kind: "mean" }, compare: "ratio" });
  assert.equal(few.interval, undefined);
  const zeros = b.map((gaps) => gaps.map(() => 0));
  const noRatio = twoSampleBootstrap(a, zeros, { statistic: { kind: "mean" }, compare: "ratio" });
  assert.equal(noRatio.estimate, undefined);
  assert.equal(noRatio.interval, undefined);
});
