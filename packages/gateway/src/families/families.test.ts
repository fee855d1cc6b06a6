import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JsonFields } from "@octavo/protocol";
import { AnswerAssembler } from "../relay/answer-assembler.js";
import {
  anthropicAnswer,
  anthropicStream,
  geminiAnswer,
  geminiStream,
  toolRequest,
} from "../testing/published-answers.js";
import type { FamilyName } from "./families.js";
import { families } from "./families.js";
import type { WireCall } from "./family.js";

function callOf(fields: JsonFields, isStream = false): WireCall {
  return {
    operation: "chat",
    model: "target-model",
    isStream,
    fields,
    bytes: undefined,
    apiVersion: undefined,
    basePath: "/v1",
  };
}

function bodyOf(family: FamilyName, fields: JsonFields): JsonFields {
  return JSON.parse(families[family].request(callOf(fields)).body.toString());
}

/** A stream cut at every place in turn, put together. */
function assembled(family: FamilyName, bytes: Buffer, chunkLength: number): JsonFields {
  const reader = families[family].reader(callOf({}, true), { maxEventBytes: 1 << 20 });
  const assembler = new AnswerAssembler();
  for (let at = 0; at < bytes.length; at += chunkLength)
    for (const { json } of reader.push(bytes.subarray(at, at + chunkLength))) assembler.add(json);
  assert.equal(reader.isComplete, true);
  const { created: _, ...answer } = assembler.finish();
  return answer;
}

const message = (answer: JsonFields): JsonFields =>
  (answer["choices"] as JsonFields[])[0]?.["message"] as JsonFields;

describe("Anthropic's messages", () => {
  it("get roles that alternate, the system's text apart, tools, results and images as blocks", () => {
    assert.deepEqual(
      bodyOf("anthropic", { ...toolRequest, max_tokens: 100, temperature: 1.5, stop: "END" }),
      {
        model: "target-model",
        max_tokens: 100,
        system: "Be brief.",
        temperature: 1,
        stop_sequences: ["END"],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is in this picture, and how is the weather there?" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
            ],
          },
          {
            role: "assistant",
            content: [
              { type: "text", text: "Paris. Let me look." },
              { type: "tool_use", id: "call_1", name: "get_weather", input: { city: "Paris" } },
            ],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "call_1",
                content: [{ type: "text", text: '{"celsius":21}' }],
              },
              { type: "text", text: "In Fahrenheit, please." },
            ],
          },
        ],
        tools: [
          {
            name: "get_weather",
            description: "Weather of a city",
            input_schema: { type: "object", properties: { city: { type: "string" } } },
          },
        ],
        tool_choice: { type: "any" },
      },
    );
  });

  it("become an answer: text, thinking, calls, usage with cached tokens", () => {
    const answer = families.anthropic.answer(anthropicAnswer, callOf({}));
    assert.deepEqual(message(answer), {
      role: "assistant",
      content: "I'll check the weather.",
      refusal: null,
      reasoning_content: "The user wants the weather.",
      tool_calls: [
        {
          id: "toolu_01",
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Paris"}' },
        },
      ],
    });
    assert.deepEqual(answer["usage"], {
      prompt_tokens: 472 + 100 + 20,
      completion_tokens: 89,
      total_tokens: 681,
      prompt_tokens_details: { cached_tokens: 100 },
    });
    assert.equal((answer["choices"] as JsonFields[])[0]?.["finish_reason"], "tool_calls");
  });

  it("become the same chunks wherever the stream is cut", () => {
    const bytes = Buffer.from(anthropicStream);
    const whole = assembled("anthropic", bytes, bytes.length);
    assert.deepEqual(message(whole), {
      role: "assistant",
      content: "Okay, let's check the weather for San Francisco, CA:",
      refusal: null,
      tool_calls: [
        {
          id: "toolu_01T1x1fJ34qAmk2tNTrN7Up6",
          type: "function",
          function: {
            name: "get_weather",
            arguments: '{"location": "San Francisco, CA", "unit": "fahrenheit"}',
          },
        },
      ],
    });
    assert.deepEqual(whole["usage"], {
      prompt_tokens: 472,
      completion_tokens: 89,
      total_tokens: 561,
      prompt_tokens_details: { cached_tokens: 0 },
    });
    for (const length of [1, 7, 100]) assert.deepEqual(assembled("anthropic", bytes, length), whole);
  });

  it("refuse what they cannot say, by name", () => {
    for (const [param, fields] of [
      ["n", { n: 2 }],
      ["logprobs", { logprobs: true }],
      ["response_format", { response_format: { type: "json_object" } }],
    ] as const)
      assert.throws(() => bodyOf("anthropic", { ...toolRequest, ...fields }), {
        code: "unsupported_parameter",
        param,
      });
    assert.throws(() => bodyOf("anthropic", { messages: [{ role: "critic", content: "x" }] }), {
      param: "messages[0].role",
    });
    assert.throws(
      () => bodyOf("anthropic", { messages: [{ role: "user", content: [{ type: "input_audio" }] }] }),
      { param: "messages[0].content[0].type" },
    );
  });

  it("end with an error event's meaning", () => {
    const reader = families.anthropic.reader(callOf({}, true), { maxEventBytes: 1000 });
    assert.throws(
      () =>
        reader.push(
          Buffer.from(
            'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
          ),
        ),
      { code: "target_rate_limited", message: "Overloaded" },
    );
    assert.equal(
      families.anthropic.error({ type: "error", error: { type: "invalid_request_error", message: "no" } })
        .message,
      "no",
    );
  });
});

