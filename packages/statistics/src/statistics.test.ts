import assert from "node:assert/strict";
import test from "node:test";
import { ClusterBootstrap } from "./bootstrap.js";
import { normalCdf, normalQuantile } from "./normal.js";
import { SeededRandom } from "./random.js";
import { holm, signTest } from "./sign-test.js";

const meanOf = (sums: readonly number[]) => sums[1]! / sums[0]!;

function normal(random: SeededRandom): number {
  return Math.sqrt(-2 * Math.log(1 - random.uniform())) * Math.cos(2 * Math.PI * random.uniform());
}

/** Conversations of 5 to 40 tokens whose divergences share a level and are skewed, as those of models are. */
function simulate(random: SeededRandom, numClusters: number): number[][] {
  return Array.from({ length: numClusters }, () => {
    const level = Math.exp(0.5 * normal(random));
    const tokens = 5 + random.below(36);
    let sum = 0;
    for (let token = 0; token < tokens; token++) sum += level * Math.exp(normal(random) - 0.5);
    return [tokens, sum];
  });
}

test("intervals cover the truth about as often as they say, also for skewed, dependent tokens", () => {
  const random = new SeededRandom(21);
  const truth = Math.exp(0.125);
  const rounds = 300;
  let covered = 0;
  let below = 0;
  for (let round = 0; round < rounds; round++) {
    const [mean] = new ClusterBootstrap(40, 400, round).sample(simulate(random, 40), [meanOf]);
    const interval = mean!.interval()!;
    if (interval[0] <= truth && truth <= interval[1]) covered++;
    if (truth <= mean!.bound(0.95)!) below++;
  }
  assert.ok(covered >= 0.9 * rounds && covered <= 0.99 * rounds, `${covered} of ${rounds}`);
  assert.ok(below >= 0.89 * rounds, `upper bound held ${below} of ${rounds} times`);
});

test("resampling tokens instead of conversations would claim too much", () => {
  const random = new SeededRandom(4);
  const levels = Array.from({ length: 30 }, () => random.uniform());
  const whole = levels.map((level) => [50, 50 * level]);
  const single = levels.flatMap((level) => Array.from({ length: 50 }, () => [1, level]));
  const width = (clusters: number[][]) => {
    const [low, high] = new ClusterBootstrap(clusters.length, 300, 1)
      .sample(clusters, [meanOf])[0]!
      .interval()!;
    return high - low;
  };
  assert.ok(width(whole) > 4 * width(single));
});

test("seeded: the same draws for the same seed; few conversations have no interval", () => {
  const clusters = simulate(new SeededRandom(9), 20);
  const interval = (seed: number) =>
    new ClusterBootstrap(20, 500, seed).sample(clusters, [meanOf])[0]!.interval();
  assert.deepEqual(interval(3), interval(3));
  assert.notDeepEqual(interval(3), interval(4));
  const [few] = new ClusterBootstrap(7, 500, 1).sample(clusters.slice(0, 7), [meanOf]);
  assert.equal(few?.interval(), undefined);
  assert.ok(Number.isFinite(few?.value));
  const sparse = clusters.map((sums, index) => (index < 5 ? sums : [0, 0]));
  assert.equal(new ClusterBootstrap(20, 500, 1).sample(sparse, [meanOf])[0]?.interval(), undefined);
  const [zero] = new ClusterBootstrap(20, 500, 1).sample(
    clusters.map(([count]) => [count!, 0]),
    [meanOf],
  );
  assert.deepEqual(zero?.interval(), [0, 0]);
});

test("the normal distribution and its inverse", () => {
  assert.ok(Math.abs(normalCdf(1.959964) - 0.975) < 1e-6);
  assert.ok(Math.abs(normalCdf(0) - 0.5) < 1e-6);
  for (const p of [0.001, 0.025, 0.5, 0.9, 0.999]) {
    assert.ok(Math.abs(normalCdf(normalQuantile(p)) - p) < 1e-6, String(p));
  }
});

test("sign test and Holm's adjustment, by hand", () => {
  assert.equal(signTest(0, 0), 1);
  assert.equal(signTest(0, 9), 1);
  assert.ok(Math.abs(signTest(5, 0) - 1 / 32) < 1e-12);
  // 8 or more of 10 heads: (45 + 10 + 1) / 1024.
  assert.ok(Math.abs(signTest(8, 2) - 56 / 1024) < 1e-12);
  assert.ok(signTest(600, 400) < 1e-9 && signTest(5000, 5000) > 0.49);
  assert.deepEqual(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
});
