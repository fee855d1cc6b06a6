import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { RedisStore } from "./redis-store.js";
import { testStore, testWindow } from "./testing/store-conformance.js";
import { TestRedis, withoutRedis } from "./testing/test-redis.js";

let redis: TestRedis;
const stores: RedisStore[] = [];
const skip = withoutRedis;

before(async () => {
  if (skip !== false) return;
  redis = await TestRedis.start();
  for (const timeoutMs of [30_000, 30_000]) stores.push(await RedisStore.open({ url: redis.url, timeoutMs }));
});

after(async () => {
  for (const store of stores) await store.close();
  if (skip === false) await redis.stop();
});

let next = 0;
testStore("Redis store", () => stores[next++ % 2]!, skip);

/** A Redis of its own, and instances that know it. */
async function instances(
  count: number,
): Promise<{ own: TestRedis; views: RedisStore[]; end: () => Promise<void> }> {
  const own = await TestRedis.start();
  const views: RedisStore[] = [];
  for (let i = 0; i < count; i++) views.push(await RedisStore.open({ url: own.url, timeoutMs: 30_000 }));
  const end = async (): Promise<void> => {
    for (const view of views) await view.close();
    await own.stop();
  };
  return { own, views, end };
}

async function untilAnswered<Value>(ask: () => Promise<Value>): Promise<Value> {
  for (;;) {
    const answer = await ask().catch(() => undefined);
    if (answer !== undefined) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("a Redis that goes away grants nothing", { skip }, async (t) => {
  const { own, views, end } = await instances(1);
  t.after(end);
  const window = testWindow(10);
  assert.equal(await views[0]!.take(window, 3, 3), 3);
  await own.kill();
  await assert.rejects(views[0]!.take(window, 1, 1), { code: "store_unavailable", retryable: true });
  await assert.rejects(views[0]!.readDocument("x"), { code: "store_unavailable" });
});

test("a Redis that comes back empty grants nothing of what began before", { skip }, async (t) => {
  const { own, views, end } = await instances(2);
  t.after(end);
  const window = testWindow(10);
  const rate = { key: "rate", perSecond: 0.001, burst: 5 };
  assert.equal(await views[0]!.take(window, 9, 9), 9);
  assert.equal(await views[0]!.takeRates([{ bucket: rate, amount: 5 }]), undefined);
  assert.equal(await views[1]!.holdSlots({ key: "pool", limit: 2 }, "one", 2, 60_000), 2);
  await own.kill();
  await own.begin();
  // an instance that started meanwhile knows of no loss; those that do correct it
  const fresh = await RedisStore.open({ url: own.url, timeoutMs: 30_000 });
  t.after(() => fresh.close());
  assert.equal(await untilAnswered(() => views[1]!.take(window, 1, 1)), 0);
  for (const view of [...views, fresh]) {
    assert.equal(await untilAnswered(() => view.take(window, 1, 1)), 0);
    assert.equal(await view.taken(window), window.limit);
    assert.notEqual(await view.takeRates([{ bucket: rate, amount: 1 }]), undefined);
    assert.equal(await view.holdSlots({ key: "pool", limit: 2 }, "two", 2, 60_000), 0);
  }
  const later = { ...testWindow(10), startsAtMs: Date.now() + 60_000 };
  assert.equal(await fresh.take(later, 4, 4), 4);
  assert.equal(await views[0]!.take(later, 10, 1), 6);
});

test("a Redis that may drop keys, or none at all, is refused at the start", { skip }, async (t) => {
  const { own, end } = await instances(0);
  t.after(end);
  await own.kill();
  await assert.rejects(RedisStore.open({ url: own.url }), { code: "store_unavailable" });
  await own.begin("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru");
  await assert.rejects(RedisStore.open({ url: own.url }), { message: /noeviction/ });
  for (const url of ["http://127.0.0.1", "nonsense"])
    await assert.rejects(RedisStore.open({ url }), { code: "invalid_option", param: "url" });
});
