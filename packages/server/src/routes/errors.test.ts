import assert from "node:assert/strict";
import { describe, it } from "node:test";
import OpenAI, { AuthenticationError } from "openai";
import { bodyOf, RawSocket } from "../testing/raw-socket.js";
import { startTestServer } from "../testing/test-server.js";

const messages = [{ role: "user", content: "hi" }];

const schemaFormat = (schema: object): object => ({
  type: "json_schema",
  json_schema: { name: "s", schema },
});

interface ErrorAnswer {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: number;
  };
}

describe("bad parameters", () => {
  const cases: readonly (readonly [
    name: string,
    body: object,
    param: string | null,
    message: RegExp,
    code?: string,
  ])[] = [
    ["n of zero", { messages, n: 0 }, "n", />=1, got 0/],
    ["n below zero", { messages, n: -3 }, "n", />=1, got -3/],
    ["a huge n", { messages, n: 1e9 }, "n", /<=128, got 1000000000/],
    ["a broken n", { messages, n: 1.5 }, "n", /int, got 1\.5/],
    ["an infinite temperature", { messages, temperature: "NaN" }, "temperature", /number, got "NaN"/],
    ["a negative temperature", { messages, temperature: -1 }, "temperature", />=0, got -1/],
    ["top_p of zero", { messages, top_p: 0 }, "top_p", />0, got 0/],
    [
      "a stop list of 10,000",
      { messages, stop: Array.from({ length: 10_000 }, () => "x") },
      "stop",
      /<=64 items, got an array of 10000/,
    ],
    ["an endless stop string", { messages, stop: "x".repeat(5000) }, "stop", /<=1024 characters/],
    ["an empty stop string", { messages, stop: [""] }, "stop[0]", />=1 characters/],
    ["no messages", {}, "messages", /expected array, got nothing/],
    ["empty messages", { messages: [] }, "messages", /1 to 16384 entries, got 0/],
    [
      "an unknown role",
      { messages: [{ role: "boss", content: "x" }] },
      "messages[0].role",
      /"system"\|"developer".*got "boss"/,
    ],
    [
      "a message without content",
      { messages: [{ role: "user" }] },
      "messages[0].content",
      /a user message needs content/,
    ],
    [
      "content of a wrong type",
      { messages: [{ role: "user", content: 5 }] },
      "messages[0].content",
      /string or array, got 5/,
    ],
    [
      "an image",
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "a" },
              { type: "image_url", image_url: { url: "x" } },
            ],
          },
        ],
      },
      "messages[0].content[1].type",
      /"image_url" are not supported/,
      "unsupported_parameter",
    ],
    [
      "arguments that are no JSON",
      { messages: [{ role: "assistant", tool_calls: [{ function: { name: "f", arguments: "{" } }] }] },
      "messages[0].tool_calls[0].function.arguments",
      /not valid JSON/,
    ],
    [
      "a token id beyond the vocabulary",
      { messages, stop_token_ids: [261] },
      "stop_token_ids[0]",
      /vocabulary \(0 to 260\), not 261/,
    ],
    [
      "a biased token beyond the vocabulary",
      { messages, logit_bias: { "100000": 1 } },
      "logit_bias[100000]",
      /vocabulary \(0 to 260\)/,
    ],
    ["a bias key that is no id", { messages, logit_bias: { abc: 1 } }, "logit_bias", /token ids, got "abc"/],
    ["a bias out of range", { messages, logit_bias: { "1": 101 } }, "logit_bias.1", /<=100, got 101/],
    [
      "min_tokens above max_tokens",
      { messages, min_tokens: 5, max_tokens: 2 },
      "min_tokens",
      /at most max_tokens \(2\)/,
    ],
    ["max_tokens of zero", { messages, max_tokens: 0 }, "max_tokens", />=1, got 0/],
    ["too many logprobs", { messages, logprobs: true, top_logprobs: 21 }, "top_logprobs", /at most 20/],
    ["top_logprobs alone", { messages, top_logprobs: 2 }, "top_logprobs", /needs logprobs/],
    [
      "the whole vocabulary's logprobs",
      { messages, logprobs: true, top_logprobs: -1 },
      "top_logprobs",
      /--max-logprobs -1/,
    ],
    [
      "prompt logprobs in a stream",
      { messages, stream: true, prompt_logprobs: 1 },
      "prompt_logprobs",
      /stream/,
    ],
    [
      "stream options without a stream",
      { messages, stream_options: { include_usage: true } },
      "stream_options",
      /stream to true/,
    ],
    ["a salt with a slash", { messages, cache_salt: "a/b" }, "cache_salt", /must not contain/],
    ["a priority without the policy", { messages, priority: 1 }, "priority", /--scheduling-policy priority/],
    [
      "a reserved template variable",
      { messages, chat_template_kwargs: { messages: [] } },
      "chat_template_kwargs.messages",
      /set by the server/,
    ],
    [
      "a length penalty",
      { messages, length_penalty: 0.5 },
      "length_penalty",
      /beam search/,
      "unsupported_parameter",
    ],
    [
      "engine arguments",
      { messages, vllm_xargs: { a: 1 } },
      "vllm_xargs",
      /no engine arguments/,
      "unsupported_parameter",
    ],
    ["an interval of 0", { messages, stream: true, stream_interval: 0 }, "stream_interval", />=1/],
    [
      "both ways to end the prompt",
      { messages, continue_final_message: true, add_generation_prompt: true },
      "continue_final_message",
      /exclude each other/,
    ],
    [
      "an unknown kind of format",
      { messages, response_format: { type: "yaml" } },
      "response_format.type",
      /"json_schema"/,
    ],
    [
      "a schema with a keyword that is not supported",
      {
        messages,
        response_format: schemaFormat({ properties: { a: { type: "array", uniqueItems: true } } }),
      },
      "response_format.json_schema.schema",
      /#\/properties\/a\/uniqueItems is supported for items/,
    ],
    [
      "a schema that nothing satisfies",
      { messages, guided_json: { type: "integer", minimum: 5, maximum: 4 } },
      "guided_json",
      /No text can satisfy/,
    ],
    [
      "a schema in a string that is no JSON",
      { messages, structured_outputs: { json: "{" } },
      "structured_outputs.json",
      /not JSON/,
    ],
    [
      "a pattern that refers back",
      { messages, structured_outputs: { regex: "(a)\\1" } },
      "structured_outputs.regex",
      /refers back to a group/,
    ],
    ["a grammar without its start", { messages, guided_grammar: "x ::= 1" }, "guided_grammar", /line 1/],
    [
      "a structural tag that no trigger begins",
      {
        messages,
        response_format: {
          type: "structural_tag",
          structures: [{ begin: "<a>", end: "" }],
          triggers: ["<b"],
        },
      },
      "response_format",
      /starts with no trigger/,
    ],
    [
      "two constraints",
      { messages, guided_regex: "a", structured_outputs: { choice: ["a"] } },
      "guided_regex",
      /already constrained by structured_outputs.choice/,
    ],
    [
      "no constraint where one is announced",
      { messages, structured_outputs: {} },
      "structured_outputs",
      /needs one of/,
    ],
    [
      "a required tool without tools",
      { messages, tool_choice: "required" },
      "tool_choice",
      /none are given/,
      "invalid_request",
    ],
    [
      "a strict tool, left to the model, whose calls cannot be told from text",
      { messages, tools: [{ type: "function", function: { name: "f", strict: true } }] },
      "tools[0].function.strict",
      /set tool_choice to required/,
      "unsupported_parameter",
    ],
    [
      "beam search",
      { messages, use_beam_search: true },
      "use_beam_search",
      /not supported/,
      "unsupported_parameter",
    ],
    ["a body that is no object", [1], null, /the request body: .*object, got an array of 1/],
  ];
  for (const [name, body, param, message, code = "invalid_request"] of cases) {
    it(`refuses ${name}`, async () => {
      await using server = await startTestServer();
      const response = await server.post("/v1/chat/completions", body);
      const { error } = (await response.json()) as ErrorAnswer;
      assert.equal(response.status, 400);
      assert.match(error.message, message);
      assert.ok(error.message.length < 500);
      assert.deepEqual({ ...error, message: "" }, { message: "", type: "BadRequestError", param, code: 400 });
      assert.equal(response.headers.get("x-octavo-error-code"), code);
      assert.equal(server.model.engine.requests.length, 0);
    });
  }

  it("accepts unknown fields and nulls, as vLLM does", async () => {
    await using server = await startTestServer();
    const body = {
      messages,
      totally_new_field: { a: 1 },
      temperature: null,
      tools: null,
      tool_choice: null,
      stream_options: null,
      user: null,
    };
    assert.equal((await server.post("/v1/chat/completions", body)).status, 200);
  });

  it("refuses to keep more logprobs than memory should hold, however many tokens come", async () => {
    await using server = await startTestServer({ maxLogprobs: -1 }, { maxModelLen: 131_072 });
    const wide = { prompt: [1, 2, 3], logprobs: 20, n: 128, max_tokens: 100_000 };
    const long = { prompt: Array.from({ length: 100_000 }, () => 65), prompt_logprobs: -1, max_tokens: 1 };
    for (const [body, param] of [
      [wide, "max_tokens"],
      [long, "prompt_logprobs"],
    ] as const) {
      const response = await server.post("/v1/completions", body);
      assert.equal(response.status, 400);
      const { error } = (await response.json()) as { error: { param: string; message: string } };
      assert.equal(error.param, param);
      assert.match(error.message, /could hold \d+ logprobs, and at most 16777216/);
    }
    assert.equal(server.model.engine.requests.length, 0);
    assert.equal((await server.post("/v1/completions", { ...wide, n: 4, max_tokens: 3 })).status, 200);
  });

  it("keeps prototypes out of reach", async () => {
    await using server = await startTestServer();
    const body = `{"messages":[{"role":"user","content":"x","__proto__":{"role":"system"}}],"__proto__":{"n":5},"chat_template_kwargs":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}`;
    assert.equal((await server.post("/v1/chat/completions", body)).status, 200);
    assert.equal(server.model.engine.requests[0]?.params.n, 1);
    assert.equal(server.model.rendered[0]?.messages[0]?.role, "user");
    assert.equal("polluted" in {}, false);
    const { variables = {} } = server.model.rendered[0] ?? {};
    assert.equal("polluted" in variables, false);
    const bias = `{"messages":[{"role":"user","content":"x"}],"logit_bias":{"__proto__":{"x":1}}}`;
    assert.equal((await server.post("/v1/chat/completions", bias)).status, 400);
  });
});

