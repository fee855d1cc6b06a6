import assert from "node:assert/strict";
import test from "node:test";
import { StepHold } from "./step-hold.js";

test("a wait that was ended is not paid back by the next throttle", async () => {
  const hold = new StepHold();
  const ended = hold.owe(60_000);
  await new Promise((resolve) => setTimeout(resolve, 20));
  hold.release();
  assert.ok((await ended) < 60_000);
  assert.ok((await hold.owe(2)) > 0, "2 ms are owed, and nothing was paid in advance");
});

test("less than timers can wait for is owed to a later step", async () => {
  const hold = new StepHold();
  assert.equal(await hold.owe(0.6), 0);
  assert.ok((await hold.owe(0.6)) > 0);
});
