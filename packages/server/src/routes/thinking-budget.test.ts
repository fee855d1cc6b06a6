import assert from "node:assert/strict";
import { it } from "node:test";
import { startTestServer } from "../testing/test-server.js";

const messages = [{ role: "user", content: "hi" }];

it("a thinking budget reaches the engine with the tags of the model's reasoning", async () => {
  await using server = await startTestServer({ reasoningParser: "qwen3" });
  const post = (fields: object) => server.post("/v1/chat/completions", { messages, ...fields });
  for (const fields of [{}, { thinking_token_budget: null }, { thinking_token_budget: -1 }])
    assert.equal((await post(fields)).status, 200);
  assert.equal((await post({ thinking_token_budget: 7 })).status, 200);
  const budgets = server.model.engine.requests.map(({ thinking }) => thinking);
  assert.deepEqual(budgets.slice(0, 3), [undefined, undefined, undefined]);
  const { endTokens, ...rest } = budgets[3]!;
  assert.deepEqual(rest, { maxTokens: 7, startTags: ["<think>"], endTags: ["</think>"], isOpen: false });
  assert.equal(server.model.tokenizer.decode(endTokens, { skipSpecialTokens: false }), "</think>");
  const bad = await post({ thinking_token_budget: -2 });
  assert.equal(bad.status, 400);
});

it("in harmony's channels a budget ends the message of reasoning", async () => {
  await using server = await startTestServer({ toolCallParser: "openai" });
  const response = await server.post("/v1/chat/completions", { messages, thinking_token_budget: 7 });
  assert.equal(response.status, 200);
  const { endTokens, ...rest } = server.model.engine.requests[0]!.thinking!;
  const startTags = ["<|channel|>analysis<|message|>"];
  assert.deepEqual(rest, { maxTokens: 7, startTags, endTags: ["<|end|>"], isOpen: false });
  assert.equal(server.model.tokenizer.decode(endTokens, { skipSpecialTokens: false }), "<|end|>");
});

it("without known reasoning a budget is refused by name", async () => {
  await using server = await startTestServer();
  for (const [path, body] of [
    ["/v1/chat/completions", { messages, thinking_token_budget: 7 }],
    ["/v1/completions", { prompt: "x", thinking_token_budget: 7 }],
  ] as const) {
    const response = await server.post(path, body);
    const { error } = (await response.json()) as { error: { param: string; message: string } };
    assert.equal(response.status, 400);
    assert.equal(error.param, "thinking_token_budget");
  }
});
