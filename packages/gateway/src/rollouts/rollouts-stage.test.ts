import assert from "node:assert/strict";
import test from "node:test";
import { asRecord, type JsonFields } from "@octavo/protocol";
import type { Gateway } from "../operation/gateway.js";
import { TestRedis, withoutRedis } from "../store/testing/test-redis.js";
import { FakeTarget } from "../testing/fake-target.js";
import { contentOf, errorOf, readStream } from "../testing/read-answer.js";
import { startTestGateway, type TestGateway } from "../testing/test-gateway.js";

const goodJson = '{"ok": true}';

/** A gateway with one rollout from `good` to `new`; both are asked for by the model `m`. */
async function startRollout(
  urls: { good: string; new: string },
  rollout: object,
  more: object = {},
): Promise<TestGateway> {
  const target = (url: string): object => ({ provider: "vllm", url, models: ["m"], probe: { path: "off" } });
  return startTestGateway({
    targets: { good: target(urls.good), new: target(urls.new) },
    routes: { r: { models: ["m"], targets: ["good"] } },
    rollouts: [
      {
        name: "int4",
        model: "m",
        primary: { target: "good" },
        canary: { target: "new" },
        key: "user",
        gates: [{ check: "json_valid" }],
        pair_share: 1,
        ...rollout,
      },
    ],
    ...more,
  });
}

async function admin(gateway: Gateway, method: string, path: string, body?: unknown): Promise<JsonFields> {
  const routes = gateway.runtime.stages.flatMap(({ stage }) => stage.adminRoutes ?? []);
  const [folder, name, command] = path.split("/");
  const wanted =
    name === undefined ? folder : command === undefined ? `${folder}/*` : `${folder}/*/${command}`;
  const route = routes.find((row) => row.method === method && row.path === wanted)!;
  return route.handle({ values: name === undefined ? [] : [name], query: new URLSearchParams(), body });
}

const report = (gateway: Gateway): Promise<JsonFields> => admin(gateway, "GET", "rollouts/int4");

const bodyOf = (user: string): JsonFields => ({
  model: "m",
  user,
  temperature: 0,
  messages: [{ role: "user", content: `as ${user}` }],
});

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 2000, what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function ask(gateway: TestGateway, user: string): Promise<{ text: unknown; target: string | null }> {
  const response = await gateway.post("/v1/chat/completions", bodyOf(user));
  assert.equal(response.status, 200);
  return { text: contentOf(await response.json()), target: response.headers.get("x-octavo-target") };
}

