import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { z } from "zod";
import { fieldsWithEffect, parseWith } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { Service } from "../service.js";
import { startTestServer } from "../testing/test-server.js";
import { vllmFields } from "../testing/vllm-fields.js";
import { endpointsWith } from "./endpoints.js";

const resolve = createRequire(import.meta.url).resolve;

/** Names of the fields of an interface in a package's declarations. */
function declaredFields(packageName: string, file: string, name: string): readonly string[] {
  const root = dirname(resolve(packageName));
  const text = readFileSync(join(root, "resources", `${file}.d.ts`), "utf8");
  const body =
    new RegExp(`interface ${name}(?: extends [^{]*)? \\{\\n([\\s\\S]*?)\\n\\}`).exec(text)?.[1] ?? "";
  const fields = [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, field = ""]) => field);
  assert.ok(fields.length > 0, `${name} in ${packageName}`);
  return fields;
}

const anthropic = "@anthropic-ai/sdk";

/** Beta features are chosen in a header: the package moves this field there. */
const headerFields = ["betas"];

const clientFields: Readonly<Record<string, readonly string[]>> = {
  "/v1/chat/completions": declaredFields(
    "openai",
    "chat/completions/completions",
    "ChatCompletionCreateParamsBase",
  ),
  "/v1/completions": declaredFields("openai", "completions", "CompletionCreateParamsBase"),
  "/v1/responses": declaredFields("openai", "responses/responses", "ResponseCreateParamsBase"),
  "/v1/embeddings": declaredFields("openai", "embeddings", "EmbeddingCreateParams"),
  "/v1/messages": [
    ...declaredFields(anthropic, "messages/messages", "MessageCreateParamsBase"),
    ...declaredFields(anthropic, "beta/messages/messages", "MessageCreateParamsBase"),
  ],
  "/v1/messages/count_tokens": [
    ...declaredFields(anthropic, "messages/messages", "MessageCountTokensParams"),
    ...declaredFields(anthropic, "beta/messages/messages", "MessageCountTokensParams"),
  ],
};

const endpoints = endpointsWith({ enableFaultInjection: false, replicaKey: undefined });

function schemaOf(path: string): z.ZodObject {
  const schema = endpoints.find((row) => row.path === path && row.method === "POST")?.request;
  assert.ok(schema instanceof z.ZodObject, path);
  return schema;
}

