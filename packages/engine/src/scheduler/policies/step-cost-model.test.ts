import assert from "node:assert/strict";
import { test } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import { StepCostModel, stepMs } from "./step-cost-model.js";

test("finds the parts of a cost from steps of different sizes", () => {
  const model = new StepCostModel();
  const random = new TestRandom(1);
  for (let step = 0; step < 60; step += 1) {
    const prefillTokens = random.below(400);
    const decodeTokens = random.below(32);
    model.observe(
      { prefillTokens, decodeTokens },
      20 + 0.1 * prefillTokens + 0.3 * decodeTokens + random.next(),
    );
  }
  assert.ok(model.cost !== undefined);
  assert.ok(Math.abs(model.cost.base - 20.5) < 1.5, `${model.cost.base}`);
  assert.ok(Math.abs(model.cost.perPromptToken - 0.1) < 0.01);
  assert.ok(Math.abs(model.cost.perDecode - 0.3) < 0.06);
});

test("knows what small steps cost after a thousand large ones that are nearly all alike", () => {
  const model = new StepCostModel();
  const random = new TestRandom(2);
  const observe = (prefillTokens: number, decodeTokens: number): void => {
    // a tenth more or less, as machines are
    const ms = 0.2 + 0.03 * prefillTokens + 0.05 * decodeTokens;
    model.observe({ prefillTokens, decodeTokens }, ms * (0.9 + 0.2 * random.next()));
  };
  for (const [prefillTokens, decodeTokens] of [
    [0, 1],
    [200, 0],
    [0, 1],
    [0, 4],
    [128, 8],
    [0, 12],
  ] as const)
    observe(prefillTokens, decodeTokens);
  for (let step = 0; step < 1000; step += 1) observe(480 + random.below(2), 31 + random.below(2));
  assert.ok(model.cost !== undefined);
  const smallMs = stepMs(model.cost, 0, 1);
  assert.ok(smallMs > 0.15 && smallMs < 0.35, `${smallMs} ms, not 0.25`);
  const largeMs = stepMs(model.cost, 480, 32);
  assert.ok(largeMs > 13 && largeMs < 19, `${largeMs} ms, not 16.2`);
});

test("follows a machine that becomes slower, and returns the clipped duration of each step", () => {
  const model = new StepCostModel();
  const cost = (prefillTokens: number): number => 10 + 0.1 * prefillTokens;
  for (let step = 0; step < 100; step += 1)
    model.observe({ prefillTokens: (step % 4) * 100, decodeTokens: 0 }, cost((step % 4) * 100));
  assert.equal(model.observe({ prefillTokens: 100, decodeTokens: 0 }, 1e6), 60);
  for (let step = 0; step < 400; step += 1)
    model.observe({ prefillTokens: (step % 4) * 100, decodeTokens: 0 }, 8 * cost((step % 4) * 100));
  assert.ok(model.cost !== undefined);
  assert.ok(Math.abs(stepMs(model.cost, 200, 0) / 240 - 1) < 0.05, `${stepMs(model.cost, 200, 0)}`);
});

test("believes nothing before it has seen a few steps", () => {
  assert.equal(new StepCostModel().cost, undefined);
});

test("steps that are all alike are believed to cost in proportion to their size, and none costs less than nothing", () => {
  const alike = new StepCostModel();
  for (let step = 0; step < 20; step += 1) alike.observe({ prefillTokens: 0, decodeTokens: 8 }, 16);
  assert.ok(alike.cost !== undefined);
  assert.ok(Math.abs(stepMs(alike.cost, 0, 8) - 16) < 0.1);
  assert.equal(alike.cost.perPromptToken, 0);
  const falling = new StepCostModel();
  for (let step = 0; step < 40; step += 1)
    falling.observe({ prefillTokens: 0, decodeTokens: step % 8 }, 20 - (step % 8));
  assert.ok(falling.cost !== undefined && falling.cost.perDecode >= 0 && falling.cost.base >= 0);
});

test("a machine that was busy with something else for a step is not what steps cost", () => {
  const model = new StepCostModel();
  for (let step = 0; step < 40; step += 1)
    model.observe({ prefillTokens: step % 2 === 0 ? 100 : 0, decodeTokens: 4 }, step % 2 === 0 ? 30 : 20);
  model.observe({ prefillTokens: 0, decodeTokens: 4 }, 5000);
  assert.ok(model.cost !== undefined && stepMs(model.cost, 0, 4) < 30);
});
