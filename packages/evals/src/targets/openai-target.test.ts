import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeSseJson } from "@octavo/protocol";
import type { EvalCase } from "../cases/eval-case.js";
import { sampleOf } from "../evaluators/testing/sample.js";
import {
  beginStream,
  completionChunk,
  chatCompletion,
  type FakeHandler,
  type FakeOpenAiServer,
  replyJson,
  sendStream,
  startFakeOpenAi,
} from "../testing/fake-openai-server.js";
import { type OpenAiTargetSettings, openAiTarget } from "./openai-target.js";

const { signal } = new AbortController();

function caseOf(id: string, fields: Partial<EvalCase> = {}): EvalCase {
  return sampleOf({ case: { ...fields, id } }).case;
}

async function answerFrom(handler: FakeHandler, settings: Partial<OpenAiTargetSettings> = {}) {
  await using server = await startFakeOpenAi({ "/v1/chat/completions": handler });
  const target = openAiTarget({
    name: "candidate",
    baseUrl: server.baseUrl,
    model: "fake",
    servingRecord: "never",
    ...settings,
  });
  const answer = await target.answer(caseOf("1"), { signal });
  return { answer, request: server.requests[0]! };
}

const serving = {
  request_id: "r",
  tenant: "acme",
  queue_ms: 3,
  e2e_ms: 20,
  cached_tokens: 16,
  cache_hit_ratio: 0.5,
  preemptions: 1,
  recomputed_tokens: 8,
  gaps: { count: 0, mean_ms: 0, p50_ms: 0, p99_ms: 0, max_ms: 0 },
  batch_size: { min: 1, mean: 2, max: 3 },
  shared_prefill_tokens: { min: 0, mean: 5, max: 9 },
};

