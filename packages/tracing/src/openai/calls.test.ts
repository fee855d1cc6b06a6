import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { events, jsonAnswer } from "../testing/mock-openai.js";
import {
  chatBody,
  chunks,
  toolCallCompletion,
  drain,
  only,
  scene,
  streamed,
  textCompletion,
  usageBody,
} from "../testing/openai-scene.js";

describe("openai calls as spans", () => {
  it("chat.completions.create", async () => {
    const spans = await scene(jsonAnswer(toolCallCompletion), async ({ client }) => {
      const answer = await client.chat.completions.create({
        ...chatBody,
        temperature: 0.3,
        max_completion_tokens: 50,
        stop: "END",
        seed: 4,
        n: 1,
        response_format: { type: "json_object" },
      });
      assert.deepEqual(answer, toolCallCompletion);
      assert.equal(Reflect.get(answer, "_request_id"), "req-1");
    });
    const span = only(spans);
    assert.equal(span.side, "client");
    assert.equal(span.operation, "chat");
    assert.deepEqual(span.outcome, { kind: "ok" });
    assert.equal(span.server?.host, "127.0.0.1");
    assert.deepEqual(span.request, {
      model: "asked",
      temperature: 0.3,
      maxTokens: 50,
      stopSequences: ["END"],
      seed: 4,
      choiceCount: 1,
      outputType: "json",
    });
    assert.deepEqual(span.response, {
      id: "chatcmpl-1",
      model: "served",
      systemFingerprint: "fp",
      finishReasons: ["tool_calls"],
      toolNames: ["weather"],
      httpStatus: 200,
      requestId: "req-1",
    });
    assert.deepEqual(span.usage, {
      inputTokens: 12,
      outputTokens: 3,
      cacheReadInputTokens: 8,
      reasoningOutputTokens: 1,
    });
    assert.equal(span.content, undefined, "no content unless asked for");
    assert.doesNotMatch(JSON.stringify(span), /private|Paris/);
    assert.ok(span.durationMs > 0 && Math.abs(Date.now() - span.startEpochMs) < 60_000);
  });

  it("a stream read to its end, with the time to its first token and every gap counted", async () => {
    const spans = await scene(events(chunks), async ({ client }) => {
      const stream = await client.chat.completions.create(streamed);
      const seen: unknown[] = [];
      for await (const part of stream) seen.push(part);
      assert.deepEqual(seen, chunks);
    });
    const { stream, response, usage: counted, outcome } = only(spans);
    assert.deepEqual(outcome, { kind: "ok" });
    assert.equal(stream?.chunks, 6);
    assert.equal(stream.gaps.count, 2, "three outputs have two gaps between them");
    assert.ok((stream.timeToFirstChunkMs ?? 0) <= (stream.timeToFirstTokenMs ?? 0));
    assert.deepEqual(response.finishReasons, ["stop"]);
    assert.equal(response.id, "chatcmpl-2");
    assert.equal(counted.outputTokens, 3);
  });

  it("chat.completions.stream and its helpers", async () => {
    const spans = await scene(events(chunks), async ({ client }) => {
      const stream = client.chat.completions.stream(chatBody);
      assert.equal((await stream.finalChatCompletion()).choices[0]?.message.content, "Hello!");
    });
    assert.equal(only(spans).usage.inputTokens, 12);
  });

  it("chat.completions.parse", async () => {
    const spans = await scene(jsonAnswer(textCompletion), async ({ client }) => {
      const answer = await client.chat.completions.parse({
        ...chatBody,
        response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } },
      });
      assert.equal(answer.choices[0]?.message.content, '{"a":1}');
    });
    assert.equal(only(spans).request.outputType, "json");
  });

  it("completions, whole and streamed", async () => {
    const answer = {
      id: "cmpl-1",
      object: "text_completion",
      created: 1,
      model: "served",
      choices: [{ index: 0, text: "abc", finish_reason: "length", logprobs: null }],
      usage: usageBody,
    };
    const spans = await scene(
      (response, seen) =>
        (seen.body["stream"] === true ? events([answer]) : jsonAnswer(answer))(response, seen),
      async ({ client }) => {
        await client.completions.create({ model: "asked", prompt: "x" });
        await drain(
          await client.completions.create({
            model: "asked",
            prompt: "x",
            stream: true,
          }),
        );
      },
    );
    assert.deepEqual(
      spans.map(({ operation, response, stream }) => [operation, response.finishReasons, stream?.chunks]),
      [
        ["text_completion", ["length"], undefined],
        ["text_completion", ["length"], 1],
      ],
    );
  });

  it("embeddings, decoded as ever", async () => {
    const vector = Buffer.from(new Float32Array([1, 2, 3]).buffer).toString("base64");
    const answer = {
      object: "list",
      model: "served",
      data: [{ object: "embedding", index: 0, embedding: vector }],
      usage: { prompt_tokens: 4, total_tokens: 4 },
    };
    const spans = await scene(jsonAnswer(answer), async ({ client }) => {
      const result = await client.embeddings.create({ model: "asked", input: "x" });
      assert.deepEqual(Array.from(result.data[0]?.embedding ?? []), [1, 2, 3]);
    });
    const span = only(spans);
    assert.equal(span.operation, "embeddings");
    assert.equal(span.response.embeddingDimensions, 3);
    assert.equal(span.usage.inputTokens, 4);
    assert.deepEqual(span.request.encodingFormats, ["base64"]);
  });

  it("responses, whole, streamed and failed", async () => {
    const answer = {
      id: "resp_1",
      object: "response",
      model: "served",
      status: "completed",
      output: [
        {
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "Hi", annotations: [] }],
        },
        { type: "function_call", call_id: "c1", name: "weather", arguments: "{}" },
      ],
      usage: { input_tokens: 5, output_tokens: 2, input_tokens_details: { cached_tokens: 1 } },
    };
    const failed = {
      ...answer,
      status: "failed",
      error: { code: "server_error", message: "it broke" },
      output: [],
    };
    const spans = await scene(
      (response, seen) => {
        if (seen.body["input"] === "fail") return jsonAnswer(failed)(response, seen);
        if (seen.body["stream"] !== true) return jsonAnswer(answer)(response, seen);
        const begun = {
          type: "response.created",
          response: { ...answer, status: "in_progress", output: [] },
        };
        const delta = { type: "response.output_text.delta", delta: "Hi" };
        return events([begun, delta, delta, { type: "response.completed", response: answer }])(
          response,
          seen,
        );
      },
      async ({ client }) => {
        assert.equal((await client.responses.create({ model: "asked", input: "x" })).output_text, "Hi");
        await drain(
          await client.responses.create({
            model: "asked",
            input: "x",
            stream: true,
          }),
        );
        await client.responses.create({ model: "asked", input: "fail" });
      },
    );
    assert.deepEqual(
      spans.map(({ operation, usage: counted, response, outcome, stream }) => [
        operation,
        counted.inputTokens,
        counted.cacheReadInputTokens,
        response.toolNames,
        outcome.kind,
        stream?.gaps.count,
      ]),
      [
        ["chat", 5, 1, ["weather"], "ok", undefined],
        ["chat", 5, 1, ["weather"], "ok", 1],
        ["chat", 5, 1, undefined, "error", undefined],
      ],
    );
  });

  it("a stream whose first chunk has empty names, as Azure's have", async () => {
    const filtered = { ...chunks[0]!, id: "", model: "", choices: [] };
    const spans = await scene(events([filtered, ...chunks]), async ({ client }) => {
      await drain(await client.chat.completions.create(streamed));
    });
    const { response } = only(spans);
    assert.equal(response.id, "chatcmpl-2");
    assert.equal(response.model, "served");
  });

  it("a stream of responses that ends in an error event", async () => {
    const failed = { type: "error", code: "server_error", message: "it broke", param: null };
    const spans = await scene(
      events([{ type: "response.output_text.delta", delta: "Hi" }, failed]),
      async ({ client }) => {
        await drain(await client.responses.create({ model: "asked", input: "x", stream: true }));
      },
    );
    assert.deepEqual(only(spans).outcome, { kind: "error", errorType: "server_error", message: "it broke" });
  });

  it("other calls make no span", async () => {
    const spans = await scene(jsonAnswer({ id: "served", object: "model" }), async ({ client }) => {
      await client.models.retrieve("served");
    });
    assert.equal(spans.length, 0);
  });
});
