import assert from "node:assert/strict";
import { describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { FakeTarget, fakeText } from "../testing/fake-target.js";
import { anthropicStream } from "../testing/published-answers.js";
import { readEvents, readStream } from "../testing/read-answer.js";
import { sampleBody, startTestGateway } from "../testing/test-gateway.js";

const target = ({ url }: FakeTarget, more: object = {}): object => ({
  provider: "openai-compatible",
  url,
  models: { m: { input: 2, cached_input: 1, output: 8 } },
  ...more,
});
const usage = {
  prompt_tokens: 1000,
  completion_tokens: 100,
  total_tokens: 1100,
  prompt_tokens_details: { cached_tokens: 400 },
};
/** 600 at 2, 400 at 1 and 100 at 8 dollars per million. */
const cost = "0.0024";

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

describe("an answer", () => {
  it("is passed on byte by byte, with its account in headers under all configured names", async () => {
    await using fake = await FakeTarget.start({ kind: "answer", usage });
    await using gateway = await startTestGateway({
      targets: { one: target(fake, { api_key: "sk-secret", headers: { "x-team": "blue" } }) },
      answer_headers: { prefixes: ["x-octavo-", "x-agentcc-"] },
    });
    const body = `{ "messages":[{"role":"user","content":"é"}] ,"model":"m","x":1.50}`;
    const response = await gateway.post("/v1/chat/completions", body, {
      authorization: "Bearer client-key",
      "x-request-id": "abc-1",
      cookie: "a=b",
    });
    const [call] = fake.calls;
    assert.equal(call?.text, body);
    assert.equal(call.headers.authorization, "Bearer sk-secret");
    assert.equal(call.headers["x-team"], "blue");
    assert.equal(call.headers.cookie, undefined, "nothing of the client's own headers is passed on");
    assert.match(call.headers.traceparent?.toString() ?? "", /^00-[0-9a-f]{32}-/);
    const headers = Object.fromEntries(
      [...response.headers].filter(
        ([name]) => /^x-(octavo|agentcc)-/.test(name) && !/latency|trace/.test(name),
      ),
    );
    assert.deepEqual(headers, {
      "x-octavo-request-id": "abc-1",
      "x-agentcc-request-id": "abc-1",
      "x-octavo-target": "one",
      "x-agentcc-provider": "one",
      "x-octavo-model-used": "m",
      "x-agentcc-model-used": "m",
      "x-octavo-routing-strategy": "weighted",
      "x-agentcc-routing-strategy": "weighted",
      "x-octavo-cache": "off",
      "x-agentcc-cache": "off",
      "x-octavo-fallback": "false",
      "x-agentcc-fallback-used": "false",
      "x-octavo-guardrail": "none",
      "x-agentcc-guardrail-triggered": "none",
      "x-octavo-cost": cost,
      "x-agentcc-cost": cost,
    });
    assert.ok(Number(response.headers.get("x-octavo-latency-ms")) > 0);
    assert.match(response.headers.get("x-octavo-trace-id") ?? "", /^[0-9a-f]{32}$/);
    assert.equal((await response.text()).slice(0, 20), '{"id":"chatcmpl-1","');
  });

  it("that is streamed says its cost in its last event, and shows no token counts that nobody asked for", async () => {
    await using fake = await FakeTarget.start({ kind: "answer", usage });
    await using gateway = await startTestGateway({ targets: { one: target(fake) } });
    const asked = { ...sampleBody, stream: true };
    const { values, isDone } = await readEvents(await gateway.post("/v1/chat/completions", asked));
    assert.deepEqual(fake.calls[0]?.body["stream_options"], { include_usage: true });
    const last = values.at(-1) as { choices: { finish_reason: string }[]; octavo: Record<string, unknown> };
    assert.equal(last.choices[0]?.finish_reason, "stop", "the last event is the client's own");
    assert.equal(last.octavo["cost"], Number(cost));
    assert.equal(last.octavo["target"], "one");
    assert.ok(isDone && values.every((value) => !("usage" in value)));
    const wanting = await gateway.post("/v1/chat/completions", {
      ...asked,
      stream_options: { include_usage: true },
    });
    assert.ok(wanting.headers.get("trailer")?.includes("x-octavo-cost"));
    assert.deepEqual((await readEvents(wanting)).values.at(-1)?.["usage"], usage);
  });

  it("satisfies the openai package, streamed and not, translated or not", async () => {
    await using plain = await FakeTarget.start();
    await using claude = await FakeTarget.start({
      kind: "raw",
      type: "text/event-stream",
      chunks: anthropicStream.split(/(?<=\n\n)/),
    });
    await using gateway = await startTestGateway({
      targets: {
        one: target(plain),
        claude: {
          provider: "anthropic",
          url: claude.url,
          api_key: "sk-ant",
          models: { claude: { name: "claude-x" } },
        },
      },
    });
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "x", maxRetries: 0 });
    const messages = [{ role: "user" as const, content: "hi" }];
    const whole = await client.chat.completions.create({ model: "m", messages });
    assert.equal(whole.choices[0]?.message.content, fakeText);
    const stream = client.chat.completions.stream({ model: "claude", messages });
    const final = await stream.finalChatCompletion();
    assert.deepEqual(
      final.choices[0]?.message.tool_calls?.map((call) => "function" in call && call.function.name),
      ["get_weather"],
    );
    const [call] = claude.calls;
    assert.deepEqual(
      [call?.path, call?.headers["x-api-key"], call?.body["model"]],
      ["/v1/messages", "sk-ant", "claude-x"],
    );
    const models = await client.models.list();
    assert.deepEqual(
      models.data.map(({ id }) => id),
      ["m", "claude"],
    );
  });

  it("of /v1/messages satisfies Anthropic's package", async () => {
    await using claude = await FakeTarget.start({
      kind: "raw",
      type: "text/event-stream",
      chunks: [anthropicStream],
    });
    await using gateway = await startTestGateway({
      targets: { claude: { provider: "anthropic", url: claude.url, api_key: "sk-ant", models: ["claude"] } },
    });
    const client = new Anthropic({ baseURL: gateway.url, apiKey: "x", maxRetries: 0 });
    const message = await client.messages
      .stream({ model: "claude", max_tokens: 10, messages: [{ role: "user", content: "hi" }] })
      .finalMessage();
    assert.equal(message.stop_reason, "tool_use");
    assert.equal(message.usage.output_tokens, 89);
  });
});