describe("bad requests", () => {
  it("says where JSON is broken", async () => {
    await using server = await startTestServer();
    const cases = [
      ['{"messages": [,]}', /line 1, column 15 \(offset 14\): expected a value or ']', found ","/],
      ['{\n  "a": NaN\n}', /line 2, column 8 \(offset 9\): expected a value, found "N"/],
      ['{"a": 1', /line 1, column 8 .*expected ',' or the end/],
      ["", /body is empty/],
      ["{}{}", /expected nothing after the value/],
    ] as const;
    for (const [body, message] of cases) {
      const response = await server.post("/v1/chat/completions", body);
      assert.equal(response.status, 400);
      assert.equal(response.headers.get("x-octavo-error-code"), "invalid_json");
      assert.match(((await response.json()) as ErrorAnswer).error.message, message);
    }
  });

  it("refuses deep nesting before it parses", async () => {
    await using server = await startTestServer();
    const response = await server.post("/v1/chat/completions", `{"messages":${"[".repeat(100_000)}`);
    assert.equal(response.status, 400);
    assert.match(await response.text(), /nests deeper than 128 levels/);
  });

  it("takes a body of many megabytes", async () => {
    await using server = await startTestServer({}, { maxModelLen: 10_000_000 });
    const prompt = "é".repeat(2_000_000);
    const response = await server.post("/v1/completions", { prompt });
    assert.equal(response.status, 200);
    assert.equal(server.model.engine.requests[0]?.promptTokens.length, 4_000_001);
  });

  it("answers wrong paths, methods and content types", async () => {
    await using server = await startTestServer();
    const missing = await fetch(`${server.url}/v2/nothing`);
    assert.equal(missing.status, 404);
    assert.equal(((await missing.json()) as ErrorAnswer).error.type, "NotFoundError");
    const method = await fetch(`${server.url}/v1/chat/completions`);
    assert.equal(method.status, 405);
    assert.equal(method.headers.get("allow"), "POST, OPTIONS");
    const type = await server.post("/v1/chat/completions", "{}", { "content-type": "text/plain" });
    assert.equal(type.status, 415);
    const charset = await server.post("/v1/chat/completions", "{}", {
      "content-type": "application/json; charset=latin1",
    });
    assert.equal(charset.status, 415);
    const gzip = await server.post("/v1/chat/completions", "{}", { "content-encoding": "gzip" });
    assert.equal(gzip.status, 415);
    const slash = await fetch(`${server.url}/v1/models/`);
    assert.equal(slash.status, 200, "a trailing slash is forgiven");
    const head = await fetch(`${server.url}/v1/models`, { method: "HEAD" });
    assert.equal(head.status, 200);
  });

  it("keeps a connection after an error that came with a small body", async () => {
    await using server = await startTestServer();
    using socket = await RawSocket.open(server.port);
    socket.send("POST /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabcde");
    await socket.until((received) => received.includes("404 Not Found"));
    socket.send("GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert.match(await socket.untilClosed(), /HTTP\/1\.1 200 OK/);
  });
});

describe("API keys", () => {
  const apiKeys = ["first-key", "second-key"];

  it("open the protected paths with any of them, and nothing else does", async () => {
    await using server = await startTestServer({ apiKeys });
    const paths = [
      "/v1/chat/completions",
      "/v1/completions",
      "/v1/embeddings",
      "/tokenize",
      "/detokenize",
      "/v1/unknown",
    ];
    for (const path of paths) {
      for (const headers of [
        {},
        { authorization: "Bearer wrong" },
        { authorization: "Bearer " },
        { authorization: "first-key" },
      ]) {
        const response = await server.post(path, "not even json", headers);
        assert.equal(response.status, 401, path);
        assert.equal(response.headers.get("www-authenticate"), 'Bearer realm="octavo"');
        await response.json();
      }
    }
    for (const apiKey of apiKeys) {
      const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 });
      assert.equal((await client.models.list()).data.length, 1);
    }
    const wrong = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "first-kez", maxRetries: 0 });
    await assert.rejects(wrong.models.list(), AuthenticationError);
  });

  it("are not asked for by probes and scrapes", async () => {
    await using server = await startTestServer({ apiKeys });
    for (const path of ["/health", "/ping", "/version", "/load", "/metrics"]) {
      const response = await fetch(server.url + path);
      assert.equal(response.status, 200, path);
      await response.text();
    }
  });
});

