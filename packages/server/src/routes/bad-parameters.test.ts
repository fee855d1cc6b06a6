import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ErrorAnswer } from "../testing/error-answer.js";
import { startTestServer } from "../testing/test-server.js";

const messages = [{ role: "user", content: "hi" }];

const schemaFormat = (schema: object): object => ({
  type: "json_schema",
  json_schema: { name: "s", schema },
});

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
      /this model reads text only/,
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
