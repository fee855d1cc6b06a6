import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { arrivalTimes } from "./arrivals.js";

function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((at, index) => at - (times[index] ?? 0));
}

function spread(times: readonly number[]): number {
  const all = gaps(times);
  const mean = all.reduce((sum, gap) => sum + gap, 0) / all.length;
  return Math.sqrt(all.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / all.length) / mean;
}

test("Poisson arrivals keep the rate and have exponential gaps", () => {
  const times = arrivalTimes({ kind: "poisson", requestsPerSecond: 20 }, 5000, new Random(1));
  assert.ok(times);
  assert.equal(times[0], 0);
  assert.ok(Math.abs((times.at(-1) ?? 0) / (4999 * 50) - 1) < 0.05);
  assert.ok(Math.abs(spread(times) - 1) < 0.06, String(spread(times)));
});

test("gamma arrivals are burstier below shape 1 and more even above", () => {
  const cv = (burstiness: number) =>
    spread(arrivalTimes({ kind: "gamma", requestsPerSecond: 20, burstiness }, 5000, new Random(2)) ?? []);
  assert.ok(Math.abs(cv(0.25) - 2) < 0.25, String(cv(0.25)));
  assert.ok(Math.abs(cv(4) - 0.5) < 0.05, String(cv(4)));
});

test("constant, burst, trace and closed-loop starts", () => {
  const random = new Random(0);
  assert.deepEqual(arrivalTimes({ kind: "constant", requestsPerSecond: 10 }, 3, random), [0, 100, 200]);
  assert.deepEqual(arrivalTimes({ kind: "burst" }, 2, random), [0, 0]);
  assert.deepEqual(arrivalTimes({ kind: "trace", speedup: 2 }, 2, random, [0, 500]), [0, 250]);
  assert.equal(arrivalTimes({ kind: "concurrency", concurrency: 4 }, 2, random), undefined);
  assert.throws(() => arrivalTimes({ kind: "trace", speedup: 1 }, 1, random, []), OctavoError);
});
