import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "./turns.js";

test("runs no more at once than allowed, in order, whatever fails", async () => {
  const turns = new Turns(3);
  let running = 0;
  let most = 0;
  const order: number[] = [];
  const work = (index: number) => async (): Promise<number> => {
    order.push(index);
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    if (index % 4 === 0) throw new RangeError(String(index));
    return index;
  };
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => turns.take(index % 2 === 0 ? "even" : "odd", work(index))),
  );
  assert.equal(most, 3);
  assert.deepEqual(
    order,
    Array.from({ length: 20 }, (_, index) => index),
  );
  assert.deepEqual(
    results.map(({ status }) => status),
    order.map((index) => (index % 4 === 0 ? "rejected" : "fulfilled")),
  );
  assert.equal(await turns.take("", () => Promise.resolve("free")), "free");
});

test("keeps a place for other tenants", async () => {
  const turns = new Turns(2);
  const finish: (() => void)[] = [];
  const begun: string[] = [];
  const hold = (tenant: string): Promise<void> =>
    turns.take(tenant, () => {
      begun.push(tenant);
      return new Promise((resolve) => finish.push(resolve));
    });
  const all = [hold("loud"), hold("loud"), hold("loud"), hold("quiet")];
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(begun, ["loud", "quiet"]);
  while (begun.length < all.length || finish.length > 0) {
    finish.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
});