describe("an OpenAI-compatible target", () => {
  it("reads a stream: pieces with their times, reasoning, calls in deltas, usage, headers and the record", async () => {
    const { answer, request } = await answerFrom(
      (_, response) => {
        sendStream(
          response,
          [
            completionChunk({ role: "assistant", content: "" }),
            completionChunk({ reasoning: "Hm." }),
            completionChunk({ content: "Hé" }),
            completionChunk({ content: "llo" }),
            completionChunk({
              tool_calls: [{ index: 1, id: "b", function: { name: "second", arguments: "" } }],
            }),
            completionChunk({
              tool_calls: [{ index: 0, id: "a", function: { name: "first", arguments: '{"x"' } }],
            }),
            completionChunk({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
            completionChunk({}, "tool_calls"),
            {
              choices: [],
              usage: {
                prompt_tokens: 32,
                completion_tokens: 9,
                prompt_tokens_details: { cached_tokens: 16 },
              },
            },
            { choices: [], octavo: { serving_record: serving } },
          ],
          { "X-Replica-Id": "r-2", "x-queue-depth": "7", etag: "no" },
        );
      },
      { servingRecord: "always", apiKey: "secret", headers: { "x-extra": "1" } },
    );
    assert.equal(answer.failure, undefined);
    assert.equal(answer.text, "Héllo");
    assert.equal(answer.reasoning, "Hm.");
    assert.deepEqual(answer.toolCalls, [
      { id: "a", name: "first", arguments: '{"x":1}' },
      { id: "b", name: "second", arguments: "" },
    ]);
    assert.equal(answer.finishReason, "tool_calls");
    assert.deepEqual(answer.usage, { promptTokens: 32, completionTokens: 9, cachedTokens: 16 });
    assert.equal(answer.timing.pieceMs.length, 6, "the role alone is no output");
    assert.deepEqual(answer.headers, { "x-replica-id": "r-2", "x-queue-depth": "7" });
    assert.equal(answer.serving?.request_id, "r");
    assert.equal(request.headers["authorization"], "Bearer secret");
    assert.equal(request.headers["x-extra"], "1");
    assert.deepEqual(request.body["stream_options"], { include_usage: true });
    assert.deepEqual(request.body["octavo"], { include_serving_record: true });
  });

  it("sends what the case, the run and the call decide, the nearest last", async () => {
    await using server = await startFakeOpenAi({
      "/v1/models": (_, response) =>
        replyJson(response, 200, { data: [{ id: "octavo-mini", owned_by: "octavo" }] }),
      "/v1/chat/completions": (_, response) =>
        sendStream(response, [completionChunk({ content: "ok" }, "stop")]),
    });
    const target = openAiTarget({
      name: "octavo",
      baseUrl: `${server.baseUrl}/`,
      parameters: { maxTokens: 5, temperature: 0, extraBody: { a: 1, b: 1, octavo: { timeout_ms: 9 } } },
      tenantKeys: { acme: "acme-key" },
    });
    const evalCase = caseOf("1", {
      tenant: "beta",
      parameters: { temperature: 0.5, extraBody: { b: 2, c: 2 } },
    });
    const answer = await target.answer(evalCase, { signal, extraBody: { c: 3 }, scheduledEpochMs: 5 });
    await target.answer(evalCase, { signal, tenant: "acme" });
    assert.equal(answer.timing.scheduledEpochMs, 5);
    const [first, second] = server.requests.filter(({ path }) => path === "/v1/chat/completions");
    assert.equal(server.requests.filter(({ path }) => path === "/v1/models").length, 1);
    assert.deepEqual(
      { ...first!.body, messages: [], stream: undefined, stream_options: undefined },
      {
        model: "octavo-mini",
        messages: [],
        max_tokens: 5,
        temperature: 0.5,
        stream: undefined,
        stream_options: undefined,
        a: 1,
        b: 2,
        c: 3,
        octavo: { include_serving_record: true, timeout_ms: 9 },
      },
    );
    assert.equal(first!.headers["x-tenant-id"], "beta");
    assert.equal(second!.headers["authorization"], "Bearer acme-key");
    assert.equal(second!.headers["x-tenant-id"], undefined);
  });

  it("asks another's server for no serving record", async () => {
    await using server = await startFakeOpenAi({
      "/v1/chat/completions": (_, response) =>
        sendStream(response, [completionChunk({ content: "ok" }, "stop")]),
    });
    const target = openAiTarget({ name: "other", baseUrl: server.baseUrl });
    await target.answer(caseOf("1"), { signal });
    await target.answer(caseOf("2"), { signal });
    const asked = server.requests.filter(({ path }) => path === "/v1/chat/completions");
    assert.deepEqual(
      asked.map(({ body }) => body["octavo"]),
      [undefined, undefined],
    );
    assert.equal(server.requests.filter(({ path }) => path === "/v1/models").length, 1, "404 is remembered");
  });

  it("does not ask a server again that refuses to say what it is", async () => {
    for (const status of [401, 403]) {
      await using server = await startFakeOpenAi({
        "/v1/models": (_, response) => replyJson(response, status, { error: { message: "no" } }),
        "/v1/chat/completions": (_, response) =>
          sendStream(response, [completionChunk({ content: "ok" }, "stop")]),
      });
      const target = openAiTarget({ name: "gateway", baseUrl: server.baseUrl });
      await target.answer(caseOf("1"), { signal });
      await target.answer(caseOf("2"), { signal });
      assert.equal(server.requests.filter(({ path }) => path === "/v1/models").length, 1);
    }
  });

  it("lets no answer wait for a server that failed to say what it is", async () => {
    const numAsked = (server: FakeOpenAiServer): number =>
      server.requests.filter(({ path }) => path === "/v1/models").length;
    await using server = await startFakeOpenAi({
      "/v1/models": (_, response) => replyJson(response, 500, { error: { message: "broken" } }),
      "/v1/chat/completions": (_, response) =>
        sendStream(response, [completionChunk({ content: "ok" }, "stop")]),
    });
    const target = openAiTarget({ name: "gateway", baseUrl: server.baseUrl, model: "fake" });
    assert.equal(await target.modelName(signal), "fake");
    const before = numAsked(server);
    assert.ok(before > 0, "asked apart from answers");
    for (const id of ["1", "2", "3"]) await target.answer(caseOf(id), { signal });
    assert.equal(numAsked(server), before);
  });

  it("takes an answer that is not a stream", async () => {
    for (const stream of [true, false]) {
      const { answer, request } = await answerFrom(
        (_, response) => replyJson(response, 200, chatCompletion("whole")),
        { stream },
      );
      assert.equal(answer.failure, undefined);
      assert.equal(answer.text, "whole");
      assert.deepEqual(answer.timing.pieceMs, []);
      assert.equal(answer.usage.completionTokens, 3);
      assert.equal(request.body["stream"], stream ? true : undefined);
    }
  });

  it("joins calls of servers that send no index", async () => {
    const { answer } = await answerFrom((_, response) => {
      sendStream(response, [
        completionChunk({ tool_calls: [{ id: "a", function: { name: "f", arguments: "{" } }] }),
        completionChunk({ tool_calls: [{ function: { arguments: "}" } }] }),
        completionChunk({ tool_calls: [{ id: "b", function: { name: "g", arguments: { y: 2 } } }] }),
      ]);
    });
    assert.deepEqual(
      answer.toolCalls.map((call) => `${call.name}${call.arguments}`),
      ["f{}", 'g{"y":2}'],
    );
  });

  const misbehaviours: readonly {
    readonly name: string;
    readonly handler: FakeHandler;
    readonly code: string;
    readonly httpStatus?: number;
    readonly text?: string;
  }[] = [
    {
      name: "a stream without [DONE]",
      handler: (_, response) => {
        beginStream(response);
        response.end(encodeSseJson(completionChunk({ content: "half" }, "stop")));
      },
      code: "truncated",
      text: "half",
    },
    {
      name: "a stream that is cut",
      handler: (_, response) => {
        beginStream(response);
        response.write(encodeSseJson(completionChunk({ content: "half" })), () => response.destroy());
      },
      code: "truncated",
      text: "half",
    },
    {
      name: "a connection that is closed without an answer",
      handler: (_, response) => void response.destroy(),
      code: "connection",
    },
    {
      name: "a server that says nothing",
      handler: () => undefined,
      code: "timeout",
    },
    {
      name: "a stream that stops",
      handler: (_, response) => {
        beginStream(response);
        response.write(encodeSseJson(completionChunk({ content: "half" })));
      },
      code: "timeout",
      text: "half",
    },
    {
      name: "garbage among the events",
      handler: (_, response) => {
        beginStream(response);
        response.write(encodeSseJson(completionChunk({ content: "half" })));
        response.end("data: {oh no\n\ndata: [DONE]\n\n");
      },
      code: "invalid_response",
      text: "half",
    },
    {
      name: "a page instead of an answer",
      handler: (_, response) => {
        response.writeHead(200, { "content-type": "text/html" });
        response.end("<html>Welcome</html>");
      },
      code: "invalid_response",
    },
    {
      name: "an empty answer",
      handler: (_, response) => void response.end(),
      code: "invalid_response",
    },
    {
      name: "an error event with vLLM's fields",
      handler: (_, response) => {
        beginStream(response);
        response.write(encodeSseJson(completionChunk({ content: "half" })));
        response.end(
          encodeSseJson({ error: { message: "out of blocks", type: "ServiceUnavailableError", code: 503 } }),
        );
      },
      code: "ServiceUnavailableError",
      httpStatus: 503,
      text: "half",
    },
    {
      name: "an error with status 200",
      handler: (_, response) => replyJson(response, 200, { error: "no model loaded" }),
      code: "stream_error",
    },
    {
      name: "500 with a page",
      handler: (_, response) => {
        response.writeHead(500, { "content-type": "text/html" });
        response.end("<h1>Oops</h1>");
      },
      code: "http_500",
      httpStatus: 500,
    },
    {
      name: "429 in OpenAI's words",
      handler: (_, response) =>
        replyJson(response, 429, { error: { message: "slow down", code: "rate_limit_exceeded" } }),
      code: "rate_limit_exceeded",
      httpStatus: 429,
    },
    {
      name: "Octavo's code",
      handler: (_, response) =>
        replyJson(
          response,
          400,
          { error: { message: "too long", type: "BadRequestError", code: 400 } },
          { "x-octavo-error-code": "context_length_exceeded" },
        ),
      code: "context_length_exceeded",
      httpStatus: 400,
    },
    {
      name: "a redirect",
      handler: (_, response) => {
        response.writeHead(302, { location: "http://127.0.0.1:1/" });
        response.end();
      },
      code: "http_302",
      httpStatus: 302,
    },
    {
      name: "an answer beyond the limit",
      handler: (_, response) => {
        beginStream(response);
        response.end(encodeSseJson(completionChunk({ content: "x".repeat(200_000) })));
      },
      code: "payload_too_large",
    },
  ];
  for (const { name, handler, code, httpStatus, text } of misbehaviours)
    it(`types the failure of ${name}`, async () => {
      const ask = (timeoutMs: number): ReturnType<typeof answerFrom> =>
        answerFrom(handler, { timeoutMs, maxAnswerBytes: 100_000 });
      let { answer } = await ask(code === "timeout" ? 150 : 10_000);
      // a busy machine may not have brought what comes before the deadline
      if (code === "timeout" && answer.text !== (text ?? "")) ({ answer } = await ask(10_000));
      assert.equal(answer.failure?.code, code, JSON.stringify(answer.failure));
      assert.equal(answer.failure?.httpStatus, httpStatus);
      assert.equal(answer.text, text ?? "", "what came before is kept");
    });

  it("keeps the tokens of an answer where logprobs are given", async () => {
    const content = ["He", "y"].map((token, index) => ({
      token,
      logprob: -(index + 1) / 3,
      top_logprobs: [],
    }));
    const streamed = await answerFrom((_, response) => {
      sendStream(
        response,
        content.map((one) => {
          const choice = { index: 0, delta: { content: one.token }, finish_reason: null };
          return { object: "chat.completion.chunk", choices: [{ ...choice, logprobs: { content: [one] } }] };
        }),
      );
    });
    const whole = await answerFrom((_, response) =>
      replyJson(response, 200, chatCompletion("Hey", { logprobs: { content } })),
    );
    for (const { answer } of [streamed, whole])
      assert.deepEqual(answer.tokens, [
        { text: "He", logprob: -1 / 3 },
        { text: "y", logprob: -2 / 3 },
      ]);
    const without = await answerFrom((_, response) => replyJson(response, 200, chatCompletion("Hey")));
    assert.equal(without.answer.tokens, undefined);
  });
});