test("a canary that breaks JSON is rolled back by its shadow, and no client saw it", async () => {
  await using good = await FakeTarget.start({ kind: "answer", text: goodJson });
  await using bad = await FakeTarget.start({ kind: "answer", text: '{"ok": tru' });
  await using gateway = await startRollout(
    { good: good.url, new: bad.url },
    {
      stages: [{ mode: "shadow", share: 1, min_pairs: 30 }, { share: 1 }],
    },
  );
  for (let i = 0; i < 30; i++) assert.equal((await ask(gateway, `u${i}`)).text, goodJson);
  await until("it is rolled back", async () => (await report(gateway.gateway))["status"] === "rolled_back");
  const { journal, pairs } = (await report(gateway.gateway)) as { journal: JsonFields[]; pairs: number };
  assert.ok(pairs <= 12, String(pairs));
  assert.deepEqual([journal.at(-1)!["decision"], journal.at(-1)!["by"]], ["rollback", "evidence"]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const before = bad.calls.length;
  for (let i = 0; i < 10; i++) await ask(gateway, `v${i}`);
  assert.equal(bad.calls.length, before, "it gets no more traffic");
});

test("a good canary is promoted stage by stage, cohorts grow by user, and the old target stays the fallback", async () => {
  await using good = await FakeTarget.start({ kind: "answer", text: goodJson });
  await using next = await FakeTarget.start({ kind: "answer", text: goodJson });
  await using gateway = await startRollout(
    { good: good.url, new: next.url },
    {
      stages: [
        { share: 0.05, min_pairs: 5 },
        { share: 0.25, min_pairs: 5 },
        { share: 1, min_pairs: 5 },
      ],
      gates: [{ check: "json_valid", margin: 0.3 }],
    },
  );
  const seen = new Map<string, string[]>();
  for (let round = 0; round < 6; round++) {
    for (let i = 0; i < 20; i++) {
      const { target } = await ask(gateway, `u${i}`);
      seen.set(`u${i}`, [...(seen.get(`u${i}`) ?? []), target!]);
    }
  }
  await until("it is promoted", async () => {
    await ask(gateway, "more");
    return (await report(gateway.gateway))["status"] === "promoted";
  });
  for (const targets of seen.values()) {
    const first = targets.indexOf("new");
    if (first >= 0)
      assert.ok(
        targets.slice(first).every((target) => target === "new"),
        targets.join(" "),
      );
  }
  assert.equal((await ask(gateway, "u1")).target, "new");
  next.behaviour = { kind: "status", status: 500 };
  assert.deepEqual(await ask(gateway, "u1"), { text: goodJson, target: "good" });
});

test("a canary that fails is answered for by the primary, and rolled back for it", async () => {
  await using good = await FakeTarget.start({ kind: "answer", text: goodJson });
  await using down = await FakeTarget.start({ kind: "status", status: 500 });
  await using gateway = await startRollout(
    { good: good.url, new: down.url },
    {
      stages: [{ share: 1 }],
      gates: [{ check: "answered" }],
    },
  );
  for (let i = 0; i < 30; i++) assert.equal((await ask(gateway, `u${i}`)).text, goodJson);
  await until("it is rolled back", async () => (await report(gateway.gateway))["status"] === "rolled_back");
});

test("a rollback by hand holds from the next call on, and takes back what the canary had cached", async () => {
  await using good = await FakeTarget.start({ kind: "answer", text: "old" });
  await using next = await FakeTarget.start({ kind: "answer", text: "new" });
  await using gateway = await startRollout(
    { good: good.url, new: next.url },
    { stages: [{ share: 1, min_pairs: 1000 }], gates: [{ check: "answered" }] },
    { cache: { per: "all" } },
  );
  assert.equal((await ask(gateway, "a")).text, "new");
  assert.equal((await ask(gateway, "a")).text, "new");
  assert.equal(next.calls.length, 1, "the second was cached");
  const { decision } = await admin(gateway.gateway, "POST", "rollouts/int4/rollback", {
    by: "alice",
    reason: "odd answers",
  });
  assert.deepEqual(
    [asRecord(decision)["decision"], asRecord(decision)["by"], asRecord(decision)["reason"]],
    ["rollback", "alice", "odd answers"],
  );
  const calls = next.calls.length;
  assert.equal((await ask(gateway, "a")).text, "old");
  assert.equal((await ask(gateway, "b")).text, "old");
  assert.equal(next.calls.length, calls);
  await assert.rejects(admin(gateway.gateway, "POST", "rollouts/int5/rollback"), { code: "not_found" });
  await assert.rejects(admin(gateway.gateway, "POST", "rollouts/int4/rollback", { because: 1 }), {
    code: "invalid_request",
  });
});

test("the first of two racing arms answers, and the other is cancelled", async () => {
  await using good = await FakeTarget.start({ kind: "hang" });
  await using fast = await FakeTarget.start({ kind: "answer", text: "fast" });
  await using gateway = await startRollout(
    { good: good.url, new: fast.url },
    {
      stages: [{ mode: "race", share: 1 }, { share: 1 }],
      gates: [{ check: "answered" }],
    },
  );
  const response = await gateway.post("/v1/chat/completions", { ...bodyOf("a"), stream: true });
  const { text, isDone } = await readStream(response);
  assert.deepEqual([text, isDone], ["fast", true]);
  await until("the loser is cut", () => Promise.resolve(good.calls[0]?.wasCut === true));
  fast.behaviour = { kind: "status", status: 500 };
  good.behaviour = { kind: "status", status: 503 };
  const failed = await gateway.post("/v1/chat/completions", bodyOf("b"));
  assert.ok(failed.status >= 500 && errorOf(await failed.json())["message"] !== undefined);
});

test("a client that goes away takes its copy with it, and says nothing of either arm", async () => {
  await using good = await FakeTarget.start({ kind: "hang" });
  await using next = await FakeTarget.start({ kind: "hang" });
  await using gateway = await startRollout(
    { good: good.url, new: next.url },
    {
      stages: [{ mode: "shadow", share: 1 }, { share: 1 }],
    },
  );
  const leaving = new AbortController();
  const asked = gateway.post("/v1/chat/completions", bodyOf("a"), {}, leaving.signal).catch(() => undefined);
  await until("both are asked", () => Promise.resolve(good.calls.length + next.calls.length === 2));
  leaving.abort();
  await asked;
  await until("both are cut", () => Promise.resolve(good.calls[0]!.wasCut && next.calls[0]!.wasCut));
  assert.equal((await report(gateway.gateway))["pairs"], 0);
});

test(
  "instances add up what they see, and a rollback on one is one on all",
  { skip: withoutRedis },
  async () => {
    const redis = await TestRedis.start();
    try {
      await using good = await FakeTarget.start({ kind: "answer", text: goodJson });
      await using bad = await FakeTarget.start({ kind: "answer", text: "{" });
      const config = { stages: [{ mode: "shadow", share: 1 }, { share: 1 }] };
      const store = { store: { redis: redis.url, timeout: "30s" } };
      await using one = await startRollout({ good: good.url, new: bad.url }, config, store);
      await using two = await startRollout({ good: good.url, new: bad.url }, config, store);
      for (let i = 0; i < 16; i++) await ask(i % 2 === 0 ? one : two, `u${i}`);
      for (const { gateway } of [one, two])
        await until("rolled back", async () => (await report(gateway))["status"] === "rolled_back");
      await assert.rejects(
        startRollout({ good: good.url, new: bad.url }, { ...config, pair_share: 0.5 }, store),
        { code: "invalid_option", message: /begun with other settings/ },
      );
      await redis.kill();
      assert.equal((await ask(one, "after")).target, "good", "what is known holds without the store");
      await assert.rejects(admin(one.gateway, "POST", "rollouts/int4/restart"), {
        code: "store_unavailable",
      });
    } finally {
      await redis.stop();
    }
  },
);
