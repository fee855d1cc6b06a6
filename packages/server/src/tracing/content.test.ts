import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CapturedContent, LlmSpan, SpanSink } from "@octavo/tracing";
import { pino } from "pino";
import { createServer } from "../create-server.js";
import type { ServerConfig } from "../config.js";
import { FakeLanguageModel, type FakeModelOptions } from "../testing/fake-language-model.js";

type Post = (path: string, body: unknown, headers?: Readonly<Record<string, string>>) => Promise<string>;

/** The spans of a server that `act` talked to. */
async function spansOf(
  act: (post: Post) => Promise<unknown>,
  config: Partial<ServerConfig>,
  model: FakeModelOptions = {},
): Promise<readonly LlmSpan[]> {
  const spans: LlmSpan[] = [];
  const sink: SpanSink = {
    add: (span) => void spans.push(span),
    flush: async () => {},
    close: async () => {},
    counts: { delivered: 0, droppedFull: 0, droppedFailed: 0, waiting: 0 },
  };
  const server = createServer({
    model: new FakeLanguageModel(model),
    config: { port: 0, ...config },
    logger: pino({ level: "silent" }),
    spanSinks: [sink],
  });
  const { url } = await server.listen();
  try {
    await act(async (path, body, headers = {}) => {
      const init = {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      };
      return (await fetch(url + path, init)).text();
    });
  } finally {
    await server.drain(1000);
  }
  return spans;
}

const system = { role: "system", content: "Be brief." };
const user = { role: "user", content: "Write to ada@example.com" };
const chat = { messages: [system, user], max_tokens: 64 };
const text = "I wrote to ada@example.com";
const answer: FakeModelOptions = { reply: () => text };

function texts({ inputMessages, outputMessages, prompts }: CapturedContent): readonly (readonly string[])[] {
  const of = (messages: typeof inputMessages): string[] =>
    messages.flatMap(({ parts }) => parts.map((part) => ("content" in part ? part.content : part.type)));
  return [[...of(inputMessages), ...prompts], of(outputMessages)];
}

describe("content on spans", () => {
  it("is not there unless it was asked for", async () => {
    const spans = await spansOf((post) => post("/v1/chat/completions", chat), {}, answer);
    assert.deepEqual([spans.length, spans[0]?.content], [1, undefined]);
  });

  it("is the same for every endpoint, streamed or not", async () => {
    const spans = await spansOf(
      async (post) => {
        for (const stream of [false, true]) {
          await post("/v1/chat/completions", { ...chat, stream });
          await post("/v1/responses", { instructions: system.content, input: user.content, stream });
          await post("/v1/messages", {
            model: "octavo-mini",
            system: system.content,
            messages: [user],
            max_tokens: 64,
            stream,
          });
          await post("/v1/completions", { prompt: user.content, max_tokens: 64, stream });
        }
      },
      { traceContent: "full", servedModelNames: ["octavo-mini"] },
      answer,
    );
    assert.equal(spans.length, 8);
    for (const { content, operation, context } of spans) {
      assert.ok(content);
      assert.deepEqual(texts(content), [[user.content], [text]]);
      assert.equal(content.outputMessages[0]?.finishReason, "stop");
      if (operation === "chat")
        assert.deepEqual(content.systemInstructions, [{ type: "text", content: "Be brief." }]);
      assert.equal(context.ownerId, "anyone");
    }
  });

  it("has every choice, and every prompt of a completion", async () => {
    const spans = await spansOf(
      async (post) => {
        await post("/v1/chat/completions", { ...chat, n: 2 });
        await post("/v1/completions", { prompt: ["one", "two"], max_tokens: 64 });
      },
      { traceContent: "full" },
      answer,
    );
    assert.deepEqual(texts(spans[0]!.content!)[1], [text, text]);
    assert.deepEqual(texts(spans[1]!.content!)[0], ["one", "two"]);
  });

  it("can be redacted and is cut", async () => {
    const config: Partial<ServerConfig> = { traceContent: "redacted", traceContentMaxCharacters: 40 };
    const tools = [
      { type: "function", function: { name: "f", description: "ask ada@example.com", parameters: {} } },
    ];
    const [short, cut, tooled] = await spansOf(
      async (post) => {
        await post("/v1/chat/completions", { messages: [user], max_tokens: 64 });
        await post("/v1/completions", {
          prompt: `${"x".repeat(30)} ada@example.com ${"y".repeat(99)}`,
          max_tokens: 1,
        });
        await post("/v1/chat/completions", {
          messages: [{ role: "user", content: "a" }],
          tools,
          max_tokens: 1,
        });
      },
      config,
      answer,
    );
    assert.deepEqual(texts(short!.content!), [["Write to [email]"], ["I wrote to [email]"]]);
    // the address is replaced before the text is cut, so that no half of it is left
    assert.deepEqual(texts(cut!.content!)[0], [`${"x".repeat(30)} [email] y…`]);
    assert.doesNotMatch(JSON.stringify(tooled!.content), /ada/);
  });

  it("is kept of the named tenants and the sampled traces only", async () => {
    const ask = (post: Post, tenant?: string): Promise<string> =>
      post("/v1/chat/completions", chat, tenant === undefined ? {} : { "x-tenant-id": tenant });
    const spans = await spansOf(
      async (post) => {
        for (const tenant of ["acme", "other", undefined]) await ask(post, tenant);
      },
      { traceContent: "full", traceContentTenants: ["acme", "default"] },
    );
    assert.deepEqual(
      spans.map(({ content, context }) => [context.ownerId, content !== undefined]),
      [
        ["tenant acme", true],
        ["tenant other", false],
        ["anyone", true],
      ],
    );
    const sampled = await spansOf(
      async (post) => {
        for (let index = 0; index < 40; index++) await ask(post);
      },
      { traceContent: "full", traceContentSampleRatio: 0.5 },
    );
    const kept = sampled.filter(({ content }) => content !== undefined);
    assert.equal(sampled.length, 40);
    assert.ok(kept.length > 2 && kept.length < 38, `${kept.length} of 40`);
    for (const { identity, content } of sampled)
      assert.equal(content !== undefined, Number.parseInt(identity.traceId.slice(24), 16) < 2 ** 31);
  });

  it("is refused where spans go nowhere", () => {
    assert.throws(() => createServer({ model: new FakeLanguageModel(), config: { traceContent: "full" } }), {
      code: "invalid_option",
      param: "traceContent",
    });
  });
});
