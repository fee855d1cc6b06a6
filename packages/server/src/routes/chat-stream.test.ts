import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSseDecoder, OctavoError, type ChatCompletionChunk } from "@octavo/protocol";
import { APIUserAbortError, RateLimitError } from "openai";
import { startTestServer, type TestServer } from "../testing/test-server.js";

const messages = [{ role: "user", content: "hi" }] as const;
const model = "fake/model";

/** The data of every event of a streamed answer. */
async function streamEvents(
  server: TestServer,
  body: object,
  path = "/v1/chat/completions",
): Promise<readonly string[]> {
  const response = await server.post(path, { ...body, stream: true });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  const decoder = createSseDecoder();
  const events = [];
  for await (const chunk of response.body ?? []) events.push(...decoder.push(chunk as Uint8Array));
  assert.equal(decoder.hasPartialEvent, false);
  return events.map((event) => event.data);
}

function parseChunks(events: readonly string[]): readonly ChatCompletionChunk[] {
  return events.filter((data) => data !== "[DONE]").map((data) => JSON.parse(data) as ChatCompletionChunk);
}

describe("streamed chat completions", () => {
  it("sends the role first, then content, a finish reason, and [DONE]", async () => {
    await using server = await startTestServer();
    const events = await streamEvents(server, { messages });
    assert.equal(events.at(-1), "[DONE]");
    const chunks = parseChunks(events);
    assert.deepEqual(chunks[0]?.choices[0]?.delta, { role: "assistant", content: "" });
    assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "Hello, wörld 0!");
    assert.ok(
      chunks.every((chunk) => chunk.choices[0]?.delta.content !== "\ufffd"),
      "no half characters",
    );
    assert.deepEqual(chunks.at(-1)?.choices[0]?.finish_reason, "stop");
    assert.ok(chunks.slice(0, -1).every((chunk) => chunk.choices[0]?.finish_reason === null));
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
    assert.ok(chunks.every((chunk) => chunk.object === "chat.completion.chunk" && !("usage" in chunk)));
  });

  it("gives the openai package the same text as an unstreamed answer", async () => {
    await using server = await startTestServer({}, { tokensPerStep: 3 });
    const stream = await server.client.chat.completions.create({
      model,
      messages: [...messages],
      n: 2,
      stream: true,
    });
    const texts = ["", ""];
    for await (const chunk of stream) {
      for (const choice of chunk.choices) texts[choice.index] += choice.delta.content ?? "";
    }
    assert.deepEqual(texts, ["Hello, wörld 0!", "Hello, wörld 1!"]);
  });

  it("satisfies the openai package's stream helper", async () => {
    await using server = await startTestServer();
    const stream = server.client.chat.completions.stream({
      model,
      messages: [...messages],
      stream_options: { include_usage: true },
      logprobs: true,
    });
    const deltas: string[] = [];
    stream.on("content", (delta) => deltas.push(delta));
    const answer = await stream.finalChatCompletion();
    assert.equal(answer.choices[0]?.message.content, "Hello, wörld 0!");
    assert.equal(deltas.join(""), "Hello, wörld 0!");
    assert.equal(answer.choices[0]?.logprobs?.content?.length, 16);
    assert.equal(answer.usage?.completion_tokens, 16);
  });

  it("sends usage once at the end with include_usage, and null before", async () => {
    await using server = await startTestServer({}, { cachedTokens: 16 });
    const chunks = parseChunks(
      await streamEvents(server, { messages, stream_options: { include_usage: true } }),
    );
    assert.deepEqual(chunks.at(-1)?.choices, []);
    assert.deepEqual(chunks.at(-1)?.usage, {
      prompt_tokens: 21,
      total_tokens: 37,
      completion_tokens: 16,
      prompt_tokens_details: { cached_tokens: 16 },
    });
    assert.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
  });

  it("counts on the way with continuous_usage_stats", async () => {
    await using server = await startTestServer();
    const options = { include_usage: true, continuous_usage_stats: true };
    const chunks = parseChunks(await streamEvents(server, { messages, stream_options: options }));
    const counts = chunks.slice(0, -1).map((chunk) => chunk.usage?.completion_tokens ?? -1);
    assert.equal(counts.at(-1), 16);
    assert.ok(counts.every((count, index) => index === 0 || count >= (counts[index - 1] ?? 0)));
  });

  it("sends usage unasked when the server forces it", async () => {
    await using server = await startTestServer({ enableForceIncludeUsage: true });
    const chunks = parseChunks(await streamEvents(server, { messages }));
    assert.equal(chunks.at(-1)?.usage?.completion_tokens, 16);
    assert.ok(chunks.every(({ usage }) => typeof usage?.completion_tokens === "number"));
  });

  it("streams the logprobs of every token, also of those without text of their own", async () => {
    await using server = await startTestServer({}, { reply: () => "é!" });
    const chunks = parseChunks(await streamEvents(server, { messages, logprobs: true }));
    const entries = chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
    assert.equal(Buffer.from(entries.flatMap((entry) => entry.bytes)).toString("utf8"), "é!");
  });

  it("tells the engine when the client aborts", async () => {
    await using server = await startTestServer({}, { stepDelayMs: 2, reply: () => "x".repeat(2000) });
    const stream = await server.client.chat.completions.create({
      model,
      messages: [...messages],
      stream: true,
    });
    let chunks = 0;
    for await (const _ of stream) if (++chunks === 3) stream.controller.abort();
    await server.model.engine.whenIdle();
    assert.equal(server.model.engine.aborted.length, 1);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(metrics, /octavo:http_client_disconnects_total 1\n/);
  });

  it("tells the engine when an unstreamed caller leaves", async () => {
    await using server = await startTestServer({}, { stepDelayMs: 2, reply: () => "x".repeat(2000) });
    const abort = new AbortController();
    const pending = server.client.chat.completions.create(
      { model, messages: [...messages] },
      { signal: abort.signal },
    );
    pending.catch(() => {});
    while (server.model.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    abort.abort();
    await assert.rejects(pending, APIUserAbortError);
    await server.model.engine.whenIdle();
    assert.equal(server.model.engine.aborted.length, 1);
  });

  it("ends a stream that fails with a typed error event and without [DONE]", async () => {
    const error = new OctavoError("engine_failed", "the kernel stopped");
    await using server = await startTestServer({}, { failAfterSteps: { steps: 3, error } });
    const events = await streamEvents(server, { messages });
    assert.ok(!events.includes("[DONE]"));
    assert.deepEqual(JSON.parse(events.at(-1) ?? ""), {
      error: { message: "the kernel stopped", type: "ServiceUnavailableError", param: null, code: 503 },
    });
    const stream = await server.client.chat.completions.create({
      model,
      messages: [...messages],
      stream: true,
    });
    await assert.rejects(async () => {
      for await (const _ of stream);
    }, /the kernel stopped/);
  });

  it("keeps the text of foreign errors from clients", async () => {
    const error = new TypeError("secret path /etc/x");
    await using server = await startTestServer({}, { failAfterSteps: { steps: 1, error } });
    const events = await streamEvents(server, { messages });
    assert.doesNotMatch(events.at(-1) ?? "", /secret/);
    const response = await server.post("/v1/chat/completions", { messages }, { "x-request-id": "my-id" });
    assert.equal(response.status, 500);
    assert.match(await response.text(), /under request id my-id/);
  });

  it("refuses before the stream begins what the engine refuses at once", async () => {
    await using server = await startTestServer(
      {},
      { refuseWith: new OctavoError("queue_full", "64 requests wait", { retryAfterSeconds: 2.2 }) },
    );
    const response = await server.post("/v1/chat/completions", { messages, stream: true });
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "3");
    await assert.rejects(
      server.client.chat.completions.create({ model, messages: [...messages], stream: true }),
      RateLimitError,
    );
  });

  it("ends what takes too long", async () => {
    await using server = await startTestServer(
      { requestTimeoutMs: 250 },
      { stepDelayMs: 5, reply: () => "x".repeat(2000) },
    );
    const response = await server.post("/v1/chat/completions", { messages });
    assert.equal(response.status, 504);
    assert.equal(response.headers.get("x-octavo-error-code"), "deadline_exceeded");
    const events = await streamEvents(server, { messages });
    assert.match(events.at(-1) ?? "", /GatewayTimeoutError/);
    await server.model.engine.whenIdle();
    assert.equal(server.model.engine.aborted.length, 2);
  });
});
