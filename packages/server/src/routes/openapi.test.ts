import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { endpointsWith } from "./endpoints.js";
import { startTestServer } from "../testing/test-server.js";

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly security?: readonly object[];
  readonly responses: { readonly 200: { readonly content: object } };
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: object } } };
}

const messages = [{ role: "user", content: "hi" }];
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];

/** Bodies that the server takes, and bodies that it refuses. */
const bodies: Readonly<
  Record<string, { readonly good: readonly object[]; readonly bad: readonly object[] }>
> = {
  "/v1/chat/completions": {
    good: [
      { messages },
      {
        messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
        tools,
        n: 2,
        stop: ["a"],
        seed: 1,
      },
      { messages, logit_bias: { "65": 5 }, tool_choice: "auto", stream_options: null },
    ],
    bad: [
      {},
      { messages: [] },
      { messages: "hi" },
      { messages: [{ role: "nobody", content: "x" }] },
      { messages, top_p: 0 },
    ],
  },
  "/v1/completions": {
    good: [{ prompt: "hi" }, { prompt: ["a", "b"] }, { prompt: [1, 2] }, { prompt: [[1], [2]], echo: true }],
    bad: [{}, { prompt: [] }, { prompt: [1.5] }, { prompt: "hi", max_tokens: -1 }],
  },
  "/v1/responses": {
    good: [{ input: "hi" }, { input: [{ role: "user", content: "hi" }], store: false }],
    bad: [{}, { input: [] }, { input: "hi", tools: [{ type: "web_search", name: "x" }] }],
  },
  "/v1/messages": {
    good: [{ messages, max_tokens: 5 }],
    bad: [{ messages }, { messages, max_tokens: 5, tools: [{ name: "x" }] }],
  },
  "/v1/embeddings": {
    good: [{ input: "hi" }, { input: [[1, 2]] }],
    bad: [{ input: [] }, { input: "hi", dimensions: 0 }],
  },
  "/rerank": {
    good: [{ query: "a", documents: ["b", { text: "c" }] }],
    bad: [{ query: "a", documents: [] }],
  },
  "/detokenize": { good: [{ tokens: [65] }], bad: [{ tokens: [-1] }] },
};

describe("the OpenAPI document", () => {
  it("describes bodies as the server takes them", async () => {
    await using server = await startTestServer();
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as Document;
    assert.equal(document.openapi, "3.1.0");
    const ajv = new Ajv2020({ strict: false });
    for (const [path, { good, bad }] of Object.entries(bodies)) {
      const schema = document.paths[path]?.["post"]?.requestBody?.content["application/json"].schema;
      assert.ok(schema !== undefined, path);
      const validate = ajv.compile(schema);
      for (const body of good) {
        assert.ok(validate(body), `${path} ${JSON.stringify(body)}: ${ajv.errorsText(validate.errors)}`);
        assert.equal((await server.post(path, body)).status, 200, JSON.stringify(body));
      }
      for (const body of bad) {
        assert.ok(!validate(body), `${path} ${JSON.stringify(body)}`);
        assert.equal((await server.post(path, body)).status, 400, JSON.stringify(body));
      }
    }
  });

  it("declares keys and the types of answers as the rows do", async () => {
    await using server = await startTestServer();
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as Document;
    for (const { method, path, access, answer } of endpointsWith({
      enableFaultInjection: false,
      replicaKey: undefined,
    })) {
      const operation = document.paths[path.replace("/*", "/{rest}")]?.[method.toLowerCase()];
      assert.equal(operation?.security !== undefined, access !== "public", path);
      assert.equal(
        "text/event-stream" in (operation?.responses[200].content ?? {}),
        answer === "json or events",
      );
    }
  });
});
