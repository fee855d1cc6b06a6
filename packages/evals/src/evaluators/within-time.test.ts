import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { withinTime } from "./within-time.js";

/** Holds the thread without using the processor. */
function sleepMs(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("work gives its result, or throws what it throws", () => {
  assert.equal(
    withinTime(1000, "adding", () => 1 + 1),
    2,
  );
  assert.throws(
    () =>
      withinTime(1000, "failing", () => {
        throw new RangeError("too far");
      }),
    RangeError,
  );
});

test("work that computes for too long is cut off, and the next is not", () => {
  let numBegun = 0;
  const endless = (): never => {
    numBegun++;
    for (;;) Math.random();
  };
  assert.throws(
    () => withinTime(100, "looping", endless),
    (thrown) =>
      thrown instanceof OctavoError &&
      thrown.code === "deadline_exceeded" &&
      /looping took longer than 100 ms/.test(thrown.message),
  );
  assert.ok(numBegun >= 1);
  assert.equal(
    withinTime(1000, "answering", () => "fine"),
    "fine",
  );
});

test("work that never had the processor is begun again", () => {
  let numBegun = 0;
  const starved = (): string => {
    numBegun++;
    if (numBegun < 3) {
      sleepMs(300);
      for (;;) sleepMs(50);
    }
    return "done";
  };
  assert.equal(withinTime(200, "waiting", starved), "done");
  assert.equal(numBegun, 3);
});
