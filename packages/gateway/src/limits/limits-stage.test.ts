import assert from "node:assert/strict";
import test from "node:test";
import type { Exchange } from "../exchange/exchange.js";
import type { Stage, StageHooks } from "../exchange/stage.js";
import { Redis } from "ioredis";
import { EmbeddedStore } from "../store/embedded-store.js";
import { RedisStore } from "../store/redis-store.js";
import { TestRedis, withoutRedis } from "../store/testing/test-redis.js";
import type { SharedStore } from "../store/shared-store.js";
import { limitsStage } from "./limits-stage.js";
import { sampleContext, sampleExchange } from "./testing/sample-exchange.js";

let now = 0;
const clock = (): number => now;

async function stageOf(
  config: object,
  store: SharedStore = new EmbeddedStore({ nowMs: clock }),
): Promise<Stage> {
  return limitsStage.create(limitsStage.schema.parse(config), sampleContext({ store, nowMs: clock }));
}

const ask = async (stage: Stage, exchange: Exchange): Promise<StageHooks | undefined> =>
  stage.onRequest(exchange);

test("requests per minute are counted for each key, and refused with the time to wait", async () => {
  const stage = await stageOf({
    rules: [{ name: "r", per: "key", requests_per_minute: 60, requests_burst: 3 }],
  });
  const call = (keyId: string) => ask(stage, sampleExchange({ caller: { keyId } }));
  for (let i = 0; i < 3; i++) await call("a");
  await assert.rejects(call("a"), { code: "rate_limit_exceeded", status: 429, retryAfterSeconds: 1 });
  await call("b");
  now += 1000;
  await call("a");
  await assert.rejects(call("a"), { code: "rate_limit_exceeded" });
  await stage.close?.();
});

test("tokens are taken at most and returned as far as they were not used", async () => {
  const stage = await stageOf({ rules: [{ name: "t", tokens_per_minute: 600, tokens_burst: 200 }] });
  const call = (max: number) => sampleExchange({ promptTokens: 50, body: { max_tokens: max } });
  const first = call(100);
  const hooks = await ask(stage, first);
  await assert.rejects(ask(stage, call(100)), { code: "rate_limit_exceeded", retryAfterSeconds: 10 });
  first.ledger.usage = { promptTokens: 50, cachedTokens: 0, completionTokens: 20 };
  await hooks!.settle!(undefined);
  await ask(stage, call(80));
  await assert.rejects(ask(stage, call(1)), { code: "rate_limit_exceeded" });
  await assert.rejects(ask(stage, call(1000)), {
    code: "invalid_request",
    message: /lets 200 through at once/,
  });
  await assert.rejects(ask(stage, sampleExchange()), { code: "invalid_request", param: "max_tokens" });
  await stage.close?.();
});

test("a call that a later rule refuses has taken nothing", async () => {
  const store = new EmbeddedStore({ nowMs: clock });
  const rules = [
    { name: "wide", requests_per_minute: 60, requests_burst: 2, concurrent: 5 },
    { name: "narrow", per: "tenant", tenants: ["x"], requests_per_minute: 1, requests_burst: 1 },
  ];
  const stage = await stageOf({ rules }, store);
  const call = (tenant: string) => ask(stage, sampleExchange({ caller: { tenant } }));
  await call("x");
  for (let i = 0; i < 5; i++) await assert.rejects(call("x"), { message: /^narrow allows/ });
  await call("y");
  await assert.rejects(call("y"), { message: /^wide allows/ });
  await stage.close?.();
});

test("calls at the same time are bounded, however they end", async () => {
  const stage = await stageOf({ rules: [{ name: "c", per: "model", concurrent: 2 }] });
  const running = await Promise.all([ask(stage, sampleExchange()), ask(stage, sampleExchange())]);
  await assert.rejects(ask(stage, sampleExchange()), { code: "rate_limit_exceeded", retryAfterSeconds: 1 });
  await ask(stage, sampleExchange({ body: { model: "other" } }));
  await running[0]!.settle!(undefined);
  await ask(stage, sampleExchange());
  await assert.rejects(ask(stage, sampleExchange()), { code: "rate_limit_exceeded" });
  await stage.close?.();
});

test("instances share places, and those of one that died come free", async () => {
  const store = new EmbeddedStore({ nowMs: clock });
  const [one, two] = await Promise.all(
    [1, 2].map(() => stageOf({ rules: [{ name: "c", concurrent: 3 }] }, store)),
  );
  const tried = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => ask(index % 2 === 0 ? one! : two!, sampleExchange())),
  );
  assert.equal(tried.filter(({ status }) => status === "fulfilled").length, 3);
  now += 20_000;
  await two!.close?.();
  const three = await stageOf({ rules: [{ name: "c", concurrent: 3 }] }, store);
  assert.notEqual(await ask(three, sampleExchange()), undefined);
  await one!.close?.();
  await three.close?.();
});

