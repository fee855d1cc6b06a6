import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "./random.js";
import { mean, variance } from "./sample.js";

const draw = (count: number, next: () => number) => Array.from({ length: count }, next);

/** SplitMix64 as its authors wrote it, in BigInt. */
function* splitMix64(seed: bigint): Generator<bigint, never> {
  let state = BigInt.asUintN(64, seed);
  for (;;) {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    yield z ^ (z >> 31n);
  }
}

test("streams are SplitMix64's, whatever the seed", () => {
  // Published for seed 1234567: 6457827717110365317, then 3203168211198807973.
  const published = new Random(1234567);
  assert.equal(published.uniform(), Number(6457827717110365317n >> 11n) / 2 ** 53);
  assert.equal(published.uniform(), Number(3203168211198807973n >> 11n) / 2 ** 53);
  for (const seed of [0n, 1n, -1n, 0xffff_ffffn, 1n << 32n, (1n << 64n) - 1n, 0x1234_5678_9abc_def0n]) {
    const random = new Random(seed);
    const reference = splitMix64(seed);
    for (let i = 0; i < 500; i++) {
      assert.equal(
        random.uniform(),
        Number(reference.next().value >> 11n) / 2 ** 53,
        `seed ${seed}, draw ${i}`,
      );
    }
  }
});

test("a fork's stream depends on its label and on what was drawn before", () => {
  const forked = new Random(3).fork(7);
  const reference = splitMix64(3n).next().value ^ (7n * 0xd1342543de82ef95n);
  assert.equal(forked.uniform(), new Random(reference).uniform());
  assert.notEqual(new Random(3).fork(8).uniform(), new Random(3).fork(7).uniform());
  const random = new Random(3);
  assert.notEqual(random.fork(7).uniform(), random.fork(7).uniform());
});

for (const [name, next, center, spread] of [
  ["gamma(0.4, 2)", (random: Random) => random.gamma(0.4, 2), 0.8, 1.6],
  ["gamma(1, 3)", (random: Random) => random.gamma(1, 3), 3, 9],
  ["gamma(5, 0.5)", (random: Random) => random.gamma(5, 0.5), 2.5, 1.25],
  ["beta(2, 6)", (random: Random) => random.beta(2, 6), 0.25, 12 / (64 * 9)],
  ["exponential(4)", (random: Random) => random.exponential(4), 4, 16],
  ["uniform", (random: Random) => random.uniform(), 0.5, 1 / 12],
  ["binomial(9, 0.3)", (random: Random) => random.binomial(9, 0.3), 2.7, 1.89],
  ["poisson(3.5)", (random: Random) => random.poisson(3.5), 3.5, 3.5],
] as const) {
  test(`${name} has its mean and variance`, () => {
    const random = new Random(7);
    const values = draw(20_000, () => next(random));
    assert.ok(values.every((value) => value >= 0));
    assert.ok(Math.abs(mean(values) / center - 1) < 0.05, String(mean(values)));
    assert.ok(Math.abs(variance(values)! / spread - 1) < 0.15, String(variance(values)));
  });
}

test("normal is standard", () => {
  const random = new Random(2);
  const values = draw(20_000, () => random.normal());
  assert.ok(Math.abs(mean(values)) < 0.03 && Math.abs(variance(values)! - 1) < 0.05);
});

test("integers, picks and shuffles cover their range evenly", () => {
  const random = new Random(5);
  const integers = [0, 0, 0];
  const picks = { a: 0, b: 0, c: 0 };
  const orders = new Map<string, number>();
  for (let i = 0; i < 3000; i++) {
    integers[random.integer(4, 6) - 4]! += 1;
    picks[random.pick(["a", "b", "c"] as const)]++;
    const order = random.shuffle(["a", "b", "c"]).join("");
    orders.set(order, (orders.get(order) ?? 0) + 1);
  }
  assert.ok([...integers, ...Object.values(picks)].every((count) => count > 900 && count < 1100));
  assert.equal(orders.size, 6);
  assert.ok([...orders.values()].every((count) => count > 420 && count < 580));
});

test("what cannot be drawn is refused", () => {
  assert.throws(() => new Random(1).pick([]), { code: "invalid_option" });
  assert.throws(() => new Random(1.5), { code: "invalid_option", param: "seed" });
  assert.throws(() => new Random(Number.NaN), { code: "invalid_option" });
  assert.throws(() => new Random(1).gamma(0, 1), { code: "invalid_option" });
  assert.throws(() => new Random(1).binomial(-1, 0.5), { code: "invalid_option" });
  assert.throws(() => new Random(1).poisson(-1), { code: "invalid_option" });
});
