import assert from "node:assert/strict";
import { test } from "node:test";
import { RedisStore } from "../store/redis-store.js";
import { TestRedis, withoutRedis } from "../store/testing/test-redis.js";
import { Breaker } from "./breaker.js";
import { SharedBreakers } from "./shared-breakers.js";

const options = { failures: 2, errorRate: 1, minCalls: 1000, windowMs: 10_000, openForMs: 5000 };

test(
  "a breaker that one instance opened is open for all, and closed for all by whose probe succeeds",
  {
    skip: withoutRedis,
  },
  async (t) => {
    const redis = await TestRedis.start();
    let now = 1_000_000;
    const instances: { store: RedisStore; breaker: Breaker; shared: SharedBreakers }[] = [];
    for (let count = 0; count < 3; count += 1) {
      const store = await RedisStore.open({ url: redis.url, timeoutMs: 30_000 });
      const breaker = new Breaker(options);
      const owner = { name: "one", origin: "http://one", breaker };
      instances.push({ store, breaker, shared: new SharedBreakers([owner], store, () => now) });
    }
    t.after(async () => {
      for (const { store, shared } of instances) {
        shared.close();
        await store.close();
      }
      await redis.stop();
    });
    const lookAll = async (): Promise<void> => {
      for (const { shared } of instances) await shared.look();
    };
    const states = (): string[] => instances.map(({ breaker }) => breaker.state(now));
    const [a, b] = instances.map(({ breaker }) => breaker) as [Breaker, Breaker, Breaker];
    const call = (breaker: Breaker, outcome: "succeed" | "fail"): void => {
      assert.ok(breaker.begin(now));
      breaker[outcome](now);
    };

    call(a, "fail");
    await lookAll();
    assert.deepEqual(states(), ["closed", "closed", "closed"], "one failure opens nothing");
    call(a, "fail");
    await lookAll();
    assert.deepEqual(states(), ["open", "open", "open"]);
    assert.equal(b.admits(now), false);

    now += options.openForMs;
    assert.deepEqual(states(), ["half-open", "half-open", "half-open"]);
    call(b, "fail");
    await lookAll();
    assert.deepEqual(states(), ["open", "open", "open"], "a probe that failed keeps it open for all");

    now += options.openForMs;
    call(b, "succeed");
    await lookAll();
    assert.deepEqual(states(), ["closed", "closed", "closed"]);
    assert.ok(a.admits(now));

    await redis.kill();
    call(a, "fail");
    call(a, "fail");
    await lookAll();
    assert.deepEqual(states(), ["open", "closed", "closed"], "without the store each goes by what it sees");
  },
);