describe("a slow target", () => {
  it("is left when its first byte takes longer than the threshold", async () => {
    await using slow = await FakeTarget.start({ kind: "hang" });
    await using quick = await FakeTarget.start();
    await using gateway = await startTestGateway({
      targets: { slow: target(slow), quick: target(quick) },
      routes: {
        r: {
          models: ["m"],
          strategy: "round_robin",
          targets: ["slow", "quick"],
          retries: { latency_threshold: "60ms" },
        },
      },
    });
    const response = await gateway.post("/v1/chat/completions", sampleBody);
    assert.deepEqual([response.status, response.headers.get("x-octavo-target")], [200, "quick"]);
    await until(() => slow.calls[0]?.wasCut === true);
  });

  it("is hedged; the loser is cancelled at once, and the share of hedges is bounded", async () => {
    await using slow = await FakeTarget.start({ kind: "hang" });
    await using quick = await FakeTarget.start();
    await using gateway = await startTestGateway({
      targets: { slow: target(slow, { breaker: { failures: 1000 } }), quick: target(quick) },
      routes: {
        r: {
          models: ["m"],
          strategy: "round_robin",
          targets: ["slow", "quick"],
          hedge: { after: "40ms", max_share: 0.02 },
          timeouts: { first_byte: "150ms" },
        },
      },
    });
    const response = await gateway.post("/v1/chat/completions", { ...sampleBody, stream: true });
    assert.deepEqual(
      [response.headers.get("x-octavo-target"), response.headers.get("x-octavo-fallback")],
      ["quick", "hedge"],
    );
    assert.equal((await readStream(response)).text, fakeText);
    await until(() => slow.calls[0]?.wasCut === true);
    await (await gateway.post("/v1/chat/completions", sampleBody)).text();
    const third = await gateway.post("/v1/chat/completions", sampleBody);
    assert.equal(
      third.headers.get("x-octavo-fallback"),
      "fallback",
      "the hedge is spent: the timeout decides",
    );
  });
});

