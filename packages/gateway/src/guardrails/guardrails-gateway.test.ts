import assert from "node:assert/strict";
import test from "node:test";
import { newCallerKey } from "../callers/key-file.js";
import { chatEvents, FakeTarget } from "../testing/fake-target.js";
import { contentOf, errorOf, readStream } from "../testing/read-answer.js";
import { sampleBody, startTestGateway } from "../testing/test-gateway.js";

const { key, sha256 } = newCallerKey();
const authorization = `Bearer ${key}`;

/** All stages that protect, in front of one target. */
const config = (url: string): object => ({
  targets: { t: { provider: "vllm", url, models: { m: { input: 1, output: 1 } }, probe: { path: "off" } } },
  routes: { r: { models: ["m"], targets: ["t"] } },
  callers: { keys: [{ id: "k", sha256, tenant: "acme" }] },
  rate_limits: { default_max_tokens: 100, rules: [{ name: "all", requests_per_minute: 600, concurrent: 5 }] },
  budgets: [{ name: "acme", per: "tenant", dollars: 1 }],
  guardrails: {
    rules: [
      { name: "mail", check: "pii", kinds: ["email"], action: "redact", on: ["response"] },
      { name: "cards", check: "pii", kinds: ["credit_card"] },
    ],
  },
});

test("a call passes all stages, and its answer leaves without what a rule cuts out, streamed or not", async () => {
  await using target = await FakeTarget.start({
    kind: "answer",
    text: "Ask max@example.com or me about it.",
  });
  await using gateway = await startTestGateway(config(target.url));
  const whole = await gateway.post("/v1/chat/completions", sampleBody, { authorization });
  assert.equal(whole.headers.get("x-octavo-guardrail"), "mail:redact");
  assert.equal(contentOf(await whole.json()), "Ask [email] or me about it.");
  const stream = await gateway.post(
    "/v1/chat/completions",
    { ...sampleBody, stream: true },
    { authorization },
  );
  assert.deepEqual(await readStream(stream), {
    text: "Ask [email] or me about it.",
    isDone: true,
    error: undefined,
  });
  assert.equal(target.calls[0]!.body["max_tokens"], 100);
  assert.ok(!JSON.stringify(target.calls.map(({ headers }) => headers)).includes(key), "the key stays here");
});

test("a stream that a rule blocks ends in a typed error, and nothing of what it found is in it", async () => {
  await using target = await FakeTarget.start();
  await using gateway = await startTestGateway(config(target.url));
  const said = "The card is 4111 1111 1111 1111 and more words.";
  const chunks = [...chatEvents({ model: "m" }, said), "data: [DONE]\n\n"];
  for (const gapMs of [0, 10]) {
    target.behaviour = { kind: "raw", type: "text/event-stream", chunks, gapMs };
    const stream = { ...sampleBody, stream: true };
    const response = await gateway.post("/v1/chat/completions", stream, { authorization });
    // before anything has left, a block is the answer itself
    const text = await response.text();
    assert.ok(text.includes("guardrail_blocked") || response.status === 400, text);
    assert.ok(!text.includes("4111") && !text.includes("[DONE]"), text);
  }
  target.behaviour = { kind: "answer", text: said };
  const whole = await gateway.post("/v1/chat/completions", sampleBody, { authorization });
  assert.equal(whole.status, 400);
  const body = JSON.stringify(await whole.json());
  assert.ok(body.includes("cards") && !body.includes("4111"), body);
});

test("what is refused costs nothing and reaches no target", async () => {
  await using target = await FakeTarget.start();
  await using gateway = await startTestGateway(config(target.url));
  const messages = [{ role: "user", content: "my card 4111-1111-1111-1111" }];
  const refused = await gateway.post("/v1/chat/completions", { model: "m", messages }, { authorization });
  assert.equal(refused.status, 400);
  const unknown = await gateway.post("/v1/chat/completions", sampleBody);
  assert.deepEqual([unknown.status, errorOf(await unknown.json())["code"]], [401, 401]);
  assert.equal(target.calls.length, 0);
  const [route] = gateway.gateway.runtime.stages
    .flatMap(({ stage }) => stage.adminRoutes ?? [])
    .filter(({ path }) => path === "budgets");
  const report = await route!.handle({ values: [], query: new URLSearchParams(), body: undefined });
  assert.equal((report["budgets"] as { taken: number }[])[0]!.taken, 0);
});
