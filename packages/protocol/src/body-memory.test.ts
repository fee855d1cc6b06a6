import assert from "node:assert/strict";
import { it } from "node:test";
import { BodyMemory } from "./body-memory.js";

it("shares are bounded together, and give back what they hold", () => {
  const memory = new BodyMemory(10);
  const [one, other] = [memory.share(), memory.share()];
  one.grow(6);
  assert.throws(() => other.grow(5), { code: "overloaded" });
  other.grow(4);
  assert.equal(memory.bytes, 10);
  one.release();
  one.release();
  assert.equal(memory.bytes, 4);
  other.release();
  assert.equal(memory.bytes, 0);
});

it("what comes after a request is over is held by nobody", () => {
  const memory = new BodyMemory(10);
  const share = memory.share();
  share.grow(3);
  share.release();
  assert.throws(() => share.grow(3), { code: "request_cancelled" });
  share.release();
  assert.equal(memory.bytes, 0);
});