describe("request ids", () => {
  it("are echoed when plain, made when not, and never meet inside the engine", async () => {
    await using server = await startTestServer();
    const first = await server.post("/v1/completions", { prompt: "a" }, { "x-request-id": "abc-1" });
    const second = await server.post("/v1/completions", { prompt: "a" }, { "x-request-id": "abc-1" });
    assert.equal(first.headers.get("x-request-id"), "abc-1");
    assert.equal(second.headers.get("x-request-id"), "abc-1");
    const ids = server.model.engine.requests.map((request) => request.requestId);
    assert.equal(new Set([...ids, "abc-1"]).size, 3);
    for (const strange of ["x".repeat(129), "a b", "a\u00e9"]) {
      const response = await server.post("/v1/completions", { prompt: "a" }, { "x-request-id": strange });
      assert.match(response.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
    }
    const named = (await (
      await server.post("/v1/completions", { prompt: "a", request_id: "mine" })
    ).json()) as { id: string };
    assert.equal(named.id, "cmpl-mine");
  });
});

describe("CORS", () => {
  const origin = "https://app.example";

  it("is silent without origins, and OPTIONS still answers", async () => {
    await using server = await startTestServer();
    const response = await fetch(`${server.url}/v1/models`, { method: "OPTIONS", headers: { origin } });
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("allow"), "GET, HEAD, OPTIONS");
    assert.equal(response.headers.get("access-control-allow-origin"), null);
    assert.equal((await fetch(`${server.url}/nothing`, { method: "OPTIONS" })).status, 404);
    using socket = await RawSocket.open(server.port);
    socket.send("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert.match(await socket.untilClosed(), /^HTTP\/1\.1 204 /);
  });

  it("answers preflights of allowed origins without a key", async () => {
    await using server = await startTestServer({ corsOrigins: [origin], apiKeys: ["k"] });
    const preflight = {
      method: "OPTIONS",
      headers: { origin, "access-control-request-headers": "authorization, content-type" },
    };
    const response = await fetch(`${server.url}/v1/chat/completions`, preflight);
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("access-control-allow-origin"), origin);
    assert.equal(response.headers.get("access-control-allow-headers"), "authorization, content-type");
    assert.equal(response.headers.get("access-control-allow-methods"), "POST, OPTIONS");
    const other = await fetch(`${server.url}/health`, { headers: { origin: "https://evil.example" } });
    assert.equal(other.headers.get("access-control-allow-origin"), null);
    assert.equal(other.headers.get("vary"), "origin");
  });

  it("answers any origin with a star", async () => {
    await using server = await startTestServer({ corsOrigins: ["*"] });
    const response = await fetch(`${server.url}/health`, { headers: { origin } });
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
  });
});

describe("errors by hand", () => {
  it("have the same shape as the others", async () => {
    await using server = await startTestServer();
    using socket = await RawSocket.open(server.port);
    socket.send("nonsense\r\n\r\n");
    const answer = await socket.untilClosed();
    assert.deepEqual(bodyOf(answer), {
      error: {
        message: "the request is not valid HTTP/1.1",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
    });
  });
});
