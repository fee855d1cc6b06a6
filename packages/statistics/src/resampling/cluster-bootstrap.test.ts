import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../random.js";
import { ClusterBootstrap } from "./cluster-bootstrap.js";

const meanOf = (sums: readonly number[]) => sums[1]! / sums[0]!;

/** Conversations of 5 to 40 tokens whose divergences share a level and are skewed, as those of models are. */
function simulate(random: Random, numClusters: number): number[][] {
  return Array.from({ length: numClusters }, () => {
    const level = Math.exp(0.5 * random.normal());
    const tokens = 5 + random.integer(0, 35);
    let sum = 0;
    for (let token = 0; token < tokens; token++) sum += level * Math.exp(random.normal() - 0.5);
    return [tokens, sum];
  });
}

test("intervals cover the truth about as often as they say, also for skewed, dependent tokens", () => {
  const random = new Random(21);
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
  const random = new Random(4);
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
  const clusters = simulate(new Random(9), 20);
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

test("sums that do not fit each other are refused", () => {
  const mean = [meanOf];
  assert.throws(() => new ClusterBootstrap(3, 100, 1).sample([[1, 2]], mean), { code: "invalid_option" });
  assert.throws(() => new ClusterBootstrap(2, 100, 1).sample([[1, 2], [1]], mean), { param: "clusters[1]" });
  assert.throws(() => new ClusterBootstrap(1, 100, 1).sample([[1, Number.NaN]], mean), {
    param: "clusters[0][1]",
  });
  assert.throws(() => new ClusterBootstrap(-1, 100, 1), { param: "numClusters" });
});
