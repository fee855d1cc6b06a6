import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Exchange } from "../exchange/exchange.js";
import type { Stage, StageHooks } from "../exchange/stage.js";
import { sampleContext, sampleExchange } from "../limits/testing/sample-exchange.js";
import { EmbeddedStore } from "../store/embedded-store.js";
import { RedisStore } from "../store/redis-store.js";
import type { SharedStore } from "../store/shared-store.js";
import { TestRedis, withoutRedis } from "../store/testing/test-redis.js";
import { periodAt } from "./budget-period.js";
import { budgetsStage } from "./budgets-stage.js";

/** 1 dollar for 10 prompt tokens and 90 of the completion. */
const price = { input: 10_000, cachedInput: 1000, output: 10_000 };
const body = { max_tokens: 90 };

const stageOf = async (config: object, store?: SharedStore, nowMs = Date.now) => {
  const context = sampleContext({ ...(store === undefined ? {} : { store }), nowMs });
  const stage: Stage = await budgetsStage.create(budgetsStage.schema.parse([config]), context);
  return { stage, context };
};

const ask = async (stage: Stage, exchange: Exchange): Promise<StageHooks | undefined> =>
  stage.onRequest(exchange);

let redis: TestRedis | undefined;
before(async () => {
  if (withoutRedis === false) redis = await TestRedis.start();
});
after(() => redis?.stop());

const stores: [string, string | false, () => Promise<SharedStore>][] = [
  ["in this process", false, () => Promise.resolve(new EmbeddedStore({ nowMs: Date.now }))],
  ["in Redis", withoutRedis, () => RedisStore.open({ url: redis!.url, timeoutMs: 30_000 })],
];

for (const [where, skip, open] of stores) {
  test(`200 calls at once against a budget for 100, ${where}: never a cent over`, { skip }, async (t) => {
    const store = await open();
    t.after(() => store.close());
    const config = { name: `burst`, dollars: 100 };
    const stages = [await stageOf(config, store), await stageOf(config, store)].map(({ stage }) => stage);
    const calls = Array.from({ length: 200 }, () => sampleExchange({ body, price }));
    const started = await Promise.allSettled(calls.map((call, index) => ask(stages[index % 2]!, call)));
    const running = started.filter(({ status }) => status === "fulfilled").length;
    assert.ok(running <= 100 && running >= 99, `${running} run`);
    for (const { status, ...rest } of started)
      if (status === "rejected") assert.equal((rest as PromiseRejectedResult).reason.code, "budget_exceeded");
    let paid = 0;
    for (const [index, { status, ...rest }] of started.entries()) {
      if (status === "rejected") continue;
      // every third costs all it may, others less
      calls[index]!.ledger.costUsd = index % 3 === 0 ? 1 : 0.123_456_789;
      paid += Math.round(calls[index]!.ledger.costUsd * 1e9);
      await (rest as PromiseFulfilledResult<StageHooks>).value.settle!(undefined);
    }
    for (let more = 0; more < 400; more++) {
      const call = sampleExchange({ body, price });
      const hooks = await ask(stages[more % 2]!, call).catch(() => undefined);
      if (hooks === undefined) continue;
      call.ledger.costUsd = 1;
      paid += 1e9;
      await hooks.settle!(undefined);
    }
    assert.ok(paid <= 100e9, `${paid} nanodollars`);
    assert.ok(paid >= 98e9, "and the budget can be used");
    for (const stage of stages) await stage.close?.();
    const { id, startsAtMs, endsAtMs } = periodAt("month", Date.now());
    assert.equal(
      await store.taken({ key: `budget:burst:all:${id}`, limit: 1e11, startsAtMs, endsAtMs }),
      paid,
    );
  });
}

test("what an instance reserved when it died stays spent", async () => {
  const store = new EmbeddedStore({ nowMs: Date.now });
  const config = { name: "b", dollars: 3 };
  const dead = await stageOf(config, store);
  await ask(dead.stage, sampleExchange({ body, price }));
  await ask(dead.stage, sampleExchange({ body, price }));
  const { stage } = await stageOf(config, store);
  await ask(stage, sampleExchange({ body, price }));
  await assert.rejects(ask(stage, sampleExchange({ body, price })), { code: "budget_exceeded" });
});

test(
  "a Redis that goes away lets nothing through that was not paid for before",
  { skip: withoutRedis },
  async (t) => {
    const own = await TestRedis.start();
    const store = await RedisStore.open({ url: own.url, timeoutMs: 30_000 });
    t.after(async () => {
      await store.close();
      await own.stop();
    });
    const { stage } = await stageOf({ name: "b", dollars: 2000 }, store);
    const first = (await ask(stage, sampleExchange({ body, price })))!;
    await own.kill();
    // a thousandth of the budget was taken with the first call
    for (let i = 0; i < 2; i++) await ask(stage, sampleExchange({ body, price }));
    await assert.rejects(ask(stage, sampleExchange({ body, price })), { code: "store_unavailable" });
    await first.settle!(undefined);
    await ask(stage, sampleExchange({ body, price }));
  },
);

