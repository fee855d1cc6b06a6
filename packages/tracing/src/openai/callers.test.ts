import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import OpenAI, { AzureOpenAI } from "openai";
import { APIPromise } from "openai/core/api-promise";
import { usingAttributes, usingTraceParent } from "../context/using-attributes.js";
import { register } from "../register.js";
import { events, jsonAnswer } from "../testing/mock-openai.js";
import {
  chatBody,
  chatChunk,
  chunks,
  toolCallCompletion,
  drain,
  only,
  scene,
  streamed,
  textCompletion,
} from "../testing/openai-scene.js";
import { instrumentOpenAI } from "./instrument-openai.js";

describe("what callers get", () => {
  it("withResponse, asResponse, and promises of the same class", async () => {
    const spans = await scene(jsonAnswer(toolCallCompletion), async ({ client }) => {
      const promise = client.chat.completions.create(chatBody);
      assert.ok(promise instanceof APIPromise);
      assert.deepEqual(Object.keys(promise), ["responsePromise", "parseResponse"]);
      const { data, response, request_id: id } = await promise.withResponse();
      assert.deepEqual(data, toolCallCompletion);
      assert.equal(response.status, 200);
      assert.equal(id, "req-1");
      const raw = await client.chat.completions.create(chatBody).asResponse();
      assert.deepEqual(await raw.json(), toolCallCompletion, "the body is the caller's to read");
      const derived = await client.responses.create({ model: "m", input: "x" }).asResponse();
      assert.equal(derived.bodyUsed, false);
      await derived.text();
    });
    assert.deepEqual(
      spans.map(({ outcome, usage: counted, response }) => [
        outcome.kind,
        counted.inputTokens,
        response.httpStatus,
      ]),
      [
        ["ok", 12, 200],
        ["ok", undefined, 200],
        ["ok", undefined, 200],
      ],
    );
  });

  it("streams of the same class that can be split and passed on", async () => {
    const spans = await scene(events(chunks), async ({ client }) => {
      const stream = await client.chat.completions.create(streamed);
      assert.equal(stream.constructor.name, "Stream");
      const [left, right] = stream.tee();
      assert.deepEqual(await Promise.all([drain(left), drain(right)]), [6, 6]);
      const other = await client.chat.completions.create(streamed);
      const reader = other.toReadableStream().getReader();
      while (!(await reader.read()).done);
      const again = await client.chat.completions.create(streamed);
      await drain(again);
      await assert.rejects(async () => {
        await drain(again);
      }, /consumed stream/);
    });
    assert.deepEqual(
      spans.map(({ outcome, stream }) => [outcome.kind, stream?.chunks]),
      [
        ["ok", 6],
        ["ok", 6],
        ["ok", 6],
      ],
    );
  });

  it("a failure that is handled leaves no unhandled one behind", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", onUnhandled);
    try {
      await scene(jsonAnswer({ error: { message: "no" } }, 400), async ({ client }) => {
        await assert.rejects(client.chat.completions.create(chatBody));
        await new Promise((resolve) => setTimeout(resolve, 10));
        assert.equal(unhandled.length, 0);
      });
    } finally {
      process.off("unhandledRejection", onUnhandled);
    }
  });

  it("is untouched again after disposal", async () => {
    const request = Object.getOwnPropertyDescriptor(OpenAI.prototype, "request");
    const tracing = register({ sinks: [] });
    const instrumentation = instrumentOpenAI(OpenAI, tracing);
    assert.throws(() => instrumentOpenAI(OpenAI, tracing), OctavoError);
    assert.throws(() => instrumentOpenAI(AzureOpenAI, tracing), /derived from/);
    instrumentation[Symbol.dispose]();
    instrumentation[Symbol.dispose]();
    assert.deepEqual(Object.getOwnPropertyDescriptor(OpenAI.prototype, "request"), request);
    assert.throws(() => instrumentOpenAI({ prototype: {} }, tracing), /OpenAI class/);
    await tracing.shutdown();
  });
});