test("max_tokens is set where it is not, lowered where it is higher, and left alone otherwise", async () => {
  const stage = await stageOf({ default_max_tokens: 100, max_tokens: 500 });
  const after = async (body: object, operation: Exchange["operation"] = "chat") => {
    const exchange = sampleExchange({ body: body as Record<string, unknown>, operation });
    await ask(stage, exchange);
    const { max_tokens, max_completion_tokens, max_output_tokens } = exchange.body.fields;
    return [max_tokens, max_completion_tokens, max_output_tokens, exchange.body.isChanged];
  };
  assert.deepEqual(await after({}), [100, undefined, undefined, true]);
  assert.deepEqual(await after({ max_tokens: 9999 }), [500, undefined, undefined, true]);
  assert.deepEqual(await after({ max_completion_tokens: 501 }), [undefined, 500, undefined, true]);
  assert.deepEqual(await after({ max_tokens: 7 }), [7, undefined, undefined, false]);
  assert.deepEqual(await after({}, "responses"), [undefined, undefined, 100, true]);
  assert.deepEqual(await after({}, "embeddings"), [undefined, undefined, undefined, false]);
  await stage.close?.();
});

test("a prompt that is too long is refused before it reaches a target", async () => {
  const stage = await stageOf({ max_prompt_tokens: 100 });
  await ask(stage, sampleExchange({ promptTokens: 100 }));
  await assert.rejects(ask(stage, sampleExchange({ promptTokens: 100_000 })), {
    code: "context_length_exceeded",
    message: "The prompt has up to 100000 tokens; the gateway takes 100.",
  });
  await stage.close?.();
});

test("choices and prompts multiply what a call may take", async () => {
  const stage = await stageOf({ rules: [{ name: "t", tokens_per_minute: 1000 }] });
  const over = (body: object, operation: Exchange["operation"]) =>
    assert.rejects(ask(stage, sampleExchange({ body: body as Record<string, unknown>, operation })), {
      code: "invalid_request",
    });
  await over({ max_tokens: 200, n: 5 }, "chat");
  await over({ max_tokens: 200, best_of: 5 }, "completions");
  await over({ max_tokens: 200, prompt: ["a", "b", "c", "d", "e"] }, "completions");
  await ask(
    stage,
    sampleExchange({ body: { max_tokens: 200, prompt: [1, 2, 3, 4, 5] }, operation: "completions" }),
  );
  await stage.close?.();
});

test("rules speak of whom they name", async () => {
  const stage = await stageOf({
    rules: [{ name: "r", per: "tag", tags: ["batch"], requests_per_minute: 1 }],
  });
  const call = (tags: string[]) => ask(stage, sampleExchange({ caller: { tags } }));
  assert.equal(await call(["live"]), undefined);
  await call(["live", "batch"]);
  await assert.rejects(call(["batch"]), { code: "rate_limit_exceeded" });
  await stage.close?.();
});

test("a configuration that cannot work is refused", () => {
  for (const config of [
    { rules: [{ name: "r" }] },
    {
      rules: [
        { name: "r", concurrent: 1 },
        { name: "r", concurrent: 2 },
      ],
    },
    { default_max_tokens: 10, max_tokens: 5 },
    { rules: [{ name: "r", request_per_minute: 5 }] },
  ])
    assert.equal(limitsStage.schema.safeParse(config).success, false, JSON.stringify(config));
});

test("a call asks Redis once before it is sent and once after it", { skip: withoutRedis }, async (t) => {
  const redis = await TestRedis.start();
  const store = await RedisStore.open({ url: redis.url, timeoutMs: 30_000 });
  const client = new Redis(redis.url);
  t.after(async () => {
    client.disconnect();
    await store.close();
    await redis.stop();
  });
  const each = { requests_per_minute: 6000, tokens_per_minute: 1e9 };
  const rules = [
    { name: "all", concurrent: 100, ...each },
    { name: "tenants", per: "tenant", ...each },
    { name: "keys", per: "key", ...each },
  ];
  const stage = await stageOf({ rules }, store);
  const scripts = async (): Promise<number> => {
    const stats = await client.info("commandstats");
    return ["eval", "evalsha"].reduce(
      (sum, name) => sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
      0,
    );
  };
  const call = async (): Promise<void> => {
    const exchange = sampleExchange({ caller: { keyId: "k", tenant: "t" }, body: { max_tokens: 9 } });
    const hooks = await ask(stage, exchange);
    await hooks?.settle?.(undefined);
  };
  await call();
  const before = await scripts();
  for (let calls = 0; calls < 20; calls += 1) await call();
  assert.equal((await scripts()) - before, 40);
  await stage.close?.();
});
