import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ChatCompletion } from "@octavo/protocol";
import { OctavoError } from "@octavo/protocol";
import { startTestServer } from "../testing/test-server.js";

const conversation = (content: string) => [{ role: "user", content }];

describe("POST /v1/chat/completions/batch", () => {
  it("answers every conversation with the choice of its number, and counts all together", async () => {
    await using server = await startTestServer({}, { reply: (prompt) => `about ${prompt.length}` });
    const messages = ["a", "bb", "a"].map(conversation);
    const response = await server.post("/v1/chat/completions/batch", {
      messages,
      max_tokens: 20,
      logprobs: true,
    });
    assert.equal(response.status, 200);
    const batch = (await response.json()) as ChatCompletion;
    const alone = await Promise.all(
      messages.map(async (one) => {
        const fields = { messages: one, max_tokens: 20, logprobs: true };
        return (await (await server.post("/v1/chat/completions", fields)).json()) as ChatCompletion;
      }),
    );
    assert.deepEqual(
      batch.choices,
      alone.map(({ choices }, index) => ({ ...choices[0], index })),
    );
    assert.equal(batch.object, "chat.completion");
    for (const count of ["prompt_tokens", "completion_tokens", "total_tokens"] as const)
      assert.equal(
        batch.usage[count],
        alone.reduce((sum, { usage }) => sum + usage[count], 0),
      );
    const [first, ...others] = server.model.engine.requests.slice(0, 3).map(({ batch: tag }) => tag);
    assert.ok(first !== undefined && others.every((tag) => tag === first), "queued all or none");
  });

  it("keeps every answer to the constraint", async () => {
    await using server = await startTestServer();
    const messages = ["a", "b"].map(conversation);
    const structured = { structured_outputs: { choice: ["yes", "no"] } };
    await server.post("/v1/chat/completions/batch", { messages, ...structured });
    assert.deepEqual(
      server.model.engine.requests.map(({ grammar }) => grammar !== undefined),
      [true, true],
    );
  });

  it("says which conversation and which field is wrong", async () => {
    await using server = await startTestServer({}, { maxModelLen: 64 });
    const good = conversation("hi");
    const cases = [
      [{ messages: [] }, "messages"],
      [{ messages: [good, []] }, "messages[1]"],
      [{ messages: good }, "messages[0]"],
      [{ messages: [good, [{ role: "user" }]] }, "messages[1][0].content"],
      [{ messages: [good, conversation("x".repeat(100))] }, "messages[1]"],
      [{ messages: [good], n: 2 }, "n"],
      [{ messages: [good], stream: true }, "stream"],
      [{ messages: [good], prompt_logprobs: 1 }, "prompt_logprobs"],
      [{ messages: [good], return_prompt_text: true }, "return_prompt_text"],
      [{ messages: [good], top_logprobs: 2 }, "top_logprobs"],
    ] as const;
    for (const [body, param] of cases) {
      const response = await server.post("/v1/chat/completions/batch", body);
      const { error } = (await response.json()) as { error: { param: string; message: string } };
      assert.equal(response.status, 400, error.message);
      assert.equal(error.param, param, error.message);
      assert.ok(error.message.startsWith(param), error.message);
    }
    assert.equal(server.model.engine.requests.length, 0);
  });

  it("yields to the event loop between conversations", async () => {
    await using server = await startTestServer();
    const turns: number[] = [];
    let isOver = false;
    const count = (): void => {
      turns.push(server.model.rendered.length);
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const messages = Array.from({ length: 50 }, (_, index) => conversation(`number ${index}`));
    const body = { messages, structured_outputs: { choice: ["a"] } };
    const response = await server.post("/v1/chat/completions/batch", body);
    isOver = true;
    assert.equal(response.status, 200, await response.text());
    turns.push(server.model.rendered.length);
    const steps = turns.slice(1).map((rendered, index) => rendered - turns[index]!);
    assert.equal(turns.at(-1), 50);
    const most = steps.reduce((greatest, step) => Math.max(greatest, step), 0);
    assert.ok(most <= 2, `${most} conversations at once`);
  });

  it("n of 1 and stream false ask for nothing; a full queue refuses the whole", async () => {
    await using server = await startTestServer();
    const messages = [conversation("a")];
    const path = "/v1/chat/completions/batch";
    assert.equal((await server.post(path, { messages, n: 1, stream: false })).status, 200);
    server.model.engine.behaviour.refuseWith = new OctavoError("queue_full", "full", {
      retryAfterSeconds: 3,
    });
    const refused = await server.post(path, { messages });
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get("retry-after"), "3");
  });
});