describe("traces and their contents", () => {
  it("calls carry W3C's headers in every shape of headers, and the caller's own wins", async () => {
    const own = "00-11111111111111111111111111111111-2222222222222222-01";
    const spans = await scene(jsonAnswer(toolCallCompletion), async ({ client, mock }) => {
      for (const headers of [
        undefined,
        { "x-a": "1" },
        new Headers({ "x-a": "1" }),
        [["x-a", "1"]],
        { traceparent: own },
      ]) {
        await client.chat.completions.create(chatBody, headers === undefined ? {} : { headers });
      }
      const sent = mock.requests.map(({ headers }) => headers["traceparent"]);
      assert.equal(sent.at(-1), own);
      for (const header of sent) assert.match(String(header), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      assert.deepEqual(
        mock.requests.map(({ headers }) => headers["x-a"]),
        [undefined, "1", "1", "1", undefined],
      );
    });
    assert.equal(new Set(spans.map(({ identity }) => identity.traceId)).size, 5);
  });

  it("calls continue the trace they are made in, of ours or another library", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    let foreign: { traceId: string; spanId: string; traceFlags: number } | undefined;
    const spans = await scene(
      jsonAnswer(toolCallCompletion),
      async ({ client, mock }) => {
        await usingTraceParent({ traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: "a=b" }, () =>
          client.chat.completions.create(chatBody),
        );
        assert.equal(mock.requests[0]?.headers["tracestate"], "a=b");
        foreign = { traceId, spanId: "1111111111111111", traceFlags: 1 };
        await client.chat.completions.create(chatBody);
        foreign = { traceId: "garbage", spanId: "", traceFlags: 1 };
        await client.chat.completions.create(chatBody);
        foreign = { traceId, spanId: "1111111111111111", traceFlags: 0 };
        await client.chat.completions.create(chatBody);
        assert.match(String(mock.requests[3]?.headers["traceparent"]), /-00$/);
      },
      { parent: () => foreign },
    );
    assert.deepEqual(
      spans.map(({ identity }) => [identity.traceId === traceId, identity.parentSpanId]),
      [
        [true, "b7ad6b7169203331"],
        [true, "1111111111111111"],
        [false, undefined],
      ],
      "a trace that is not sampled has no span",
    );
  });

  it("usingAttributes reaches the spans of the calls made in it", async () => {
    const spans = await scene(jsonAnswer(toolCallCompletion), async ({ client }) => {
      const calls = ["a", "b"].map((tenantId) =>
        usingAttributes({ tenantId, "cluster.queue_depth": 3 }, async () => {
          await Promise.resolve();
          return client.chat.completions.create(chatBody);
        }),
      );
      await Promise.all(calls);
    });
    assert.deepEqual(new Set(spans.map(({ context }) => context.tenantId)), new Set(["a", "b"]));
    assert.deepEqual(spans[0]?.context.attributes, { "cluster.queue_depth": 3 });
  });

  it("content is kept where asked for, within its bound, and never media", async () => {
    const parts = [
      chatChunk({ role: "assistant", content: "" }),
      chatChunk({ reasoning_content: "hm" }),
      chatChunk({ content: "Hello" }),
      chatChunk({ tool_calls: [{ index: 0, id: "c1", function: { name: "weather", arguments: '{"ci' } }] }),
      chatChunk({ tool_calls: [{ index: 0, function: { arguments: 'ty":1}' } }] }, "tool_calls"),
    ];
    const spans = await scene(
      events(parts),
      async ({ client }) => {
        const image = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA" } };
        const body = {
          ...streamed,
          messages: [
            { role: "system" as const, content: "Be brief." },
            { role: "user" as const, content: [{ type: "text" as const, text: "What is this?" }, image] },
          ],
        };
        await drain(await client.chat.completions.create(body));
      },
      { captureContent: true, maxContentCharacters: 20 },
    );
    const { content, response } = only(spans);
    assert.deepEqual(content?.systemInstructions, [{ type: "text", content: "Be brief." }]);
    assert.deepEqual(content.inputMessages, [
      {
        role: "user",
        parts: [
          { type: "text", content: "What is thi…" },
          { type: "media", kind: "image_url" },
        ],
      },
    ]);
    assert.deepEqual(content.outputMessages, [
      {
        role: "assistant",
        finishReason: "tool_calls",
        parts: [
          { type: "reasoning", content: "hm" },
          { type: "text", content: "Hello" },
          { type: "tool_call", id: "c1", name: "weather", arguments: '{"city":1}' },
        ],
      },
    ]);
    assert.deepEqual(response.toolNames, ["weather"]);
  });

  it("content is cut between characters, never within one", async () => {
    const spans = await scene(
      jsonAnswer(textCompletion),
      async ({ client }) => {
        await client.chat.completions.create({
          model: "m",
          messages: [{ role: "user", content: "abc\u{1f600}def" }],
        });
      },
      { captureContent: true, maxContentCharacters: 4 },
    );
    assert.deepEqual(only(spans).content?.inputMessages[0]?.parts, [{ type: "text", content: "abc…" }]);
  });

  it("a body that throws when it is looked at fails as it would have", async () => {
    const body = {
      ...chatBody,
      get temperature(): number {
        throw new RangeError("looked at");
      },
    };
    await scene(jsonAnswer(toolCallCompletion), async ({ client }) => {
      await assert.rejects(client.chat.completions.create(body), RangeError);
    });
  });
});
