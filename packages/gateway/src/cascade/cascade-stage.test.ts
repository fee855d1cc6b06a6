import assert from "node:assert/strict";
import test from "node:test";
import { asObjects, asRecord, type JsonFields } from "@octavo/protocol";
import { type Behaviour, FakeTarget } from "../testing/fake-target.js";
import { contentOf, readStream } from "../testing/read-answer.js";
import { startTestGateway, type TestGateway } from "../testing/test-gateway.js";
import { CascadeAccount } from "./cascade-account.js";
import { cascadeStage } from "./cascade-stage.js";
import { answerConfidence } from "./confidence.js";

async function startCascade(cheap: FakeTarget, strong: FakeTarget, cascade: object): Promise<TestGateway> {
  const target = (url: string, input: number, output: number): object => ({
    provider: "vllm",
    url,
    models: { m: { input, output } },
    probe: { path: "off" },
  });
  return startTestGateway({
    targets: { cheap: target(cheap.url, 1, 1), strong: target(strong.url, 10, 10) },
    routes: { r: { models: ["m"], targets: ["cheap"] } },
    cascades: [{ model: "m", cheap: { target: "cheap" }, strong: { target: "strong" }, ...cascade }],
  });
}

const ask = async (gateway: TestGateway, more: JsonFields = {}): Promise<unknown> => {
  const response = await gateway.post("/v1/chat/completions", {
    model: "m",
    messages: [{ role: "user", content: "hello" }],
    ...more,
  });
  assert.equal(response.status, 200);
  return more["stream"] === true ? (await readStream(response)).text : contentOf(await response.json());
};

async function summary({ gateway }: TestGateway): Promise<JsonFields> {
  const [route] = gateway.runtime.stages.flatMap(({ stage }) => stage.adminRoutes ?? []);
  const report = await route!.handle({ values: [], query: new URLSearchParams(), body: undefined });
  return asObjects(report["cascades"])[0]!;
}

test("a cheap answer that passes is taken, one that fails is escalated, and the report counts what came of it", async () => {
  const answers = ['{"a":1}', '{"a":', '{"a":2}'];
  await using cheap = await FakeTarget.start((_, index): Behaviour => ({
    kind: "answer",
    text: answers[index]!,
  }));
  await using strong = await FakeTarget.start({ kind: "answer", text: '{"strong":1}' });
  await using gateway = await startCascade(cheap, strong, { checks: ["json_valid"] });
  assert.equal(await ask(gateway), '{"a":1}');
  assert.equal(
    await ask(gateway, { stream: true }),
    '{"strong":1}',
    "nothing of the cheap answer leaves before it is judged",
  );
  assert.equal(await ask(gateway), '{"a":2}');
  const report = await summary(gateway);
  assert.deepEqual(
    [report["calls"], report["answered_by_cheap"], report["escalated"], report["reasons"]],
    [3, 2, 1, { json_valid: 1 }],
  );
  const usd = asRecord(report["usd"]);
  // 12 prompt and 10 completion tokens a call
  const close = (name: string, expected: number): void =>
    assert.ok(Math.abs((usd[name] as number) - expected) < 1e-12, `${name} ${String(usd[name])}`);
  close("cheap_calls", 66e-6);
  close("strong_calls", 220e-6);
  close("saved", (2 * (220 - 22) - 22) * 1e-6);
  assert.equal(report["verdict"], "too few calls");
});

test("a cheap target that fails is an escalation, with its error as the reason", async () => {
  await using cheap = await FakeTarget.start({ kind: "status", status: 500 });
  await using strong = await FakeTarget.start({ kind: "answer", text: "strong" });
  await using gateway = await startCascade(cheap, strong, {});
  assert.equal(await ask(gateway), "strong");
  assert.equal((await summary(gateway))["escalated"], 1);
});

test("an answer that the cheap model was not sure of is escalated", async () => {
  const withLogprobs = (logprob: number): string =>
    JSON.stringify({
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "cheap" },
          logprobs: { content: [{ token: "cheap", logprob }] },
          finish_reason: "stop",
        },
      ],
      usage: { prompt_tokens: 12, completion_tokens: 10, total_tokens: 22 },
    });
  const logprobs = [-0.1, -2];
  await using cheap = await FakeTarget.start((_, index): Behaviour => ({
    kind: "raw",
    type: "application/json",
    chunks: [withLogprobs(logprobs[index]!)],
  }));
  await using strong = await FakeTarget.start({ kind: "answer", text: "strong" });
  await using gateway = await startCascade(cheap, strong, { min_confidence: 0.6 });
  assert.equal(await ask(gateway), "cheap");
  assert.equal(await ask(gateway), "strong");
  assert.equal(cheap.calls[0]!.body["logprobs"], true);
  assert.deepEqual((await summary(gateway))["reasons"], { low_confidence: 1 });
});

test("confidence is the geometric mean of the tokens' probabilities", () => {
  const chat = {
    choices: [{ logprobs: { content: [{ logprob: Math.log(0.5) }, { logprob: Math.log(0.125) }] } }],
  };
  assert.equal(answerConfidence(chat), 0.25);
  const completion = { choices: [{ logprobs: { token_logprobs: [null, Math.log(0.5)] } }] };
  assert.equal(answerConfidence(completion), 0.5);
  assert.equal(answerConfidence({ choices: [{ logprobs: null }] }), undefined);
});

test("the verdict sets what was saved against what the machines cost", () => {
  const hour = 3_600_000;
  const after = (calls: number, machineUsdPerHour: number | undefined): unknown => {
    const account = new CascadeAccount(0, { machineUsdPerHour });
    for (let i = 0; i < calls; i++)
      account.add({
        cheapUsd: 0.001,
        strongUsd: i % 5 === 0 ? 0.01 : 0,
        strongAloneUsd: 0.01,
        reason: i % 5 === 0 ? "json_valid" : undefined,
      });
    return account.summary(hour)["verdict"];
  };
  assert.equal(after(1000, undefined), "pays");
  assert.equal(after(1000, 4), "pays");
  assert.equal(after(1000, 12), "does not pay");
  assert.equal(after(1000, 8), "undecided");
  assert.equal(after(10, undefined), "too few calls");
});

test("a configuration that cannot work is refused", () => {
  const arms = { model: "m", cheap: { target: "a" }, strong: { target: "b" } };
  for (const cascades of [
    [{ ...arms, strong: { target: "a" } }],
    [{ ...arms, checks: ["json_schema"] }],
    [{ ...arms, schema: {} }],
    [arms, arms],
    [{ ...arms, checks: ["latency"] }],
  ])
    assert.equal(cascadeStage.schema.safeParse(cascades).success, false, JSON.stringify(cascades));
});
