import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "node:test";
import { OctavoError, type ResponseObject } from "@octavo/protocol";
import type OpenAI from "openai";
import { NotFoundError } from "openai";
import * as fc from "fast-check";
import { ResponseStore } from "../generation/response-store.js";
import type { OwnerId } from "../tenants/ownership.js";
import { startTestServer } from "../testing/test-server.js";
import { transcripts, transcriptTools } from "@octavo/text/parsers/testing/transcripts";

const model = "fake/model";
const call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>';
const hermes = { toolCallParser: "hermes", reasoningParser: "qwen3" };
const weather: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "get_weather",
  description: "the weather",
  strict: false,
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

describe("responses through the openai package", () => {
  it("answer with text, usage and what was asked for", async () => {
    await using server = await startTestServer({}, { cachedTokens: 16 });
    const answer = await server.client.responses.create({ model, input: "hi", instructions: "be kind" });
    assert.match(answer.id, /^resp_[0-9a-f]{24}$/);
    assert.equal(answer.output_text, "Hello, wörld 0!");
    assert.deepEqual(
      [answer.status, answer.instructions, answer.incomplete_details],
      ["completed", "be kind", null],
    );
    assert.deepEqual(answer.usage, {
      input_tokens: server.model.engine.requests[0]?.promptTokens.length,
      input_tokens_details: { cached_tokens: 16 },
      output_tokens: 16,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: (answer.usage?.input_tokens ?? 0) + 16,
    });
    assert.deepEqual(server.model.rendered[0]?.messages[0], { role: "system", content: "be kind" });
    const cut = await server.client.responses.create({ model, input: "hi", max_output_tokens: 5 });
    assert.deepEqual([cut.status, cut.incomplete_details?.reason], ["incomplete", "max_output_tokens"]);
  });

  it("stream() puts items together, reasoning and calls too", async () => {
    await using server = await startTestServer(hermes, {
      reply: () => `<think>Hm.</think>One moment.${call}\n${call}`,
    });
    const stream = server.client.responses.stream({ model, input: "weather?", tools: [weather] });
    const types: string[] = [];
    const numbers: number[] = [];
    for await (const event of stream) {
      types.push(event.type);
      numbers.push(event.sequence_number);
    }
    const final = await stream.finalResponse();
    assert.deepEqual(
      final.output.map((item) => item.type),
      ["reasoning", "message", "function_call", "function_call"],
    );
    assert.equal(final.output_text, "One moment.");
    const [made] = final.output.filter((item) => item.type === "function_call");
    assert.deepEqual([made?.name, made?.arguments], ["get_weather", '{"city": "Oslo"}']);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index),
    );
    assert.deepEqual([types[0], types.at(-1)], ["response.created", "response.completed"]);
    assert.equal(final.usage?.output_tokens_details.reasoning_tokens, 3);
  });

  it("take calls and their results back, as items or by the earlier response's id", async () => {
    await using server = await startTestServer(hermes, {
      reply: (prompt) => (prompt.includes("12 degrees") ? "It is 12 degrees." : `<think>Hm.</think>${call}`),
    });
    const first = await server.client.responses.create({ model, input: "weather?", tools: [weather] });
    const made = first.output.find((item) => item.type === "function_call");
    const result = {
      type: "function_call_output" as const,
      call_id: made?.call_id ?? "",
      output: "12 degrees",
    };
    const byId = await server.client.responses.create({
      model,
      previous_response_id: first.id,
      input: [result],
      tools: [weather],
    });
    assert.equal(byId.output_text, "It is 12 degrees.");
    const byItems = await server.client.responses.create({
      model,
      input: [
        { role: "user", content: "weather?" },
        ...(first.output as OpenAI.Responses.ResponseInputItem[]),
        result,
      ],
      tools: [weather],
    });
    assert.equal(byItems.output_text, "It is 12 degrees.");
    const [, second, third] = server.model.rendered;
    assert.deepEqual(second?.messages, third?.messages);
    assert.deepEqual(
      second?.messages.map(({ role, reasoning_content }) => [role, reasoning_content]),
      [
        ["user", undefined],
        ["assistant", "Hm."],
        ["tool", undefined],
      ],
    );
  });

  it("are kept unless store is false", async () => {
    await using server = await startTestServer();
    const kept = await server.client.responses.create({ model, input: "hi" });
    assert.deepEqual((await server.client.responses.retrieve(kept.id)).output, kept.output);
    const gone = await server.client.responses.create({ model, input: "hi", store: false });
    await assert.rejects(server.client.responses.retrieve(gone.id), NotFoundError);
    await assert.rejects(
      server.client.responses.create({ model, input: "hi", previous_response_id: gone.id }),
      NotFoundError,
    );
    await assert.rejects(server.client.responses.cancel(kept.id), /only one that runs in the background/);
  });

  it("run in the background, can be asked for and cancelled", async () => {
    await using server = await startTestServer({}, { stepDelayMs: 2, reply: () => "x".repeat(20) });
    const started = await server.client.responses.create({ model, input: "hi", background: true });
    assert.equal(started.status, "in_progress");
    let now = started;
    while (now.status === "in_progress") {
      await sleep(5);
      now = await server.client.responses.retrieve(started.id);
    }
    assert.deepEqual([now.status, now.output_text ?? ""], ["completed", "x".repeat(20)]);
    server.model.engine.behaviour.reply = () => "x".repeat(3000);
    const long = await server.client.responses.create({ model, input: "hi", background: true });
    const cancelled = await server.client.responses.cancel(long.id);
    assert.equal(cancelled.status, "cancelled");
    await server.model.engine.whenIdle();
    assert.equal(server.model.engine.aborted.length, 1);
    assert.equal((await server.client.responses.retrieve(long.id)).status, "cancelled");
  });

  for (const transcript of transcripts) {
    it(`stream to the response that is not streamed: ${transcript.format}, ${transcript.title}`, async () => {
      await using server = await startTestServer(
        { toolCallParser: transcript.format, reasoningParser: "none" },
        { reply: () => transcript.output, tokensPerStep: 5 },
      );
      const tools = transcriptTools.map((tool) => ({ type: "function", ...tool.function }));
      const body = { model, input: "hi", tools } as OpenAI.Responses.ResponseCreateParamsNonStreaming;
      const whole = await server.client.responses.create(body);
      const texts: string[] = [];
      let final: OpenAI.Responses.Response | undefined;
      for await (const event of await server.client.responses.create({ ...body, stream: true })) {
        if ("delta" in event && "output_index" in event && typeof event.delta === "string")
          texts[event.output_index] = (texts[event.output_index] ?? "") + event.delta;
        if (event.type === "response.completed") final = event.response;
      }
      const plain = (response: OpenAI.Responses.Response | undefined): unknown =>
        JSON.parse(JSON.stringify(response?.output), (key, value: unknown) =>
          key === "id" || key === "call_id" ? undefined : value,
        );
      assert.deepEqual(plain(final), plain(whole));
      const expected = whole.output.map((item) => {
        if (item.type === "function_call") return item.arguments;
        return (item as { content: { text: string }[] }).content.map((part) => part.text).join("");
      });
      assert.deepEqual(texts, expected);
    });
  }
});