describe("Gemini's contents", () => {
  it("get roles of their own, functions by name, the system's instruction and settings", () => {
    const body = bodyOf("gemini", {
      ...toolRequest,
      max_tokens: 100,
      seed: 4,
      tool_choice: { type: "function", function: { name: "get_weather" } },
    });
    assert.deepEqual(body["contents"], [
      {
        role: "user",
        parts: [
          { text: "What is in this picture, and how is the weather there?" },
          { inlineData: { mimeType: "image/png", data: "aGk=" } },
        ],
      },
      {
        role: "model",
        parts: [
          { text: "Paris. Let me look." },
          { functionCall: { name: "get_weather", args: { city: "Paris" } } },
        ],
      },
      { role: "user", parts: [{ functionResponse: { name: "get_weather", response: { celsius: 21 } } }] },
      { role: "user", parts: [{ text: "In Fahrenheit, please." }] },
    ]);
    assert.deepEqual(body["systemInstruction"], { parts: [{ text: "Be brief." }] });
    assert.deepEqual(body["generationConfig"], { maxOutputTokens: 100, seed: 4 });
    assert.deepEqual(body["toolConfig"], {
      functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["get_weather"] },
    });
    assert.equal(
      families.gemini.request(callOf(toolRequest, true)).path,
      "/v1/models/target-model:streamGenerateContent?alt=sse",
    );
  });

  it("become answers, thoughts and their tokens apart", () => {
    const answer = families.gemini.answer(geminiAnswer, callOf({}));
    assert.deepEqual(message(answer), {
      role: "assistant",
      content: null,
      refusal: null,
      reasoning_content: "A call is needed.",
      tool_calls: [
        {
          id: "call_abc_0",
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Paris"}' },
        },
      ],
    });
    assert.deepEqual(answer["usage"], {
      prompt_tokens: 40,
      completion_tokens: 25,
      total_tokens: 65,
      prompt_tokens_details: { cached_tokens: 16 },
      completion_tokens_details: { reasoning_tokens: 15 },
    });
  });

  it("become the same chunks wherever the stream is cut", () => {
    const bytes = Buffer.from(geminiStream);
    const whole = assembled("gemini", bytes, bytes.length);
    assert.deepEqual(message(whole), { role: "assistant", content: "Hello there, world.", refusal: null });
    assert.equal((whole["choices"] as JsonFields[])[0]?.["finish_reason"], "length");
    for (const length of [1, 13]) assert.deepEqual(assembled("gemini", bytes, length), whole);
  });

  it("say so where the prompt was blocked", () => {
    const answer = families.gemini.answer({ promptFeedback: { blockReason: "SAFETY" } }, callOf({}));
    assert.equal((answer["choices"] as JsonFields[])[0]?.["finish_reason"], "content_filter");
  });
});

describe("OpenAI's format", () => {
  const request = (text: string): string => {
    const bytes = Buffer.from(text);
    const fields = JSON.parse(text) as JsonFields;
    return families.openai.request({ ...callOf(fields), bytes }).body.toString();
  };

  it("goes out as it came, but for the model's name", () => {
    const same = '{ "model":"target-model",  "messages":[] }';
    assert.equal(request(same), same);
    assert.equal(
      request('{ "messages":[],  "model" : "alias" , "x":1.0}'),
      '{ "messages":[],  "model" : "target-model" , "x":1.0}',
    );
  });

  it("is rewritten where another field could be taken for the model's name", () => {
    for (const text of [
      '{"metadata":{"model":"alias"},"model":"alias"}',
      '{"messages":[{"role":"user","content":"\\"model\\":\\"alias\\""}],"model":"alias"}',
      '{"model":"first","model":"alias"}',
      '{"mod\\u0065l":"alias"}',
    ]) {
      const { model: _, ...rest } = JSON.parse(text);
      assert.deepEqual(JSON.parse(request(text)), { ...rest, model: "target-model" }, text);
    }
  });

  it("of Azure has the deployment in its path", () => {
    const wire = families.azure.request({
      ...callOf({ model: "m" }),
      basePath: "/openai/deployments",
      apiVersion: "2025-01-01",
    });
    assert.equal(wire.path, "/openai/deployments/target-model/chat/completions?api-version=2025-01-01");
  });
});
