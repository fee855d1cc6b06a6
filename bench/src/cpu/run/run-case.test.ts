import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { Contender } from "../contenders/contender.js";
import { modelShapes } from "../models/shapes.js";
import { type MeasuredCase, runCase } from "./run-case.js";

const model = {
  path: "",
  shape: modelShapes.tiny,
  type: "q4_0",
  weightBytes: 1,
  multiplyAddsPerToken: 1,
} as const;

function runOf(
  contenders: readonly Contender[],
  bandwidths: number[],
  read: () => number,
  repeats = 3,
): MeasuredCase {
  return {
    job: { kind: "prefill", promptTokens: 1, rounds: 1 },
    contenders,
    repeats,
    context: { model, threads: 1, env: {} },
    bandwidths,
    measureLimits: () => Promise.resolve({ readGBps: read(), int8Gops: 1, bf16Gflops: 1 }),
  };
}

function contender(name: string, order: string[]): Contender {
  return {
    name,
    supports: () => true,
    measure: () => {
      order.push(name);
      return Promise.resolve({ prefillTokensPerSecond: order.length });
    },
  };
}

describe("runCase", () => {
  test("contenders take turns, in the opposite order each time", async () => {
    const order: string[] = [];
    await runCase(runOf([contender("a", order), contender("b", order)], [], () => 40));
    assert.deepEqual(order, ["a", "b", "b", "a", "a", "b"]);
  });

  test("a sample of a machine that has lost its bandwidth is taken again", async () => {
    const order: string[] = [];
    const readings = [40, 40, 10, 40, 40, 40, 40];
    const { samples, numRepeated } = await runCase(
      runOf([contender("a", order)], [40, 41, 42], () => readings.shift() ?? 40),
    );
    // The reading of 10 stands after the second sample and before its repetition.
    assert.equal(numRepeated, 2);
    assert.equal(samples.length, 3);
    assert.ok(samples.every(({ limits }) => limits.readGBps === 40));
  });

  test("a machine that stays slow is not waited for", async () => {
    const order: string[] = [];
    const { samples, numRepeated } = await runCase(
      runOf(
        [contender("a", order)],
        Array.from({ length: 50 }, () => 40),
        () => 10,
      ),
    );
    assert.equal(numRepeated, 3);
    assert.equal(samples.length, 3);
  });

  test("what contenders need is made once, before anything is measured", async () => {
    const order: string[] = [];
    const prepared: Contender = {
      ...contender("a", order),
      prepare: async () => void order.push("a's"),
    };
    const unprepared: Contender = {
      ...contender("b", order),
      prepare: () => Promise.reject(new OctavoError("engine_failed", "nothing to make it of")),
    };
    const { samples, failures } = await runCase(
      runOf([contender("c", order), prepared, unprepared], [], () => 40, 2),
    );
    assert.deepEqual(order, ["a's", "c", "a", "a", "c"]);
    assert.equal(samples.length, 4);
    assert.equal(failures.get("b")?.message, "nothing to make it of");
  });

  test("a contender that fails is left out and named", async () => {
    const order: string[] = [];
    const broken: Contender = {
      name: "broken",
      supports: () => true,
      measure: () => Promise.reject(new OctavoError("engine_failed", "no")),
    };
    const { samples, failures } = await runCase(runOf([contender("a", order), broken], [], () => 40));
    assert.equal(samples.length, 3);
    assert.equal(failures.get("broken")?.message, "no");
  });
});

test("a job may be settled once the contenders are prepared, as a rate is that depends on their capacity", async () => {
  const seen: unknown[] = [];
  const watched: Contender = {
    name: "a",
    supports: () => true,
    prepare: (job) => Promise.resolve(void seen.push(["prepare", job])),
    setting: () => "flash",
    measure: (job) => {
      seen.push(["measure", job]);
      return Promise.resolve({ prefillTokensPerSecond: 1 });
    },
  };
  const asked = { kind: "prefill", promptTokens: 1, rounds: 1 } as const;
  const settled = { ...asked, promptTokens: 2 };
  const { samples } = await runCase({
    ...runOf([watched], [], () => 40, 1),
    settleJob: () => Promise.resolve(settled),
  });
  assert.deepEqual(seen, [
    ["prepare", asked],
    ["measure", settled],
  ]);
  assert.equal(samples[0]?.setting, "flash");
});
