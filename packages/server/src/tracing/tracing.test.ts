import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type LanguageModel, LLM } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { instrumentOpenAI, type LlmSpan, register, type SpanSink } from "@octavo/tracing";
import OpenAI from "openai";
import { pino } from "pino";
import { createServer as createOctavoServer, type OctavoServer } from "../create-server.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { type ReceivedSpan, startSpanCollector } from "../testing/span-collector.js";
import { octavoMiniPath } from "../testing/octavo-mini.js";
import type { ServerConfig } from "../config.js";
import { resolveServerConfig } from "../resolve-config.js";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${parentId}-01`;

interface Stage {
  readonly url: string;
  readonly server: OctavoServer;
  readonly logs: Readonly<Record<string, unknown>>[];
  readonly post: (
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Response>;
}

/** What a server sent to a collector while `act` talked to it. */
async function spansOf(
  act: (stage: Stage) => Promise<void>,
  config: Partial<ServerConfig> = {},
  model: LanguageModel = new FakeLanguageModel(),
): Promise<readonly ReceivedSpan[]> {
  await using collector = await startSpanCollector();
  const logs: Readonly<Record<string, unknown>>[] = [];
  const write = (line: string): void => void logs.push(JSON.parse(line) as Record<string, unknown>);
  const server = createOctavoServer({
    model,
    config: { port: 0, otlpEndpoint: collector.url, servedModelNames: ["fake"], ...config },
    logger: pino({ level: "info" }, { write }),
  });
  const { url } = await server.listen();
  try {
    await act({
      url,
      server,
      logs,
      post: (path, body, headers = {}) =>
        fetch(url + path, {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify(body),
        }),
    });
  } finally {
    await server.drain(1000);
  }
  return collector.spans;
}

const messages = [{ role: "user", content: "private words" }];

describe("spans of the server", () => {
  it("one per request, under the caller's span, with what the engine recorded", async () => {
    let octavoId = "";
    const spans = await spansOf(async ({ post, logs }) => {
      const response = await post(
        "/v1/chat/completions",
        { model: "fake", messages, max_tokens: 5, temperature: 0.5, user: "u-1" },
        { traceparent, tracestate: "a=b", "x-tenant-id": "acme", "x-request-id": "r-1" },
      );
      const answer = (await response.json()) as { readonly id: string };
      assert.match(
        response.headers.get("traceresponse") ?? "",
        new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`),
      );
      assert.match(answer.id, /^chatcmpl-/);
      octavoId = response.headers.get("x-octavo-request-id") ?? "none";
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(logs.find(({ msg }) => msg === "request")?.["traceId"], traceId);
    });
    assert.equal(spans.length, 1);
    const [span] = spans;
    assert.ok(span !== undefined);
    assert.equal(span.traceId, traceId);
    assert.equal(span.parentSpanId, parentId);
    assert.equal(span.traceState, "a=b");
    assert.equal(span.kind, 2);
    assert.equal(span.name, "chat fake");
    const { values } = span;
    for (const [name, value] of [
      ["gen_ai.operation.name", "chat"],
      ["gen_ai.provider.name", "octavo"],
      ["gen_ai.request.max_tokens", 5],
      ["gen_ai.request.temperature", 0.5],
      ["octavo.request.id", "r-1"],
      ["octavo.engine.request_id", octavoId],
      ["octavo.tenant.id", "acme"],
      ["user.id", "u-1"],
      ["http.response.status_code", 200],
      ["octavo.outcome", "ok"],
    ] as const) {
      assert.equal(values.get(name), value, name);
    }
    assert.match(String(values.get("gen_ai.response.id")), /^chatcmpl-/);
    for (const name of [
      "gen_ai.usage.input_tokens",
      "gen_ai.usage.output_tokens",
      "gen_ai.usage.cache_read.input_tokens",
      "gen_ai.latency.time_in_queue",
      "gen_ai.latency.time_to_first_token",
      "gen_ai.latency.e2e",
      "octavo.batch_size.mean",
      "octavo.cache_hit_ratio",
    ]) {
      assert.equal(typeof values.get(name), "number", name);
    }
    assert.ok(Array.isArray(values.get("gen_ai.response.finish_reasons")));
    assert.doesNotMatch(JSON.stringify([...values]), /private/);
  });

  it("for every endpoint that runs the model, streamed or not, and for no other", async () => {
    const spans = await spansOf(async ({ post, url }) => {
      const bodies = [
        ["/v1/chat/completions", { messages, stream: true, max_tokens: 3 }],
        ["/v1/completions", { prompt: ["a", "b"], max_tokens: 2 }],
        ["/v1/chat/completions/batch", { messages: [messages, messages], max_tokens: 2 }],
        ["/v1/responses", { input: "x" }],
        ["/v1/messages", { model: "fake", messages, max_tokens: 3 }],
        ["/v1/embeddings", { input: ["a", "b"] }],
        ["/tokenize", { prompt: "x" }],
      ] as const;
      for (const [path, body] of bodies) await (await post(path, body)).text();
      await (await fetch(`${url}/v1/models`)).text();
      await (await fetch(`${url}/health`)).text();
    });
    assert.deepEqual(
      spans.map(({ name, values }) => [
        name,
        values.get("gen_ai.request.stream"),
        values.get("http.response.status_code"),
      ]),
      [
        ["chat fake", true, 200],
        ["text_completion fake", undefined, 200],
        ["chat fake", undefined, 200],
        ["chat fake", undefined, 200],
        ["chat fake", undefined, 200],
        ["embeddings fake", undefined, 200],
      ],
    );
    assert.deepEqual(spans[1]?.values.get("gen_ai.response.finish_reasons"), ["length", "length"]);
    assert.deepEqual(spans[2]?.values.get("gen_ai.response.finish_reasons"), ["length", "length"]);
    assert.match(String(spans[2]?.values.get("gen_ai.response.id")), /^chatcmpl-/);
    assert.equal(new Set(spans.map((span) => span.traceId)).size, 6);
    for (const span of spans) assert.equal(span.parentSpanId, undefined);
  });

  it("invalid headers start a new trace", async () => {
    const spans = await spansOf(async ({ post }) => {
      for (const bad of ["garbage", `00-${"0".repeat(32)}-${parentId}-01`, "a".repeat(5000)]) {
        const response = await post(
          "/v1/completions",
          { prompt: "x", max_tokens: 1 },
          { traceparent: bad, tracestate: "\u00e9=1", "x-tenant-id": 'a"b c' },
        );
        assert.equal(response.status, 200);
        await response.text();
      }
    });
    assert.equal(spans.length, 3);
    for (const span of spans) {
      assert.equal(span.parentSpanId, undefined);
      assert.equal(span.traceState, undefined);
      assert.equal(span.values.get("octavo.tenant.id"), undefined);
    }
  });

  it("failures by their code, without what the client sent", async () => {
    const spans = await spansOf(async ({ post }) => {
      await (await post("/v1/chat/completions", { model: "private-name", messages })).text();
      await (await post("/v1/chat/completions", { messages, n: 0 })).text();
    });
    assert.deepEqual(
      spans.map(({ status, values }) => [
        status.code,
        values.get("error.type"),
        values.get("http.response.status_code"),
      ]),
      [
        [2, "model_not_found", 404],
        [2, "invalid_request", 400],
      ],
    );
  });

  it("disconnected clients, once the engine has settled their request", async () => {
    await using model = await LLM.load(octavoMiniPath, { numThreads: 1 });
    const spans = await spansOf(
      async ({ url }) => {
        const abort = new AbortController();
        const response = await fetch(`${url}/v1/completions`, {
          method: "POST",
          headers: { "content-type": "application/json", traceparent },
          body: JSON.stringify({ prompt: "x", max_tokens: 1000, stream: true, ignore_eos: true }),
          signal: abort.signal,
        });
        const reader = response.body?.getReader();
        await reader?.read();
        abort.abort();
        await reader?.read().catch(() => {});
      },
      {},
      model,
    );
    assert.equal(spans.length, 1);
    const values = spans[0]?.values;
    assert.equal(values?.get("error.type"), "request_cancelled");
    assert.equal(values?.get("octavo.outcome"), "aborted");
    assert.deepEqual(values?.get("gen_ai.response.finish_reasons"), ["abort"]);
    assert.ok(Number(values?.get("gen_ai.usage.output_tokens")) > 0);
    assert.ok(Number(values?.get("octavo.kernel_time")) > 0);
  });

  it("and the client's are one trace: the openai package, instrumented, against octavo-mini", async () => {
    await using model = await LLM.load(octavoMiniPath, { numThreads: 1 });
    const made: LlmSpan[] = [];
    const nothing = { delivered: 0, droppedFull: 0, droppedFailed: 0, waiting: 0 };
    const sink: SpanSink = {
      add: (span) => void made.push(span),
      counts: nothing,
      flush: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
    const tracing = register({ sinks: [sink] });
    const instrumentation = instrumentOpenAI(OpenAI, tracing);
    try {
      const spans = await spansOf(
        async ({ url }) => {
          const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0 });
          const body = {
            model: "fake",
            messages: [{ role: "user" as const, content: "Hello" }],
            max_completion_tokens: 12,
          };
          await client.chat.completions.create(body);
          const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
          await stream.finalChatCompletion();
          await client.completions.create({ model: "fake", prompt: "Hello", max_tokens: 4 });
          await client.responses.create({ model: "fake", input: "Hello", max_output_tokens: 8 });
          await client.embeddings.create({ model: "fake", input: "Hello" });
          await assert.rejects(client.chat.completions.create({ ...body, n: 0 }));
        },
        {},
        model,
      );
      assert.equal(made.length, 6);
      for (const [index, client] of made.entries()) {
        const server = spans.find((span) => span.traceId === client.identity.traceId);
        assert.ok(server !== undefined, client.operation);
        assert.equal(server.parentSpanId, client.identity.spanId);
        assert.equal(server.values.get("gen_ai.operation.name"), client.operation);
        assert.equal(server.values.get("octavo.request.id"), client.response.requestId);
        if (index === 5) {
          assert.equal(client.outcome.kind === "error" && client.outcome.errorType, "BadRequestError");
          assert.equal(server.values.get("error.type"), "invalid_request");
          continue;
        }
        assert.equal(client.outcome.kind, "ok");
        assert.equal(server.values.get("gen_ai.usage.input_tokens"), client.usage.inputTokens);
        if (client.operation !== "embeddings") {
          assert.equal(server.values.get("gen_ai.usage.output_tokens"), client.usage.outputTokens);
          assert.equal(server.values.get("gen_ai.response.id"), client.response.id);
        }
      }
      assert.ok((made[1]?.stream?.timeToFirstTokenMs ?? 0) > 0);
      assert.equal(spans[1]?.values.get("gen_ai.request.stream"), true);
    } finally {
      instrumentation[Symbol.dispose]();
      await tracing.shutdown();
    }
  });

  it("none for traces that the caller or the server does not sample", async () => {
    const spans = await spansOf(
      async ({ post }) => {
        const body = { prompt: "x", max_tokens: 1 };
        const unkept = await post("/v1/completions", body, { traceparent: `00-${traceId}-${parentId}-00` });
        assert.equal(unkept.headers.get("traceresponse"), null);
        await unkept.text();
        await (await post("/v1/completions", body)).text();
        await (await post("/v1/completions", body, { traceparent })).text();
      },
      { traceSampleRatio: 0 },
    );
    assert.deepEqual(
      spans.map((span) => span.parentSpanId),
      [parentId],
    );
  });

  it("carry the deployment's attributes", async () => {
    const spans = await spansOf(
      async ({ post }) => {
        await (await post("/v1/completions", { prompt: "a", max_tokens: 1 })).text();
      },
      {
        traceAttributes: { "ray.serve.deployment_name": "llama", "cluster.replica_count": 4 },
        traceConventions: ["traceai"],
      },
    );
    assert.equal(spans[0]?.values.get("ray.serve.deployment_name"), "llama");
    assert.equal(spans[0]?.values.get("cluster.replica_count"), 4);
  });

  it("in the configured conventions", async () => {
    const spans = await spansOf(
      async ({ post }) => {
        await (
          await post("/v1/completions", { prompt: "x", max_tokens: 1 }, { "x-tenant-id": "acme" })
        ).text();
      },
      { traceConventions: ["openinference", "traceai"] },
    );
    const values = spans[0]?.values;
    assert.equal(values?.get("fi.span.kind"), "LLM");
    assert.equal(values?.get("openinference.span.kind"), "LLM");
    assert.equal(values?.get("tenant_id"), "acme");
    assert.equal(typeof values?.get("llm.vllm.engine_version"), "string");
    assert.equal(values?.get("gen_ai.operation.name"), undefined);
  });

  it("serving goes on while the collector is down, and what is lost is counted", async () => {
    const server = createOctavoServer({
      model: new FakeLanguageModel(),
      config: { port: 0, otlpEndpoint: "http://127.0.0.1:9" },
      logger: pino({ level: "silent" }),
    });
    const { url } = await server.listen();
    for (let index = 0; index < 20; index++) {
      const response = await fetch(`${url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ prompt: "x", max_tokens: 1 }),
      });
      assert.equal(response.status, 200);
      await response.text();
    }
    const metrics = await (await fetch(`${url}/metrics`)).text();
    assert.match(metrics, /^octavo:trace_spans_total\{outcome="delivered"\} 0$/m);
    assert.match(metrics, /^octavo:trace_spans_waiting \d+$/m);
    await server.drain(50);
  });

  it("says nothing of traces when tracing is off", async () => {
    const server = createOctavoServer({
      model: new FakeLanguageModel(),
      config: { port: 0 },
      logger: pino({ level: "silent" }),
    });
    const { url } = await server.listen();
    const response = await fetch(`${url}/health`, { headers: { traceparent } });
    assert.equal(response.headers.get("traceresponse"), null);
    await response.text();
    await server.close();
  });
});

describe("tracing's configuration", () => {
  const bad: readonly Partial<ServerConfig>[] = [
    { otlpEndpoint: "localhost:4317" },
    { traceSampleRatio: 1.5 },
    { traceSampleRatio: Number.NaN },
    { traceConventions: [] },
    { otlpHeaders: { "bad name": "x" } },
    { otlpHeaders: { name: "two\nlines" } },
  ];
  for (const options of bad) {
    it(`refuses ${JSON.stringify(options)} by name`, () => {
      const [name = ""] = Object.keys(options);
      assert.throws(
        () => resolveServerConfig(options),
        (error) =>
          error instanceof OctavoError && error.param === name && error.message.startsWith(`${name}: `),
      );
    });
  }
});
