import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { collectGarbage } from "@octavo/protocol/testing/collect-garbage";
import OpenAI, { APIConnectionError, APIUserAbortError, RateLimitError } from "openai";
import { events, jsonAnswer } from "../testing/mock-openai.js";
import {
  chatBody,
  chunks,
  toolCallCompletion,
  drain,
  only,
  scene,
  streamed,
} from "../testing/openai-scene.js";

describe("a call that goes wrong", () => {
  it("an error of the server is a span with its code and status, and thrown as ever", async () => {
    const error = { error: { message: "the queue is full", type: "RateLimitError", code: "queue_full" } };
    const spans = await scene(jsonAnswer(error, 429), async ({ client }) => {
      await assert.rejects(client.chat.completions.create(chatBody), RateLimitError);
    });
    const { outcome, response } = only(spans);
    assert.deepEqual(outcome, {
      kind: "error",
      errorType: "queue_full",
      message: "429 the queue is full",
    });
    assert.equal(response.httpStatus, 429);
  });

  it("no server at all", async () => {
    const spans = await scene(jsonAnswer({}), async () => {
      const client = new OpenAI({ baseURL: "http://127.0.0.1:9/v1", apiKey: "unused", maxRetries: 0 });
      await assert.rejects(client.chat.completions.create(chatBody), APIConnectionError);
    });
    const { outcome, server } = only(spans);
    assert.equal("errorType" in outcome && outcome.errorType, "APIConnectionError");
    assert.deepEqual(server, { host: "127.0.0.1", port: 9 });
  });

  it("an answer that is no JSON", async () => {
    const spans = await scene(
      (response) => void response.writeHead(200, { "content-type": "application/json" }).end("{"),
      async ({ client }) => {
        await assert.rejects(client.chat.completions.create(chatBody), SyntaxError);
      },
    );
    assert.equal(only(spans).outcome.kind, "error");
  });

  it("retries are one call, one span", async () => {
    let calls = 0;
    const spans = await scene(
      (response, seen) =>
        (calls++ === 0 ? jsonAnswer({ error: {} }, 500) : jsonAnswer(toolCallCompletion))(response, seen),
      async ({ client, mock }) => {
        await client.chat.completions.create(chatBody, { maxRetries: 1 });
        const parents = mock.requests.map(({ headers }) => headers["traceparent"]);
        assert.equal(new Set(parents).size, 1);
        assert.equal(parents.length, 2);
      },
    );
    assert.equal(only(spans).outcome.kind, "ok");
  });

  it("a stream cut off in the middle, and an error event", async () => {
    for (const [answer, type] of [
      [events(chunks.slice(0, 3), "cut"), undefined],
      [events([...chunks.slice(0, 3), { error: { message: "oh", code: "engine_failed" } }]), "engine_failed"],
    ] as const) {
      const spans = await scene(answer, async ({ client }) => {
        await assert.rejects(async () => {
          await drain(await client.chat.completions.create(streamed));
        });
      });
      const { outcome, stream } = only(spans);
      assert.equal(outcome.kind, "error");
      if (type !== undefined) assert.equal("errorType" in outcome && outcome.errorType, type);
      assert.equal(stream?.gaps.count, 1);
    }
  });

  it("a reader's break ends the span at once, and once", async () => {
    const spans = await scene(
      events(chunks.slice(0, 3), "open"),
      async ({ client, tracing, spans: made }) => {
        const stream = await client.chat.completions.create(streamed);
        for await (const part of stream) if (part.choices[0]?.delta.content === "Hel") break;
        assert.equal(tracing.openCalls, 0);
        assert.equal(made.length, 1);
        assert.equal(stream.controller.signal.aborted, true, "openai closes the connection as ever");
      },
    );
    assert.deepEqual(only(spans).outcome, { kind: "stopped" });
  });

  it("a throw in the reader's loop ends the span", async () => {
    const spans = await scene(events(chunks.slice(0, 3), "open"), async ({ client }) => {
      await assert.rejects(async () => {
        for await (const part of await client.chat.completions.create(streamed))
          throw new RangeError(`mine, at ${part.id}`);
      }, RangeError);
    });
    assert.equal(only(spans).outcome.kind, "stopped");
  });

  it("an abort before the answer, during the stream, and between two reads", async () => {
    const spans = await scene(
      (response, seen) => {
        if (seen.body["stream"] === true) return events(chunks.slice(0, 3), "open")(response, seen);
      },
      async ({ client, tracing }) => {
        const early = new AbortController();
        const pending = client.chat.completions.create(chatBody, { signal: early.signal });
        setTimeout(() => early.abort(), 20);
        await assert.rejects(pending, APIUserAbortError);

        const stream = await client.chat.completions.create(streamed);
        for await (const part of stream) {
          if (part.choices[0]?.delta.content === "lo") setImmediate(() => stream.controller.abort());
        }

        const left = await client.chat.completions.create(streamed);
        await left[Symbol.asyncIterator]().next();
        left.controller.abort();
        await Promise.resolve();
        assert.equal(tracing.openCalls, 0, "nobody reads on, but the span has ended");
      },
    );
    assert.deepEqual(
      spans.map(({ outcome }) => [outcome.kind, "errorType" in outcome && outcome.errorType]),
      Array.from({ length: 3 }, () => ["aborted", "APIUserAbortError"]),
    );
  });

  it("a stream or an answer that nobody reads ends when it is collected", async () => {
    const spans = await scene(
      (response, seen) =>
        (seen.body["stream"] === true ? events(chunks.slice(0, 3), "open") : jsonAnswer(toolCallCompletion))(
          response,
          seen,
        ),
      async ({ client, tracing, mock }) => {
        const drop = async (): Promise<void> => {
          await client.chat.completions.create(streamed);
          const begun = await client.chat.completions.create(streamed);
          await begun[Symbol.asyncIterator]().next();
          void client.chat.completions.create(chatBody);
        };
        await drop();
        while (mock.requests.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
        await collectGarbage(() => tracing.openCalls === 0);
      },
    );
    assert.deepEqual(
      spans.map(({ outcome }) => outcome.kind),
      ["abandoned", "abandoned", "abandoned"],
    );
  });

  it("a shutdown ends what is under way", async () => {
    const spans = await scene(events(chunks.slice(0, 3), "open"), async ({ client, tracing }) => {
      const stream = await client.chat.completions.create(streamed);
      const iterator = stream[Symbol.asyncIterator]();
      await iterator.next();
      await tracing.shutdown();
      await iterator.return?.();
    });
    assert.equal(only(spans).outcome.kind, "abandoned");
  });
});