describe("a client that goes away", () => {
  for (const [name, behaviour, body] of [
    ["before the answer", { kind: "hang" }, sampleBody],
    ["inside a stream", { kind: "stream-then", events: 4, ending: "hang" }, { ...sampleBody, stream: true }],
  ] as const) {
    it(`${name} ends the target's work, and nobody else is asked`, async () => {
      await using fake = await FakeTarget.start(behaviour);
      await using other = await FakeTarget.start();
      await using gateway = await startTestGateway({
        targets: { one: target(fake), two: target(other) },
        routes: { r: { models: ["m"], strategy: "round_robin", targets: ["one", "two"] } },
      });
      const abort = new AbortController();
      const asked = gateway.post("/v1/chat/completions", body, {}, abort.signal).catch(() => undefined);
      await until(() => fake.calls.length === 1);
      if (body !== sampleBody) await (await asked)?.body?.getReader().read();
      abort.abort();
      await until(() => fake.calls[0]?.wasCut === true);
      await until(() => gateway.gateway.numOpen === 0);
      assert.equal(other.calls.length, 0);
      const { one } = Object.fromEntries(gateway.gateway.runtime.targets);
      assert.deepEqual([one?.outstanding, one?.breaker.state(Date.now())], [0, "closed"]);
    });
  }
});

describe("a target's health", () => {
  for (const [name, openFor] of [
    ["sends calls elsewhere", "1h"],
    ["lets a call try after a while, and its success closes it", "20ms"],
  ] as const) {
    it(`a breaker that opened ${name}`, async () => {
      await using bad = await FakeTarget.start({ kind: "status", status: 500 });
      await using good = await FakeTarget.start();
      await using gateway = await startTestGateway({
        targets: { bad: target(bad, { breaker: { failures: 2, open_for: openFor } }), good: target(good) },
        routes: {
          r: { models: ["m"], strategy: "round_robin", targets: ["bad", "good"], retries: { budget: 4 } },
        },
      });
      const ask = async (): Promise<string | null> => {
        const response = await gateway.post("/v1/chat/completions", sampleBody);
        await response.text();
        assert.equal(response.status, 200);
        return response.headers.get("x-octavo-target");
      };
      for (let call = 0; call < 8; call += 1) assert.equal(await ask(), "good");
      if (openFor === "1h") {
        assert.equal(bad.calls.length, 2);
        assert.match(
          gateway.gateway.metrics.registry.expose(),
          /octavo_gateway_attempts_total\{target="bad",reason="first",outcome="target_failed"\} 2/,
        );
        return;
      }
      bad.behaviour = { kind: "answer" };
      while ((await ask()) !== "bad") await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal(gateway.gateway.runtime.targets.get("bad")?.breaker.state(Date.now()), "closed");
    });
  }

  it("a failing probe takes it out, a succeeding one brings it back", async () => {
    await using one = await FakeTarget.start();
    await using gateway = await startTestGateway({
      targets: { one: target(one, { probe: { path: "/health", interval: "15ms" } }) },
    });
    const live = gateway.gateway.runtime.targets.get("one");
    await until(() => live?.isProbeOk === true);
    one.isHealthy = false;
    await until(() => live?.isProbeOk === false);
    const refused = await gateway.post("/v1/chat/completions", sampleBody);
    assert.deepEqual([refused.status, refused.headers.get("x-octavo-error-code")], [503, "no_target"]);
    one.isHealthy = true;
    await until(() => live?.isProbeOk === true);
    assert.equal((await gateway.post("/v1/chat/completions", sampleBody)).status, 200);
  });
});