test("budgets are per tenant and per period, and a new period begins afresh", async () => {
  let now = Date.UTC(2026, 10, 30, 23, 59);
  const { stage } = await stageOf(
    { name: "b", per: "tenant", dollars: 1, period: "month" },
    undefined,
    () => now,
  );
  const call = (tenant: string) => ask(stage, sampleExchange({ body, price, caller: { tenant } }));
  await call("a");
  await assert.rejects(call("a"), { code: "budget_exceeded", message: /until 2026-12-01T00:00:00/ });
  await call("b");
  now += 60_000;
  await call("a");
});

test("soft warns once, medium slows down, hard ends", async () => {
  let now = 0;
  const config = { name: "b", dollars: 10, soft: 0.5, medium: 0.8, medium_requests_per_minute: 1 };
  const { stage, context } = await stageOf(config, undefined, () => now);
  const call = async () => {
    const exchange = sampleExchange({ body, price });
    const hooks = await ask(stage, exchange);
    exchange.ledger.costUsd = 1;
    await hooks!.settle!(undefined);
  };
  for (let i = 0; i < 5; i++) await call();
  assert.deepEqual(context.logged, []);
  for (let i = 0; i < 4; i++) await call();
  assert.equal(context.logged.length, 1);
  assert.match(context.logged[0]!, /^warn a budget is nearly spent .*"budget":"b".*"part":0.5/);
  await assert.rejects(call(), { code: "rate_limit_exceeded", message: /90 % of b is spent/ });
  now += 60_000;
  await call();
  now += 60_000;
  await assert.rejects(call(), { code: "budget_exceeded" });
});

test("GPU seconds are those that targets worked, of all attempts", async () => {
  const { stage, context } = await stageOf({ name: "g", gpu_seconds: 100, gpu_seconds_per_call: 40 });
  const first = sampleExchange();
  const hooks = await ask(stage, first);
  await ask(stage, sampleExchange());
  await assert.rejects(ask(stage, sampleExchange()), {
    code: "budget_exceeded",
    message: /40\.0 GPU seconds/,
  });
  const attempt = {
    target: "t",
    model: "m",
    reason: "first",
    firstByteMs: 1,
    outcome: "ok",
    status: 200,
    usage: undefined,
    costUsd: 0,
    predictedCachedTokens: undefined,
  } as const;
  first.ledger.attempts.push(
    { ...attempt, startedMs: 0, endedMs: 1500 },
    { ...attempt, startedMs: 1500, endedMs: 3000 },
  );
  await hooks!.settle!(undefined);
  await ask(stage, sampleExchange());
  const report = (await stage.adminRoutes![0]!.handle({
    values: [],
    query: new URLSearchParams(),
    body: undefined,
  })) as { budgets: { taken: number }[] };
  assert.equal(report.budgets[0]!.taken, 83e6);
  assert.deepEqual(context.logged.length, 1, "soft ceiling");
});

test("a call that cost more than it could is charged, and said", async () => {
  const { stage, context } = await stageOf({ name: "b", dollars: 2 });
  const call = sampleExchange({ body, price });
  const hooks = await ask(stage, call);
  call.ledger.costUsd = 2.5;
  await hooks!.settle!(undefined);
  assert.match(context.logged[0]!, /^error a call cost more .*\$0\.5000/);
  await assert.rejects(ask(stage, sampleExchange({ body: { max_tokens: 1 }, price })), {
    code: "budget_exceeded",
  });
});

test("what cannot be bounded or priced is refused, unless it is free", async () => {
  const { stage } = await stageOf({ name: "b", dollars: 2 });
  await assert.rejects(ask(stage, sampleExchange({ price })), {
    code: "invalid_request",
    param: "max_tokens",
  });
  await assert.rejects(ask(stage, sampleExchange({ body })), {
    code: "invalid_request",
    message: /no price/,
  });
  const free = await stageOf({ name: "b", dollars: 2, unpriced: "free" });
  assert.equal(await ask(free.stage, sampleExchange({ body })), undefined);
});

test("a configuration that cannot work is refused", () => {
  for (const budgets of [
    [{ name: "b" }],
    [{ name: "b", dollars: 1, gpu_seconds: 1 }],
    [
      { name: "b", dollars: 1 },
      { name: "b", dollars: 2 },
    ],
    [{ name: "b", dollars: 1, soft: 0.9, medium: 0.5 }],
    [{ name: "b", dollars: -1 }],
  ])
    assert.equal(budgetsStage.schema.safeParse(budgets).success, false, JSON.stringify(budgets));
});

test("periods are those of the calendar in UTC", () => {
  const at = Date.UTC(2026, 10, 22, 17, 30);
  const shown = (kind: Parameters<typeof periodAt>[0]) => {
    const { id, startsAtMs, endsAtMs } = periodAt(kind, at);
    return [id, new Date(startsAtMs).toISOString(), new Date(endsAtMs).toISOString()];
  };
  assert.deepEqual(shown("hour"), ["2026-11-22T17", "2026-11-22T17:00:00.000Z", "2026-11-22T18:00:00.000Z"]);
  assert.deepEqual(shown("day"), ["2026-11-22", "2026-11-22T00:00:00.000Z", "2026-11-23T00:00:00.000Z"]);
  assert.deepEqual(shown("week"), [
    "week-of-2026-11-16",
    "2026-11-16T00:00:00.000Z",
    "2026-11-23T00:00:00.000Z",
  ]);
  assert.deepEqual(shown("month"), ["2026-11", "2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z"]);
});