describe("failures of responses", () => {
  it("in a stream end it with response.failed", async () => {
    const error = new OctavoError("engine_failed", "the kernel stopped");
    await using server = await startTestServer({}, { failAfterSteps: { steps: 3, error } });
    const events = [];
    for await (const event of await server.client.responses.create({ model, input: "hi", stream: true }))
      events.push(event);
    const last = events.at(-1);
    assert.ok(last?.type === "response.failed");
    assert.deepEqual(last.response.error, { code: "engine_failed", message: "the kernel stopped" });
  });

  const cases = [
    [{ input: [] }, "input"],
    [{ input: [{ type: "item_reference", id: "x" }] }, "input[0].type"],
    [
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "x" }] }] },
      "messages[0].content[0].type",
    ],
    [{ input: "hi", tools: [{ type: "web_search" }] }, "tools[0].type"],
    [{ input: "hi", truncation: "auto" }, "truncation"],
    [{ input: "hi", background: true, store: false }, "background"],
    [{ input: [{ type: "function_call_output", call_id: "x", output: "1" }] }, "messages[0].tool_call_id"],
  ] as const;
  for (const [body, param] of cases) {
    it(`${JSON.stringify(body)} is a 400 that names ${param}`, async () => {
      await using server = await startTestServer();
      const response = await server.post("/v1/responses", body);
      assert.equal(response.status, 400);
      assert.equal(((await response.json()) as { error: { param: string } }).error.param, param);
    });
  }
});

describe("the store of responses", () => {
  const response = (id: string, text = ""): ResponseObject => ({
    id,
    object: "response",
    created_at: 0,
    status: "completed",
    error: null,
    incomplete_details: null,
    model,
    output: [],
    usage: null,
    text,
  });

  const all = { responses: 12, length: 8000 };
  const alice = "alice" as OwnerId;
  const bob = "bob" as OwnerId;
  const add = (store: ResponseStore, owner: OwnerId, id: string, length = 0): void =>
    store.set(owner, id, { response: response(id, "x".repeat(length)), conversation: [] });

  it("drops the oldest beyond the limits", () => {
    const store = new ResponseStore({ each: { responses: 3, length: 2000 }, total: all });
    for (const id of ["a", "b", "c", "d"]) add(store, alice, id);
    assert.equal(store.size, 3);
    assert.throws(() => store.get(alice, "a"), { code: "not_found" });
    add(store, alice, "e", 1800);
    assert.equal(store.size, 1);
    add(store, alice, "f", 5000);
    assert.equal(store.size, 0, "one that does not fit at all is not kept");
  });

  it("keeps what an owner has within an even share, whatever others store", () => {
    const share = fc.record({ owner: fc.nat(5), id: fc.nat(30), length: fc.nat(1500) });
    fc.assert(
      fc.property(fc.array(share, { maxLength: 200 }), (stores) => {
        const store = new ResponseStore({ each: { responses: 4, length: 3000 }, total: all });
        add(store, alice, "kept", 500);
        for (const { owner, id, length } of stores) add(store, `other ${owner}` as OwnerId, `${id}`, length);
        assert.equal(store.get(alice, "kept").response.id, "kept");
        assert(store.size <= all.responses);
      }),
    );
  });

  it("finds, replaces and drops an owner's own only", () => {
    const store = new ResponseStore({ each: { responses: 3, length: 2000 }, total: all });
    add(store, alice, "a");
    assert.throws(() => store.get(bob, "a"), { code: "not_found" });
    for (const id of ["a", "b", "c", "d", "e"]) add(store, bob, id, 400);
    assert.equal(store.get(alice, "a").response["text"], "");
  });
});
