import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { JsonFields } from "@octavo/protocol";
import { AnswerAssembler } from "../relay/answer-assembler.js";
import { parseAwsKey, signAws } from "../targets/sigv4.js";
import { toolRequest } from "../testing/published-answers.js";
import { bedrockFamily } from "./bedrock.js";
import type { WireCall } from "./family.js";

/** Bytes that the AWS SDK's own encoder made. */
const fixture = JSON.parse(
  readFileSync(new URL("../../fixtures/bedrock-converse-stream.json", import.meta.url), "utf8"),
) as { readonly stream: string; readonly exception: string };

const call: WireCall = {
  operation: "chat",
  model: "anthropic.claude-3-haiku-20240307-v1:0",
  isStream: true,
  fields: toolRequest,
  bytes: undefined,
  apiVersion: undefined,
  basePath: "",
};

const read = (bytes: Buffer, length: number): JsonFields => {
  const reader = bedrockFamily.reader(call, { maxEventBytes: 1 << 20 });
  const assembler = new AnswerAssembler();
  for (let at = 0; at < bytes.length; at += length)
    for (const { json } of reader.push(bytes.subarray(at, at + length))) assembler.add(json);
  assert.equal(reader.isComplete, true);
  const { choices, usage } = assembler.finish();
  return { choices, usage };
};

describe("Bedrock's Converse", () => {
  it("has the model in its path, and blocks of its own", () => {
    const wire = bedrockFamily.request({ ...call, fields: { ...toolRequest, max_tokens: 50 } });
    assert.equal(wire.path, "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream");
    const body = JSON.parse(wire.body.toString());
    assert.deepEqual(body.messages[0].content[1], { image: { format: "png", source: { bytes: "aGk=" } } });
    assert.deepEqual(body.messages[2].content, [
      { toolResult: { toolUseId: "call_1", content: [{ text: '{"celsius":21}' }] } },
      { text: "In Fahrenheit, please." },
    ]);
    assert.deepEqual(body.toolConfig.toolChoice, { any: {} });
    assert.deepEqual([body.system, body.inferenceConfig], [[{ text: "Be brief." }], { maxTokens: 50 }]);
  });

  it("streams become the same answer wherever they are cut", () => {
    const bytes = Buffer.from(fixture.stream, "base64");
    const whole = read(bytes, bytes.length);
    assert.deepEqual(whole, {
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hello",
            refusal: null,
            tool_calls: [{ id: "t1", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
          },
          logprobs: null,
          finish_reason: "tool_calls",
        },
      ],
      usage: {
        prompt_tokens: 11,
        completion_tokens: 7,
        total_tokens: 18,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    });
    for (const length of [1, 17, 300]) assert.deepEqual(read(bytes, length), whole);
  });

  it("a bit that is wrong anywhere is found", () => {
    const bytes = Buffer.from(fixture.stream, "base64");
    for (let at = 0; at < 118; at += 1) {
      const spoiled = Buffer.from(bytes);
      spoiled[at] = (spoiled[at] ?? 0) ^ 4;
      assert.throws(() => read(spoiled, spoiled.length), { code: "target_answer_invalid" }, `byte ${at}`);
    }
  });

  it("an exception says what it means", () => {
    const reader = bedrockFamily.reader(call, { maxEventBytes: 1 << 20 });
    assert.throws(() => reader.push(Buffer.from(fixture.exception, "base64")), {
      code: "target_rate_limited",
      message: "slow down",
    });
  });

  it("is signed as the AWS SDK signs", () => {
    const key = parseAwsKey("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY:SESSION");
    assert.ok(key !== undefined);
    const { authorization } = signAws(key, {
      host: "bedrock-runtime.eu-west-1.amazonaws.com",
      path: "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream",
      body: '{"messages":[]}',
      region: "eu-west-1",
      service: "bedrock",
      nowMs: Date.parse("2026-01-02T03:04:05Z"),
    });
    // what @smithy/signature-v4 gives for the same request
    assert.equal(
      authorization,
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/eu-west-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=84e213feffc1e070c70b716572d8df9e3b4fd32f379445370e4c111eb8465485",
    );
  });
});
