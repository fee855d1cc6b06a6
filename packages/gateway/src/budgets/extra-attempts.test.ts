import assert from "node:assert/strict";
import test from "node:test";
import { FakeTarget } from "../testing/fake-target.js";
import { sampleBody, startTestGateway } from "../testing/test-gateway.js";

/** 1000 dollars per token of the answer, 10 of them: more than ten thousand dollars for one attempt. */
const models = { m: { output: 1_000_000_000 } };

for (const [dollars, attempts] of [
  [15_000, 1],
  [25_000, 2],
  [35_000, 3],
] as const)
  test(`a budget for ${attempts} of three attempts lets as many be made`, async () => {
    await using failing = await FakeTarget.start({ kind: "status", status: 500 });
    await using gateway = await startTestGateway({
      targets: { a: { provider: "openai-compatible", url: failing.url, models, breaker: { failures: 100 } } },
      routes: { r: { models: ["m"], targets: ["a"], retries: { attempts: 3 } } },
      budgets: [{ name: "b", dollars, period: "forever" }],
    });
    for (let call = 1; call <= 2; call++) {
      const answer = await gateway.post("/v1/chat/completions", { ...sampleBody, max_tokens: 10 });
      assert.equal(answer.status, 502);
      await answer.text();
      // nothing was spent: the next call finds the whole budget again
      assert.equal(failing.calls.length, call * attempts);
    }
  });

test("a hedge is made only where the budget has a second attempt", async () => {
  await using slow = await FakeTarget.start({ kind: "answer", delayMs: 400 });
  await using quick = await FakeTarget.start();
  for (const [dollars, hedges] of [
    [15_000, 0],
    [25_000, 1],
  ] as const) {
    quick.calls.length = 0;
    await using gateway = await startTestGateway({
      targets: {
        slow: { provider: "openai-compatible", url: slow.url, models },
        quick: { provider: "openai-compatible", url: quick.url, models },
      },
      routes: {
        r: {
          models: ["m"],
          targets: ["slow"],
          fallbacks: ["second"],
          hedge: { after: "20ms", max_share: 1 },
        },
        second: { models: ["other"], targets: [{ target: "quick", model: "m" }] },
      },
      budgets: [{ name: "b", dollars, period: "forever" }],
    });
    const answer = await gateway.post("/v1/chat/completions", { ...sampleBody, max_tokens: 10 });
    assert.equal(answer.status, 200);
    await answer.text();
    assert.equal(quick.calls.length, hedges);
  }
});