describe("fields of requests", () => {
  it("knows every field of OpenAI's, Anthropic's and vLLM's requests", () => {
    for (const source of [clientFields, vllmFields]) {
      for (const [path, fields] of Object.entries(source)) {
        const known = new Set([...Object.keys(schemaOf(path).shape), ...headerFields]);
        assert.deepEqual(
          fields.filter((field) => !known.has(field)),
          [],
          path,
        );
      }
    }
  });

  it("names fields that nobody knows in a header, at any depth", async () => {
    await using server = await startTestServer();
    const messages = [{ role: "user", content: [{ type: "text", text: "hi", colour: 1 }], mood: null }];
    const answer = await server.post("/v1/chat/completions", {
      messages,
      "naïve\r\nfield": 1,
      response_format: { type: "text", pace: 2 },
      tools: [{ type: "function", function: { name: "f" }, strange: true }],
    });
    assert.equal(answer.status, 200);
    assert.equal(
      answer.headers.get("x-octavo-warnings"),
      "unknown fields without effect: messages[0].content[0].colour, na?ve??field, response_format.pace",
    );
    const plain = await server.post("/v1/chat/completions", { messages: [{ role: "user", content: "hi" }] });
    assert.equal(plain.headers.get("x-octavo-warnings"), null);
  });

  it("reads every field that is neither refused nor without effect", async (context) => {
    const read = new Set<PropertyKey>();
    context.mock.method(
      Service.prototype,
      "readRequest",
      async (exchange: RequestContext, schema: z.ZodObject): Promise<object> => {
        const get = (target: object, name: PropertyKey): unknown => {
          read.add(name);
          return Reflect.get(target, name);
        };
        // a copy is handed on whole: chat's own row answers for what becomes of it
        const ownKeys = (target: object): ArrayLike<string | symbol> => {
          for (const name of Object.keys(schema.shape)) read.add(name);
          return Reflect.ownKeys(target);
        };
        return new Proxy(parseWith(schema, await exchange.readBody()), { get, ownKeys });
      },
    );
    await using server = await startTestServer({ trustRequestChatTemplate: true });
    for (const [path, bodies] of Object.entries(fullBodies)) {
      read.clear();
      // read before the handler is called
      read.add("metadata");
      for (const body of bodies) {
        const answer = await server.post(path, body);
        assert.equal(answer.status, 200, `${path}: ${await answer.text()}`);
      }
      const schema = schemaOf(path);
      const excused = new Set(
        ["refused", "none"].flatMap((effect) => fieldsWithEffect(schema, effect as "none")),
      );
      const unread = Object.keys(schema.shape).filter((name) => !read.has(name) && !excused.has(name));
      assert.deepEqual(unread, [], path);
    }
  });

  it("hands every way of asking for structure to the engine", async () => {
    await using server = await startTestServer();
    const schema = { type: "object" };
    const format = { type: "json_schema", schema };
    const wire = { type: "json_schema", json_schema: { name: "x", schema } };
    const bodies: readonly (readonly [string, object])[] = [
      ["/v1/chat/completions", { messages, response_format: wire }],
      ["/v1/chat/completions/batch", { messages: [messages], response_format: wire }],
      ["/v1/completions", { prompt: "hi", response_format: wire }],
      ["/v1/responses", { input: "hi", text: { format: { ...format, name: "x" } } }],
      ["/v1/responses", { input: "hi", structured_outputs: { json: schema } }],
      ["/v1/messages", { messages, max_tokens: 5, output_config: { format } }],
      ["/v1/messages", { messages, max_tokens: 5, output_format: format }],
    ];
    for (const [path, body] of bodies) {
      assert.equal((await server.post(path, body)).status, 200, path);
      assert.ok(server.model.engine.requests.at(-1)?.grammar !== undefined, JSON.stringify(body));
    }
    const bad = { type: "json_schema", schema: { type: "nothing" } };
    for (const [param, fields] of [
      ["output_config.format.schema", { output_config: { format: bad } }],
      ["output_format.schema", { output_format: bad }],
    ] as const) {
      const refused = await server.post("/v1/messages", { messages, max_tokens: 5, ...fields });
      assert.equal(refused.status, 400);
      assert.ok((await refused.text()).includes(param), param);
    }
  });

  it("refuses them where the server is strict", async () => {
    await using server = await startTestServer({ strictRequests: true });
    for (const row of endpoints.filter(({ request }) => request !== undefined)) {
      const body = minimalBodies[row.path];
      if (body === undefined) continue;
      const taken = await server.post(row.path, body);
      assert.equal(taken.status, 200, `${row.path}: ${await taken.text()}`);
      const refused = await server.post(row.path, { ...body, colour: "red" });
      assert.equal(refused.status, 400, row.path);
      assert.match(await refused.text(), /colour: this server knows no such field/);
    }
  });
});

const messages = [{ role: "user", content: "hi" }];

const minimalBodies: Readonly<Record<string, object>> = {
  "/v1/chat/completions": { messages },
  "/v1/chat/completions/batch": { messages: [messages] },
  "/v1/completions": { prompt: "hi" },
  "/v1/responses": { input: "hi" },
  "/v1/messages": { messages, max_tokens: 5 },
  "/v1/messages/count_tokens": { messages },
  "/v1/embeddings": { input: "hi" },
  "/pooling": { input: "hi" },
  "/score": { text_1: "a", text_2: "b" },
  "/rerank": { query: "a", documents: ["b"] },
  "/tokenize": { prompt: "hi" },
  "/detokenize": { tokens: [65] },
};

const tools = [{ type: "function", function: { name: "f" } }];
const asked = { type: "function", function: { name: "f" } };
const schema = { type: "object" };

/** Bodies whose answers need every field of the request. */
const fullBodies: Readonly<Record<string, readonly object[]>> = {
  "/v1/chat/completions": [
    { messages, tools, tool_choice: asked, logprobs: true, chat_template: "{{ messages[0].content }}" },
    { messages, stream: true, stream_options: { include_usage: true } },
  ],
  "/v1/chat/completions/batch": [{ messages: [messages] }],
  "/v1/completions": [
    { prompt: "hi", logprobs: 1 },
    { prompt: "hi", stream: true },
  ],
  "/v1/responses": [{ input: "hi" }, { input: "hi", stream: true }],
  "/v1/messages": [{ messages, max_tokens: 5 }],
  "/v1/messages/count_tokens": [
    { messages },
    { messages, output_config: { format: { type: "json_schema", schema } } },
  ],
  "/v1/embeddings": [{ input: "hi", encoding_format: "base64" }, { messages }],
  "/pooling": [{ input: "hi", encoding_format: "base64" }, { messages }],
  "/score": [{ text_1: "a", text_2: "b" }],
  "/rerank": [{ query: "a", documents: ["b"] }],
  "/tokenize": [{ prompt: "hi" }, { messages }],
  "/detokenize": [{ tokens: [65] }],
};
