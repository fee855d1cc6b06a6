import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DraftingBalance } from "./drafting-balance.js";

function note(balance: DraftingBalance, steps: number, won: number): void {
  for (let step = 0; step < steps; step += 1) balance.note(won);
}

/** Steps until the pause is over. */
function restOf(balance: DraftingBalance): number {
  let count = 0;
  for (; balance.isPaused; count += 1) balance.note(0);
  return count;
}

describe("DraftingBalance", () => {
  test("pauses when a window of steps took more than it saved, and not before", () => {
    const balance = new DraftingBalance();
    note(balance, 64, 0.1);
    assert.equal(balance.isPaused, false);
    note(balance, 63, -0.1);
    assert.equal(balance.isPaused, false);
    note(balance, 1, -0.1);
    assert.equal(balance.isPaused, true);
  });

  test("pauses at once when it has cost eight steps", () => {
    const balance = new DraftingBalance();
    note(balance, 4, -2);
    assert.equal(balance.isPaused, false);
    note(balance, 1, -2);
    assert.equal(balance.isPaused, true);
  });

  test("goes on after a step that took long", () => {
    const balance = new DraftingBalance();
    note(balance, 1, -50);
    note(balance, 63, 0.1);
    assert.equal(balance.isPaused, false);
  });

  test("rests twice as long each time, until drafting pays again", () => {
    const balance = new DraftingBalance();
    const rests: number[] = [];
    for (let pause = 0; pause < 6; pause += 1) {
      note(balance, 64, -0.1);
      rests.push(restOf(balance));
    }
    assert.deepEqual(rests, [512, 1024, 2048, 4096, 8192, 8192]);
    note(balance, 64, 0.1);
    note(balance, 64, -0.1);
    assert.equal(restOf(balance), 512);
  });

  test("what is noted while it rests counts for nothing", () => {
    const balance = new DraftingBalance();
    note(balance, 64, -0.1);
    note(balance, 512, -100);
    assert.equal(balance.isPaused, false);
    note(balance, 64, 0.1);
    assert.equal(balance.isPaused, false);
  });
});
