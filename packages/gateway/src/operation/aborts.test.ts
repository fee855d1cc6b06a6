import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "@octavo/statistics";
import { Pool } from "undici";
import { FakeTarget, chatEvents, fakeText } from "../testing/fake-target.js";
import { readStream } from "../testing/read-answer.js";
import { sampleBody, startTestGateway, type TestGateway } from "../testing/test-gateway.js";

const numPlaces = 60;

/** Everything on that holds something for a call: a place, tokens of a rate, a reservation, a filter. */
const config = (url: string): object => ({
  targets: {
    t: { provider: "openai-compatible", url, connections: 200, models: { m: { input: 1, output: 1 } } },
  },
  rate_limits: {
    default_max_tokens: 100,
    rules: [{ name: "all", requests_per_minute: 1e6, tokens_per_minute: 1e9, concurrent: numPlaces }],
  },
  budgets: [{ name: "b", dollars: 1000, period: "forever" }],
  guardrails: { rules: [{ name: "mail", check: "pii", action: "redact", on: ["request", "response"] }] },
});

const reservedIn = async ({ gateway }: TestGateway): Promise<number> => {
  const route = gateway.runtime.stages
    .flatMap(({ stage }) => stage.adminRoutes ?? [])
    .find(({ path }) => path === "budgets");
  const report = await route!.handle({ values: [], query: new URLSearchParams(), body: undefined });
  return (report["budgets"] as { here: { reserved: number } }[])[0]?.here.reserved ?? 0;
};

async function untilIdle({ gateway }: TestGateway): Promise<void> {
  for (let turn = 0; turn < 12_000 && gateway.numOpen > 0; turn++)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

test("calls that are left at any moment leave nothing behind: no call, attempt, place, reservation or timer", async () => {
  const chunks = [...chatEvents({ model: "m" }, fakeText), "data: [DONE]\n\n"];
  await using target = await FakeTarget.start({ kind: "raw", type: "text/event-stream", chunks, gapMs: 2 });
  await using gateway = await startTestGateway(config(target.url));
  const stream = { ...sampleBody, stream: true };
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  await readStream(await gateway.post("/v1/chat/completions", stream));
  await untilIdle(gateway);
  const timersBefore = timers();
  const random = new Random(3);
  let left = 400;
  const pool = new Pool(gateway.url, { connections: 40 });
  const outcomes = { left: 0, complete: 0 };
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      while (left-- > 0) {
        const leaving = new AbortController();
        const leaveAt = Math.floor(random.uniform() * 14);
        if (leaveAt === 0) setImmediate(() => leaving.abort());
        try {
          const { statusCode, body } = await pool.request({
            method: "POST",
            path: "/v1/chat/completions",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(stream),
            signal: leaving.signal,
          });
          assert.equal(statusCode, 200);
          let read = 0;
          for await (const _ of body) if (++read === leaveAt) leaving.abort();
          outcomes.complete++;
        } catch {
          assert.ok(leaving.signal.aborted);
          outcomes.left++;
        }
      }
    }),
  );
  await pool.destroy();
  await untilIdle(gateway);
  // how many leave in time is chance and the machine's load
  assert.ok(outcomes.left > 50, `${outcomes.left} of 400 were left`);
  assert.equal(gateway.gateway.numOpen, 0);
  assert.equal(gateway.gateway.runtime.targets.get("t")!.outstanding, 0);
  assert.equal(await reservedIn(gateway), 0);
  assert.ok(timers() <= timersBefore, `${timers()} timers, ${timersBefore} before`);

  // every place is free again: as many calls at once as there are places, and not one more
  target.behaviour = { kind: "hang" };
  target.calls.length = 0;
  const leaving = new AbortController();
  const held = Array.from({ length: numPlaces }, () =>
    gateway.post("/v1/chat/completions", stream, {}, leaving.signal).catch(() => undefined),
  );
  while (target.calls.length < numPlaces) await new Promise((resolve) => setTimeout(resolve, 5));
  const refused = await gateway.post("/v1/chat/completions", stream);
  assert.equal(refused.status, 429);
  await refused.text();
  leaving.abort();
  await Promise.all(held);
  await untilIdle(gateway);
  assert.equal(gateway.gateway.runtime.targets.get("t")!.outstanding, 0);
});
